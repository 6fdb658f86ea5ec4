//! `tiro import`: imports commits or past sessions.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use crate::cli::progress;
use tiro_base::error::Result;
use tiro_capture::clients::Client;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_tools::operate::{import_git, import_messages, import_preview, import_sessions};

/// The arguments of `tiro import`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    source: Option<Source>,
    /// Files with JSON lines of messages, such as {"role": "user", "text": "…", "time": "…", "session": "…"}
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Subcommand)]
enum Source {
    /// Import the commits of the project's repository: message, changed files and a digest of the diff
    Git {
        /// Import only the newest N commits
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// How many threads read commits
        #[arg(long, value_name = "N", default_value_t = 2)]
        threads: usize,
        /// Let the provider for summaries summarise the commits that have no summary
        #[arg(long)]
        summarize: bool,
        /// Print what would be imported and what summaries would cost, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Import the sessions of Claude Code in this project
    ClaudeCode(Transcripts),
    /// Import the sessions of Codex in this project
    Codex(Transcripts),
    /// Import the sessions of Gemini CLI in this project
    Gemini(Transcripts),
    /// Import the sessions of Qwen Code in this project
    Qwen(Transcripts),
    /// Import the sessions of Copilot CLI in this project
    Copilot(Transcripts),
    /// Import the sessions of opencode in this project
    Opencode(Transcripts),
    /// Import the sessions that SpecStory keeps in .specstory/history of this project
    Specstory,
}

#[derive(clap::Args)]
struct Transcripts {
    /// Transcripts to import [default: all of the project]
    #[arg(value_name = "FILE")]
    transcripts: Vec<PathBuf>,
    /// Print what would be imported, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Imports commits or sessions, and prints the counts.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let (client, Transcripts { transcripts, dry_run }) = match args.source {
        Some(Source::Git { limit, threads, summarize, dry_run }) => {
            let args = import_git::Args { threads, limit, summarize };
            return if dry_run {
                preview(engine, caller, args, out).await
            } else {
                git(engine, caller, args, out).await
            };
        }
        Some(Source::ClaudeCode(transcripts)) => (Client::ClaudeCode, transcripts),
        Some(Source::Codex(transcripts)) => (Client::Codex, transcripts),
        Some(Source::Gemini(transcripts)) => (Client::Gemini, transcripts),
        Some(Source::Qwen(transcripts)) => (Client::Qwen, transcripts),
        Some(Source::Copilot(transcripts)) => (Client::Copilot, transcripts),
        Some(Source::Opencode(transcripts)) => (Client::Opencode, transcripts),
        Some(Source::Specstory) => {
            return messages(engine, caller, import_messages::Args::Specstory, out).await;
        }
        None => return messages(engine, caller, import_messages::Args::Files(args.files), out).await,
    };
    if dry_run {
        let args = import_sessions::Args { client, transcripts, patience: None };
        let output = import_preview::sessions(engine, caller, args).await?;
        return out.answer(&output, &output.text());
    }
    sessions(engine, caller, client, transcripts, out).await
}

/// Imports conversations that other programs keep as files.
async fn messages(
    engine: &Engine,
    caller: &WritingCaller,
    args: import_messages::Args,
    out: Out,
) -> Result<ExitCode> {
    let output = import_messages::run(engine, caller, args).await?;
    out.answer(&output, &output.text())
}

/// Imports the sessions of a client.
pub async fn sessions(
    engine: &Engine,
    caller: &WritingCaller,
    client: Client,
    transcripts: Vec<PathBuf>,
    out: Out,
) -> Result<ExitCode> {
    let bar = progress::bytes("transcripts");
    let show = |done, all| progress::show(&bar, done, all);
    let args = import_sessions::Args { client, transcripts, patience: None };
    let output = import_sessions::run(engine, caller, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &import_sessions::text(&output))
}

/// Imports the repository's commits.
pub async fn git(
    engine: &Engine,
    caller: &WritingCaller,
    args: import_git::Args,
    out: Out,
) -> Result<ExitCode> {
    let bar = progress::bar("commits");
    let show = |done, all| progress::show(&bar, done as u64, all as u64);
    let output = import_git::run(engine, caller, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &import_git::text(&output))
}

/// Prints what would be imported from the repository.
async fn preview(engine: &Engine, caller: &Caller, args: import_git::Args, out: Out) -> Result<ExitCode> {
    let waiting = progress::waiting("looking");
    let output = import_preview::commits(engine, caller, args).await;
    waiting.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
