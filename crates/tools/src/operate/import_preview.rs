//! Reports what an import would store, and how much summaries of its commits would cost (`--dry-run`).
//!
//! A preview writes and registers nothing, and asks no model. Its counts are upper bounds. Only a real import finds out
//! which entries repeat another entry under a different id, and which entries were forgotten before.

use std::ops::ControlFlow;

use serde::Serialize;

use super::import_git;
use crate::common;
use tiro_base::error::{Error, Result};
use tiro_base::humanize::{self, counted};
use tiro_capture::clients::transcripts::{self, Line, Lines};
use tiro_capture::follow::cursor::Cursor;
use tiro_capture::follow::history::{self, Stored};
use tiro_capture::follow::sessions::Account;
use tiro_capture::follow::{commits, reading, sessions};
use tiro_capture::import::git as import;
use tiro_capture::import::transcript::Transcript;
use tiro_git::{Sha, Stop};
use tiro_host::ask;
use tiro_host::caller::Caller;
use tiro_host::config::Use;
use tiro_host::engine::Engine;
use tiro_host::own_files::search_sessions;
use tiro_host::project::OpenProject;
use tiro_host::summaries::estimate::AtMost;
use tiro_host::summaries::messages::blocking;
use tiro_host::summaries::of_commits;
use tiro_redact::Redactor;
use tiro_text::tokens;

