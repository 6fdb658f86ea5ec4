//! `tiro sync`: exchanges memories with the server of a team now.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::exchange::sync;

/// Exchanges all changes and prints the counts.
pub async fn run(engine: &Engine, caller: &WritingCaller, out: Out) -> Result<ExitCode> {
    let output = sync::run(engine, caller).await?;
    out.answer(&output, &output.text())
}
