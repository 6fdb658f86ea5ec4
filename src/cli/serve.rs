//! `tiro serve`: the MCP server on stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::server;
use crate::tools::{Toolsets, index};

#[derive(clap::Args)]
pub struct Args {
    /// The groups of tools to offer, separated by commas: memory, consult, context, stash.
    #[arg(long, value_name = "NAMES")]
    toolsets: Option<Toolsets>,
}

/// Serves until stdin ends; what is pending is embedded meanwhile.
pub fn run(engine: Arc<Engine>, args: Args) -> Result<ExitCode> {
    let working = Arc::clone(&engine);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(index::keep_up(&working));
        }
    });
    server::run_stdio(engine, args.toolsets.unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}
