//! `tiro gc`: deletes expired cache entries and unused data.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::gc;

/// The arguments of `tiro gc`.
#[derive(clap::Args)]
pub struct Args {
    /// Print what would be deleted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Also forget sessions that ended more than DAYS ago and led to no commit; `tiro undo` restores them
    #[arg(long, value_name = "DAYS")]
    sessions_after: Option<u32>,
    /// Also summarise the conversations of each past quarter; the conversations don't change
    #[arg(long)]
    quarters: bool,
}

/// Deletes the data and prints what was deleted. With `--dry-run`, only prints what would be deleted.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let args =
        gc::Args { dry_run: args.dry_run, sessions_after_days: args.sessions_after, quarters: args.quarters };
    let output = gc::run(engine, caller, args).await?;
    out.answer(&output, &output.text())
}
