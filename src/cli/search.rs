//! `tiro search`: what an agent's search would answer.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::search_project_memory as search;

#[derive(clap::Args)]
pub struct Args {
    /// A question or key words.
    #[arg(required = true)]
    query: Vec<String>,
    /// Hits, 1 to 50.
    #[arg(short, long, default_value_t = 10)]
    k: usize,
    /// Only these kinds: message, commit, fact, …
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    kinds: Vec<String>,
    /// Only these sessions.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    sessions: Vec<String>,
    /// Only this branch.
    #[arg(long)]
    branch: Option<String>,
    /// Only this file or directory.
    #[arg(long)]
    path: Option<String>,
    /// Not before this time, such as 2026-03-01.
    #[arg(long)]
    since: Option<String>,
    /// Before this time.
    #[arg(long)]
    until: Option<String>,
    /// Budget of the answer in tokens.
    #[arg(long, default_value_t = 2000)]
    max_tokens: usize,
    /// Where the answer before said that it goes on.
    #[arg(long)]
    cursor: Option<String>,
}

/// Searches and prints the answer.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let args = search::Args {
        query: args.query.join(" "),
        k: Some(args.k),
        kinds: Some(args.kinds),
        sessions: Some(args.sessions),
        branch: args.branch,
        path: args.path,
        since: args.since,
        until: args.until,
        max_tokens: Some(args.max_tokens),
        cursor: args.cursor,
    };
    let output = search::run(engine, args).await?;
    out.answer(&output, &output.text())
}
