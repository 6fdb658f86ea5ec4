//! `tiro audit`: shows who did what with whose memories.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::engine::Engine;
use tiro_tools::operate::team::audit;

/// The arguments of `tiro audit`.
#[derive(clap::Args)]
pub struct Args {
    /// Only calls since then, such as 7d or 2026-07-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only calls of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only calls in this project, by its id or name
    #[arg(long = "in", value_name = "PROJECT")]
    within: Option<String>,
    /// At most this many calls, the newest first
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
}

/// Runs the subcommand and prints its answer: with `--json`, a line for each call.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let Args { since, user, within, limit } = args;
    let output =
        audit::list(engine, audit::Args { since, user, project: within, limit: Some(limit) }).await?;
    match (out.json, output.calls.is_empty()) {
        (true, true) => Ok(ExitCode::SUCCESS),
        (true, false) => out.line(&output.lines()).map(|()| ExitCode::SUCCESS),
        (false, _) => out.line(&output.text()).map(|()| ExitCode::SUCCESS),
    }
}
