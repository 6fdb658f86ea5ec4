//! `tiro import`: histories into memory.

use std::process::ExitCode;

use clap::Subcommand;

use super::{Out, progress};
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::import_git;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    source: Source,
}

#[derive(Subcommand)]
enum Source {
    /// The commits of the project's repository: message, changed files and what the diff is about.
    Git {
        /// Only the newest N commits.
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Threads to read commits with.
        #[arg(long, value_name = "N", default_value_t = 2)]
        threads: usize,
    },
}

/// Imports and says what came in.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let Source::Git { limit, threads } = args.source;
    let bar = progress::bar("commits");
    let show = |done, all| progress::show(&bar, done, all);
    let output = import_git::run(engine, import_git::Args { threads, limit }, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
