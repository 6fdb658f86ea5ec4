//! `tiro summarize`: summarises a conversation, all conversations, or commits.

use std::process::ExitCode;

use crate::cli::flags;
use crate::cli::print::Out;
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::context::summarize_conversation::{self, Detail};
use tiro_tools::context::{summarize_all, summarize_commits};
use tiro_tools::memory::named;

/// The arguments of `tiro summarize`.
#[derive(clap::Args)]
pub struct Args {
    /// The session, as `tiro sessions` names it
    #[arg(required_unless_present_any = ["all", "commits"])]
    session: Option<String>,
    /// Summarise every session whose summary is missing or out of date
    #[arg(long, conflicts_with_all = ["session", "from", "to", "focus", "max_tokens"])]
    all: bool,
    /// Let the provider for summaries summarise the commits that have no summary, the newest first
    #[arg(long, conflicts_with_all = ["session", "all", "level", "from", "to", "focus", "max_tokens", "extractive"])]
    commits: bool,
    /// With --commits: summarise at most N commits
    #[arg(long, value_name = "N", requires = "commits")]
    limit: Option<usize>,
    /// The level of detail
    #[arg(long, value_enum, default_value = "standard")]
    level: Level,
    /// The number of the first message
    #[arg(long)]
    from: Option<i64>,
    /// The number of the last message
    #[arg(long)]
    to: Option<i64>,
    /// Topics to prefer
    #[arg(long)]
    focus: Option<String>,
    /// The most tokens that the summary may have
    #[arg(long)]
    max_tokens: Option<usize>,
    /// Build summaries from sentences of the messages, and ask no model
    #[arg(long)]
    extractive: bool,
    /// Print what the summaries would take and cost, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Level {
    Brief,
    Standard,
    Detailed,
}

/// Summarises; with `--dry-run`, only prints what the summaries would take and cost.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let level = match args.level {
        Level::Brief => Detail::Brief,
        Level::Standard => Detail::Standard,
        Level::Detailed => Detail::Detailed,
    };
    if args.commits {
        let args = summarize_commits::Args { limit: args.limit, dry_run: args.dry_run };
        return commits(engine, caller, args, out).await;
    }
    let Some(session) = args.session else {
        let args =
            summarize_all::Args { level: Some(level), use_provider: !args.extractive, dry_run: args.dry_run };
        return all(engine, caller, args, out).await;
    };
    let args = summarize_conversation::Args {
        session_id: named::session(engine, caller, &session).await?,
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
    let output = summarize_conversation::run(engine, caller, args).await;
    waiting.finish_and_clear();
    let output = output?;
    let text = flags::as_command(output.text(), "expand_detail", "tiro show", output.id.as_deref());
    out.answer(&output, &text)
}

/// Summarises every session whose summary is missing or out of date. The exit code is 1 if a session failed.
async fn all(
    engine: &Engine,
    caller: &WritingCaller,
    args: summarize_all::Args,
    out: Out,
) -> Result<ExitCode> {
    let bar = progress::bar("sessions");
    let show = |done, all| progress::show(&bar, done as u64, all as u64);
    let output = summarize_all::run(engine, caller, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    let code = out.answer(&output, &output.text())?;
    Ok(if output.failed.is_empty() { code } else { ExitCode::FAILURE })
}

/// Summarises commits.
async fn commits(
    engine: &Engine,
    caller: &WritingCaller,
    args: summarize_commits::Args,
    out: Out,
) -> Result<ExitCode> {
    let bar = progress::bar("commits");
    let show = |done, all| progress::show(&bar, done as u64, all as u64);
    let output = summarize_commits::run(engine, caller, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &summarize_commits::text(&output))
}