/// The preview of an import from a repository.
#[derive(Debug, Default, Serialize)]
pub struct Commits {
    /// Always true: nothing was imported.
    pub dry_run: bool,
    /// The maximum number of commits that would be imported.
    pub commits: usize,
    /// How many older commits `limit` leaves out.
    pub left_out: usize,
    /// Commits that can't be read, with the reason.
    pub unreadable: Vec<String>,
    /// The cost of summaries of the commits. Absent if summaries were not requested or no model may write them.
    pub summaries: Option<Summaries>,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// The cost of summaries of commits.
#[derive(Debug, Serialize)]
pub struct Summaries {
    /// The provider that would be asked.
    pub provider: String,
    /// How many commits would be summarised, including those that were imported before.
    pub commits: usize,
    /// The maximum number of requests, tokens and dollars that this would take.
    pub at_most: AtMost,
}

/// The preview of an import of a client's sessions.
#[derive(Debug, Default, Serialize)]
pub struct Sessions {
    /// Always true: nothing was imported.
    pub dry_run: bool,
    /// The number of transcripts that were looked at: all transcripts of the project, or the named ones.
    pub transcripts: usize,
    /// The number of these transcripts that have grown since they were last read.
    pub grown: usize,
    /// The most entries that would be stored.
    pub entries: usize,
    /// The maximum number of tokens (o200k) of these entries.
    pub tokens: usize,
    /// How many bytes would be read.
    pub bytes: u64,
    /// Transcripts that can't be read, with the reason.
    pub failed: Vec<String>,
    /// The account of all transcripts of the client. Absent if the user named some transcripts.
    pub account: Option<Account>,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// Reports how many commits of the repository would be imported. With `summarize`, also reports the cost of their
/// summaries.
///
/// Errors in the same cases as the import.
pub async fn commits(engine: &Engine, caller: &Caller, args: import_git::Args) -> Result<Commits> {
    let seen = caller.look(engine).await?;
    let Some(repository) = seen.repository.clone() else {
        return Err(seen.trouble.unwrap_or_else(|| commits::no_repository(&seen.root)));
    };
    let (known, stored) = match &seen.open {
        Some(project) => {
            let intake = project.read_intake(engine.clock());
            (history::known(&intake).await?, Stored::of(&intake).await?)
        }
        None => Default::default(),
    };
    let import_git::Args { limit, summarize, .. } = args;
    let args = commits::Args { limit, ..commits::Args::default() };
    let found = commits::find(&repository, &known, &stored, args, &Stop::default())?;
    let mut output = Commits {
        dry_run: true,
        commits: found.history.commits.len(),
        left_out: found.skipped,
        unreadable: found.unreadable,
        summaries: None,
        notices: found.notices,
    };
    if !summarize {
        return Ok(output);
    }
    let Some(writer) = ask::may_ask(engine, Use::Summarize) else {
        output.notices.push(of_commits::NOBODY.to_owned());
        return Ok(output);
    };
    let shas: Vec<Sha> = found.history.commits.iter().rev().map(|listed| listed.sha).collect();
    let left = limit.unwrap_or(usize::MAX).saturating_sub(shas.len());
    let stored = match &seen.open {
        Some(project) => without_summary(project, left).await?,
        None => Vec::new(),
    };
    let redactor = of_commits::redactor(engine.existing_installation().await?.as_ref());
    let provider = writer.provider.name.clone();
    let commits = shas.len() + stored.len();
    let ignored = engine.config().ignored.clone();
    let dearest = ask::dearest(engine, Use::Summarize)?;
    let at_most = blocking(move || {
        let mut at_most = AtMost::default();
        let is_ignored = |path: &str| ignored.path(path);
        let mut reader = repository.reader(&is_ignored);
        let mut add = |sha: &Sha, text: &str| {
            let diff = of_commits::diff(&repository, &mut reader, &redactor, sha);
            at_most.add(of_commits::estimate(&writer, &dearest, &redactor.redact(text).text, &diff));
        };
        repository.details(&shas, 1, &is_ignored, |read| {
            if let Ok(commit) = read
                && !commit.changes.is_ignored()
            {
                add(&commit.sha, &import::draft(&commit, None).text);
            }
            ControlFlow::Continue(())
        });
        for (sha, text) in &stored {
            add(sha, text);
        }
        at_most
    })
    .await?;
    output.summaries = Some(Summaries { provider, commits, at_most });
    Ok(output)
}

/// Returns the id and text of up to `limit` imported commits without a summary, newest first.
async fn without_summary(project: &OpenProject, limit: usize) -> Result<Vec<(Sha, String)>> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let rows = store.commits_without_summary(scope, limit).await?;
    let commits = store.memories(scope, rows).await?;
    let sha = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    Ok(commits.into_iter().filter_map(|each| Some((sha(each.source_id.as_deref())?, each.text))).collect())
}

/// Reports how many entries of a client's sessions would be imported.
pub async fn sessions(engine: &Engine, caller: &Caller, args: sessions::Args) -> Result<Sessions> {
    let seen = caller.look(engine).await?;
    let mut output = Sessions { dry_run: true, ..Sessions::default() };
    let found = if args.transcripts.is_empty() {
        let search = search_sessions(engine, caller, &seen, args.client).await?;
        output.account = Some(search.account);
        search.found
    } else {
        sessions::named(args.transcripts)?
    };
    if found.is_empty() {
        output.notices.push(format!("{} has no session of this project", args.client.name()));
    }
    let redactor = seen.open.as_ref().map_or_else(Redactor::blank, |project| project.redactor.clone());
    for transcript in found {
        output.transcripts += 1;
        let path = &transcript.path;
        let source = Cursor::source(&redactor, path);
        let read = async {
            let (cursor, all) = match &seen.open {
                Some(project) => Cursor::of(&project.read_intake(engine.clock()), &source, path).await?,
                None => (Cursor::default(), transcripts::around(path, 0, 0)?.0),
            };
            if cursor.at + cursor.looked >= all {
                return Ok(());
            }
            let mut reader = Transcript::new(reading::format(args.client)?, cursor.about());
            let mut lines = Lines::resume(path, cursor.at, cursor.looked, u64::MAX)?;
            let mut texts: Vec<String> = Vec::new();
            while let Some((at, line)) = lines.next_line()? {
                let entries = match line {
                    Line::Whole(bytes) => reader.line(at, bytes),
                    Line::Cut(start, bytes) => reader.cut(at, start, bytes),
                };
                texts.extend(entries.into_iter().map(|entry| entry.text));
            }
            texts.extend(reader.rest().into_iter().map(|entry| entry.text));
            output.grown += 1;
            output.bytes += all.saturating_sub(cursor.at);
            output.entries += texts.len();
            output.tokens += blocking(move || tokens(&texts)).await?;
            Ok::<(), Error>(())
        };
        // An unreadable transcript does not affect the others.
        if let Err(error) = read.await {
            output.failed.push(error.to_string());
        }
    }
    Ok(output)
}

fn tokens(texts: &[String]) -> usize {
    texts.iter().map(|text| tokens::count(text)).sum()
}

impl Commits {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!("Would import {}.", counted(self.commits, "commit", "commits"));
        if !self.unreadable.is_empty() {
            let unreadable = counted(self.unreadable.len(), "commit", "commits");
            text += &format!("\n{unreadable} can't be read: {}.", humanize::some(&self.unreadable));
        }
        if let Some(Summaries { provider, commits, at_most }) = &self.summaries {
            let commits = counted(*commits, "commit", "commits");
            text += &format!("\nWould have {commits} summarised: {provider} would receive {at_most}.");
        }
        text + &common::footnotes(&[], 0, &self.notices) + "\nNothing was changed."
    }
}

impl Sessions {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Would import {} of {} tokens from {} of {} ({} bytes).",
            counted(self.entries, "entry", "entries"),
            self.tokens,
            self.grown,
            counted(self.transcripts, "transcript", "transcripts"),
            self.bytes,
        );
        if let Some(account) = &self.account {
            text += &format!("\n{}.", account.text());
        }
        if !self.failed.is_empty() {
            let failed = counted(self.failed.len(), "transcript", "transcripts");
            text += &format!("\n{failed} can't be read: {}.", humanize::some(&self.failed));
        }
        text + &common::footnotes(&[], 0, &self.notices) + "\nNothing was changed."
    }
}
