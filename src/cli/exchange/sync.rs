//! `tiro sync`: exchanges memories with the server of a team now.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::exchange::sync;

/// The arguments of `tiro sync`.
#[derive(clap::Args)]
pub struct Args {
    /// Exchange those of every connected project of this machine; fails if one of them fails
    #[arg(long)]
    all: bool,
}

/// Exchanges all changes and prints the counts.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    if !args.all {
        let output = sync::run(engine, caller).await?;
        return out.answer(&output, &output.text());
    }
    let output = sync::all(engine, caller).await?;
    let done = out.answer(&output, &output.text())?;
    Ok(if output.failed > 0 { ExitCode::FAILURE } else { done })
}
