//! `tiro mark`: marks memories as important, or removes the mark.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::memory::{mark_important, named};

/// The arguments of `tiro mark`.
#[derive(clap::Args)]
pub struct Args {
    /// Ids of memories or commits, or SESSION#NUMBER for messages
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Remove the mark
    #[arg(long)]
    off: bool,
    /// The importance of the memories, 0 to 1
    #[arg(long)]
    importance: Option<f64>,
}

/// Sets or removes the mark.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let Args { ids, off, importance } = args;
    let ids = named::all_in_full(engine, caller, &ids).await?;
    let args = mark_important::Args { ids, important: Some(!off), importance };
    let output = mark_important::run(engine, caller, args).await?;
    out.answer(&output, &output.text())
}
