//! `tiro doctor`: checks the installation.

use std::process::ExitCode;

use crate::caller::Caller;
use crate::cli::print::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::doctor;

/// Prints the results of the checks; exits with 1 if a check failed.
pub async fn run(engine: &Engine, caller: &Caller, out: Out) -> Result<ExitCode> {
    let output = doctor::run(engine, caller).await?;
    out.answer(&output, &output.text())?;
    Ok(if output.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
