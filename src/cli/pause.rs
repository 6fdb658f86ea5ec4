//! `tiro pause` and `tiro resume`: keep a while out of memory.

use std::process::ExitCode;

use serde::Serialize;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::spool::Spool;

#[derive(clap::Args)]
pub struct Args {
    /// In all projects, not only in this one
    #[arg(long)]
    all: bool,
}

/// What the command answers.
#[derive(Serialize)]
struct Output {
    paused: bool,
    /// Whether that is news.
    changed: bool,
    everywhere: bool,
}

/// Pauses the capture of sessions, or lets it go on.
pub async fn run(engine: &Engine, args: Args, paused: bool, out: Out) -> Result<ExitCode> {
    let spool = match args.all {
        true => Spool::everywhere(&engine.config().data_dir),
        false => engine.spool(engine.begin_project().await?),
    };
    let changed = spool.set_paused(paused, engine.now())?;
    let place = if args.all { "in all projects" } else { "in this project" };
    let text = match (paused, changed) {
        (true, true) => {
            format!("Paused {place}: what is said from now on is not remembered until `tiro resume`.")
        }
        (true, false) => format!("It was paused {place} already."),
        (false, true) => format!("Goes on {place}. What was said during the pause stays out."),
        (false, false) => format!("It was not paused {place}."),
    };
    out.answer(&Output { paused, changed, everywhere: args.all }, &text)
}
