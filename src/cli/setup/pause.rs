//! `tiro pause` and `tiro resume`: stop and resume the capture of sessions.

use std::process::ExitCode;

use serde::Serialize;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_capture::spool::Spool;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;

/// The arguments of `tiro pause` and `tiro resume`.
#[derive(clap::Args)]
pub struct Args {
    /// Apply to all projects, not only to this one
    #[arg(long)]
    all: bool,
}

/// The answer.
#[derive(Serialize)]
struct Output {
    paused: bool,
    /// Whether this call changed `paused`.
    changed: bool,
    everywhere: bool,
}

/// Pauses or resumes the capture of sessions.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    paused: bool,
    out: Out,
) -> Result<ExitCode> {
    let spool = match args.all {
        true => Spool::everywhere(&engine.config().data_dir),
        false => engine.spool(&*caller.begin_project(engine).await?),
    };
    let changed = spool.set_paused(paused, engine.now())?;
    let place = if args.all { "in all projects" } else { "in this project" };
    let text = match (paused, changed) {
        (true, true) => {
            format!("Paused {place}: messages are not remembered until `tiro resume`.")
        }
        (true, false) => format!("Already paused {place}."),
        (false, true) => format!("Resumed {place}. Messages from the pause are not remembered."),
        (false, false) => format!("Not paused {place}."),
    };
    out.answer(&Output { paused, changed, everywhere: args.all }, &text)
}
