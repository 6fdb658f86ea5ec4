//! `tiro extract-text`: extracts the text of a document. Tiro starts this command to parse documents in another
//! process.
//!
//! The process opens no file and no store, reads no configuration, and gives up rights before it reads the document.
//! With `--attempt`, the process tries to use the rights that it gave up; `tiro doctor` reports the result.

use std::io;
use std::process::ExitCode;

use tiro_files::DocumentKind;

/// The arguments of `tiro extract-text`.
#[derive(clap::Args)]
pub struct Args {
    /// The format of the document on stdin
    #[arg(value_parser = kind, required_unless_present = "attempt")]
    kind: Option<DocumentKind>,
    /// Try what a hostile document could make the parser do, and write what was refused
    #[arg(long, conflicts_with = "kind")]
    attempt: bool,
}

fn kind(word: &str) -> Result<DocumentKind, String> {
    DocumentKind::parse(word).ok_or_else(|| "unknown format".to_owned())
}

/// Reads a document from stdin and writes its text to stdout. The process that started this one reads the output as
/// data.
pub fn run(args: &Args) -> ExitCode {
    let served = tiro_files::confine().and_then(|confinement| match args.kind {
        Some(kind) => tiro_files::serve(kind, io::stdin().lock(), io::stdout().lock()),
        None => Ok(serde_json::to_writer(io::stdout().lock(), &tiro_files::attempt(confinement))?),
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
