//! `tiro demo`: builds a memory of a repository and of a conversation, and asks it questions.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{Out, progress};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::demo;

#[derive(clap::Args)]
pub struct Args {
    /// The repository; the one around the working directory if left out.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// A question to ask instead of those made from the history.
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
}

/// Runs the demonstration, telling each step as it ends.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let own_engine =
        args.repo.map(|repo| Engine::new(Config { project: Some(repo), ..engine.config().clone() }));
    let bar = progress::steps("model");
    let installing = progress::installation(&bar);
    let mut said = |step: &demo::Step| {
        bar.finish_and_clear();
        if !out.json {
            let line = format!("{:16} {} ({} ms)", step.what, step.found, step.milliseconds);
            // What can't be printed now can't be printed at the end either, and is told then.
            let _ = out.line(&line);
        }
    };
    let engine = own_engine.as_ref().unwrap_or(engine);
    let output = demo::run(engine, demo::Args { ask: args.ask }, &mut said, installing).await?;
    out.answer(&output, &output.text())
}
