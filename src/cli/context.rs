//! `tiro context`: what an agent would be given to answer a question.

use std::process::ExitCode;

use super::Out;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::retrieve_context::{self as context, IncludeLevel};

#[derive(clap::Args)]
pub struct Args {
    /// The question.
    #[arg(required = true)]
    query: Vec<String>,
    /// Of this conversation; across all if left out.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only across these conversations.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    sessions: Vec<String>,
    /// Not before this time, such as 2026-03-01.
    #[arg(long)]
    since: Option<String>,
    /// Before this time.
    #[arg(long)]
    until: Option<String>,
    /// What it is made of: summary, mixed or full.
    #[arg(long, value_parser = level, default_value = "mixed")]
    level: IncludeLevel,
    /// Budget of the answer in tokens.
    #[arg(long)]
    max_tokens: Option<usize>,
}

fn level(word: &str) -> Result<IncludeLevel, String> {
    match word {
        "summary" => Ok(IncludeLevel::Summary),
        "mixed" => Ok(IncludeLevel::Mixed),
        "full" => Ok(IncludeLevel::Full),
        _ => Err("it is summary, mixed or full".into()),
    }
}

/// Assembles and prints the context.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let range = context::TimeRange { start: args.since, end: args.until };
    let args = context::Args {
        query: args.query.join(" "),
        session_id: args.session,
        conversation_ids: Some(args.sessions),
        time_range: Some(range),
        include_level: Some(args.level),
        max_tokens: args.max_tokens,
    };
    let output = context::run(engine, args).await?;
    if let Err(error) = engine.keep_measurements().await {
        tracing::debug!("what was saved is not noted: {error}");
    }
    out.answer(&output, &output.text())
}
