//! `tiro gc`: removes what has outlived its use.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::gc;

#[derive(clap::Args)]
pub struct Args {
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Forget sessions that ended so long ago and that no commit came of; `tiro undo` brings them back.
    #[arg(long, value_name = "DAYS")]
    sessions_after: Option<u32>,
    /// Sum up the conversations of each quarter that is over; they stay as they are.
    #[arg(long)]
    quarters: bool,
}

/// Removes, or lists, and prints.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let args =
        gc::Args { dry_run: args.dry_run, sessions_after_days: args.sessions_after, quarters: args.quarters };
    let output = gc::run(engine, args).await?;
    out.answer(&output, &output.text())
}
