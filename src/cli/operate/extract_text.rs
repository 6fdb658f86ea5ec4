//! `tiro extract-text`: extracts the text of a document. Tiro starts it to parse documents in another process.
//!
//! It opens no file and no store, reads no configuration, and gives up rights before it reads the document.

use std::io;
use std::process::ExitCode;

use crate::files::{self, DocumentKind};

/// The arguments of `tiro extract-text`.
#[derive(clap::Args)]
pub struct Args {
    /// The format of the document on stdin
    #[arg(value_parser = kind)]
    kind: DocumentKind,
}

fn kind(word: &str) -> Result<DocumentKind, String> {
    DocumentKind::parse(word).ok_or_else(|| "unknown format".to_owned())
}

/// Reads a document from stdin and writes its text to stdout.
pub fn run(args: &Args) -> ExitCode {
    let served = files::confine().and_then(|()| {
        // The answer of this process is data for the process that started it.
        files::serve(args.kind, io::stdin().lock(), io::stdout().lock())
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
