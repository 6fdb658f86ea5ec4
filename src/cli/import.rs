//! `tiro import`: histories into memory.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::{Out, progress};
use crate::clients::Client;
use crate::engine::Engine;
use crate::error::Result;
use crate::tools::operate::{import_git, import_preview, import_sessions};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    source: Source,
}

#[derive(Subcommand)]
enum Source {
    /// The commits of the project's repository: message, changed files and what the diff is about.
    Git {
        /// Only the newest N commits.
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Threads to read commits with.
        #[arg(long, value_name = "N", default_value_t = 2)]
        threads: usize,
        /// Have commits without a summary summarised by the model that is named for summaries.
        #[arg(long)]
        summarize: bool,
        /// Only say what would be imported, and what summaries would take and cost.
        #[arg(long)]
        dry_run: bool,
    },
    /// The sessions held with Claude Code in this project.
    ClaudeCode(Transcripts),
    /// The sessions held with Codex in this project.
    Codex(Transcripts),
    /// The sessions held with Gemini CLI in this project.
    Gemini(Transcripts),
}

#[derive(clap::Args)]
struct Transcripts {
    /// Only these transcripts; all of the project's if left out
    #[arg(value_name = "FILE")]
    transcripts: Vec<PathBuf>,
    /// Only say what would be imported.
    #[arg(long)]
    dry_run: bool,
}

/// Imports and says what came in.
pub async fn run(engine: &Engine, args: Args, out: Out) -> Result<ExitCode> {
    let (client, Transcripts { transcripts, dry_run }) = match args.source {
        Source::Git { limit, threads, summarize, dry_run } => {
            let args = import_git::Args { threads, limit, summarize, ..Default::default() };
            return if dry_run {
                commits_ahead(engine, args, out).await
            } else {
                git(engine, args, out).await
            };
        }
        Source::ClaudeCode(transcripts) => (Client::ClaudeCode, transcripts),
        Source::Codex(transcripts) => (Client::Codex, transcripts),
        Source::Gemini(transcripts) => (Client::Gemini, transcripts),
    };
    if dry_run {
        let args = import_sessions::Args { client, transcripts, patience: None };
        let output = import_preview::sessions(engine, args).await?;
        return out.answer(&output, &output.text());
    }
    sessions(engine, client, transcripts, out).await
}

/// Imports what a client keeps.
pub async fn sessions(
    engine: &Engine,
    client: Client,
    transcripts: Vec<PathBuf>,
    out: Out,
) -> Result<ExitCode> {
    let bar = progress::bytes("transcripts");
    let show = |done, all| progress::show(&bar, done, all);
    let args = import_sessions::Args { client, transcripts, patience: None };
    let output = import_sessions::run(engine, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}

/// Imports the repository's commits.
pub async fn git(engine: &Engine, args: import_git::Args, out: Out) -> Result<ExitCode> {
    let bar = progress::bar("commits");
    let show = |done, all| progress::show(&bar, done as u64, all as u64);
    let output = import_git::run(engine, args, show).await;
    bar.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}

/// Says what would be imported of the repository.
async fn commits_ahead(engine: &Engine, args: import_git::Args, out: Out) -> Result<ExitCode> {
    let waiting = progress::waiting("looking");
    let is_summarised = args.summarize;
    let output = import_preview::commits(engine, args, is_summarised).await;
    waiting.finish_and_clear();
    let output = output?;
    out.answer(&output, &output.text())
}
