//! `tiro stats`: prints counts of the project's memory.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::operate::stats;

/// Prints the counts.
pub async fn run(engine: &Engine, caller: &Caller, out: Out) -> Result<ExitCode> {
    let output = stats::run(engine, caller).await?;
    out.answer(&output, &output.text())
}
