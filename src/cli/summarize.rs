//! `tiro summarize`: a conversation in short.

use std::process::ExitCode;

use super::{Out, progress};
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::summarize_conversation::{self, Detail};

#[derive(clap::Args)]
pub struct Args {
    /// The session, as `tiro sessions` names it.
    session: String,
    /// How much it says: brief, standard or detailed.
    #[arg(long, value_enum, default_value = "standard")]
    level: Level,
    /// The first message, by its number.
    #[arg(long)]
    from: Option<i64>,
    /// The last message.
    #[arg(long)]
    to: Option<i64>,
    /// Topics that matter.
    #[arg(long)]
    focus: Option<String>,
    /// Tokens of the summary at most.
    #[arg(long)]
    max_tokens: Option<usize>,
    /// Never ask a model.
    #[arg(long)]
    extractive: bool,
    /// Only say what it would take and cost.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Level {
    Brief,
    Standard,
    Detailed,
}

/// Summarises, or says what that would take.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let level = match args.level {
        Level::Brief => Detail::Brief,
        Level::Standard => Detail::Standard,
        Level::Detailed => Detail::Detailed,
    };
    let args = summarize_conversation::Args {
        session_id: args.session,
        level: Some(level),
        from: args.from,
        to: args.to,
        focus: args.focus,
        max_tokens: args.max_tokens,
        use_provider: args.extractive.then_some(false),
        dry_run: args.dry_run,
        ..Default::default()
    };
    let waiting = progress::waiting("summarising");
    let output = summarize_conversation::run(engine, args).await;
    waiting.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
