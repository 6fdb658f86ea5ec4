//! `tiro doctor`: checks the installation.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::operate::doctor;

/// Prints the results of the checks. The exit code is 1 if a check failed.
pub async fn run(engine: &Engine, caller: &Caller, out: Out) -> Result<ExitCode> {
    let output = doctor::run(engine, caller).await?;
    out.answer(&output, &output.text())?;
    Ok(if output.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
