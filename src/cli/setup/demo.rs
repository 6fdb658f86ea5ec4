//! `tiro demo`: builds a memory of a repository and a conversation, and answers questions from it.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::print::Out;
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::demo;

/// The arguments of `tiro demo`.
#[derive(clap::Args)]
pub struct Args {
    /// The repository [default: that of the working directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Ask this question instead of those made from the history
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
}

/// Runs the demonstration and prints each step as it ends.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let in_repo = args.repo.map(|repo| caller.in_directory(&repo, caller.named().is_some()));
    let bar = progress::steps("model");
    let installing = progress::installation(&bar);
    let mut print_step = |step: &demo::Step| {
        bar.finish_and_clear();
        if !out.json {
            let line = format!("{:16} {} ({} ms)", step.what, step.found, step.milliseconds);
            // If this line cannot be printed, printing the answer fails too and reports it.
            let _ = out.line(&line);
        }
    };
    let caller = in_repo.as_ref().unwrap_or(caller);
    let output = demo::run(engine, caller, demo::Args { ask: args.ask }, &mut print_step, installing).await?;
    out.answer(&output, &output.text())
}
