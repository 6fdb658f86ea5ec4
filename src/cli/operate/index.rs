//! `tiro index`: computes the missing embeddings.

use std::process::ExitCode;

use crate::cli::print::Out;
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::index;

/// The arguments of `tiro index`.
#[derive(clap::Args)]
pub struct Args {
    /// How many threads compute embeddings
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

/// Computes all missing embeddings.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let bar = progress::bar("pieces embedded");
    let show = |done, left| progress::show(&bar, done as u64, (done + left) as u64);
    let output =
        index::run(engine, caller, index::Args { threads: args.threads, patience: None }, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
