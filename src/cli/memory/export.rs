//! `tiro export`: prints every memory, one JSON object per line.

use std::process::ExitCode;

use crate::caller::Caller;
use crate::cli::print::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::export;

/// The arguments of `tiro export`.
#[derive(clap::Args)]
pub struct Args {
    /// The output format
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// One JSON object per line
    Jsonl,
}

/// Prints the memories, newest first.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<ExitCode> {
    let Format::Jsonl = args.format;
    let out = Out { json: true };
    export::run(engine, caller, |memory| {
        out.line(&serde_json::to_string(memory).expect("a memory is plain values"))
    })
    .await?;
    Ok(ExitCode::SUCCESS)
}
