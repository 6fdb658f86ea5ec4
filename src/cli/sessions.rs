//! `tiro sessions`: the project's conversations.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::list_sessions;

#[derive(clap::Args)]
pub struct Args {
    /// How many, 1 to 100.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Where the answer before said that it goes on.
    #[arg(long)]
    cursor: Option<String>,
}

/// Lists the sessions, latest first.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let args = list_sessions::Args { limit: Some(args.limit), cursor: args.cursor };
    let output = list_sessions::run(engine, args).await?;
    out.answer(&output, &output.text())
}
