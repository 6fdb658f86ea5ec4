//! `tiro stats`: counts what the project's memory holds.

use std::process::ExitCode;

use crate::caller::Caller;
use crate::cli::print::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::stats;

/// Counts and prints.
pub async fn run(engine: &Engine, caller: &Caller, out: Out) -> Result<ExitCode> {
    let output = stats::run(engine, caller).await?;
    out.answer(&output, &output.text())
}
