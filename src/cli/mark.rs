//! `tiro mark`: says that memories matter, or no longer do.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::memory::mark_important;

#[derive(clap::Args)]
pub struct Args {
    /// Memories by their ids, or messages as SESSION#NUMBER.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Take the mark away.
    #[arg(long)]
    off: bool,
    /// How much they matter, 0 to 1.
    #[arg(long)]
    importance: Option<f64>,
}

/// Sets the mark or takes it away.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let Args { ids, off, importance } = args;
    let args = mark_important::Args { ids, important: Some(!off), importance };
    let output = mark_important::run(engine, args).await?;
    out.answer(&output, &output.text())
}
