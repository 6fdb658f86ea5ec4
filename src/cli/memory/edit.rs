//! `tiro edit`: edits a memory in the user's editor.
//!
//! The text of a memory never changes. The edited text becomes a new memory, which supersedes the old one.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use crate::cli::print::{self, Out};
use crate::cli::programs;
use tiro_base::error::{Context, Error, Kind, Result};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::memory::{edit_memory, named};

/// The arguments of `tiro edit`.
#[derive(clap::Args)]
pub struct Args {
    /// The memory: an id or its beginning, or SESSION#NUMBER
    id: String,
    /// The new text, instead of opening the editor; `-` reads it from stdin
    #[arg(long)]
    text: Option<String>,
}

/// Opens the memory in the editor, stores what was saved and prints its id.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let id = named::in_full(engine, caller, &args.id).await?;
    let edited = edit_memory::read(engine, caller, &id).await?;
    let (text, written) = match args.text.as_deref() {
        Some("-") => (from_stdin()?, None),
        Some(text) => (text.to_owned(), None),
        None if std::io::stdin().is_terminal() && print::is_terminal() => {
            let written = programs::edit(engine.config(), edited.text())?;
            (written.text.clone(), Some(written))
        }
        None => {
            return Err(Error::bad_input("no terminal for an editor").hint("give the new text with --text"));
        }
    };
    let output = match edit_memory::run(engine, caller, edited, &text).await {
        Ok(output) => output,
        Err(error) => {
            if let Some(path) = written.and_then(programs::Written::keep) {
                print::aside(&format!("Your text is in {}.\n", path.display()));
            }
            return Err(error);
        }
    };
    out.answer(&output, &output.text())
}

fn from_stdin() -> Result<String> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.context(Kind::BadInput, || "cannot read the text from stdin".to_owned())?;
    Ok(text)
}
