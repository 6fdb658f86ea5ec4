//! `tiro export`: prints every memory, one JSON object per line.

use std::process::ExitCode;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::operate::export;

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
