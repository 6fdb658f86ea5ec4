//! Summarises every session that has no summary of a given level yet, or only an outdated one.
//!
//! A summary is outdated if the session's messages have changed since it was made. An extractive summary is also
//! outdated if a model may write one now. A session that fails is reported, and the others are still summarised.

use std::fmt::Write;

use serde::Serialize;

use crate::common;
use crate::context::summarize_conversation::Detail;
use tiro_base::error::{Result, quoted};
use tiro_base::humanize::counted;
use tiro_base::memory::Level;
use tiro_base::scope::SessionId;
use tiro_host::ask;
use tiro_host::caller::WritingCaller;
use tiro_host::config::Use;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::estimate::{self, AtMost, PATIENCE};
use tiro_host::summaries::make;
use tiro_host::summaries::wanted::Wanted;
use tiro_store::{MessageRow, source_hash};

/// The number of sessions that are read from the store at once.
const PAGE: usize = 500;

/// The maximum number of failures that the text shows. The JSON contains all of them.
const SHOWN: usize = 5;

/// The arguments of `tiro summarize --all`.
#[derive(Debug, Default)]
pub struct Args {
    /// The level of detail; standard if `None`.
    pub level: Option<Detail>,
    /// Whether the summaries may be written by the model that is configured for them.
    pub use_provider: bool,
    /// Whether only to estimate tokens and cost.
    pub dry_run: bool,
}

/// The answer of `tiro summarize --all`.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Whether this is an estimate and nothing was made.
    pub dry_run: bool,
    /// The level of detail.
    pub level: String,
    /// The number of sessions with messages.
    pub sessions: usize,
    /// How many sessions already had a summary of this level that covers all their messages.
    pub up_to_date: usize,
    /// How many sessions were summarised, or would be in a real run.
    pub summarised: usize,
    /// How many of these summaries are extractive.
    pub extractive: usize,
    /// The provider that writes the summaries. `None` if all summaries are extractive.
    pub provider: Option<String>,
    /// Sessions that could not be summarised, each with the error.
    pub failed: Vec<String>,
    /// In a dry run, the maximum number of requests, tokens and dollars of a real run.
    pub at_most: Option<AtMost>,
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// Other remarks, each of which is a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Summarises the sessions that need it, the latest first. In a dry run, only estimates requests, tokens and cost.
/// Calls `progress` with the number of sessions done and the number of all sessions.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let project = caller.writable_project(engine).await?;
    let level = Level::from(args.level.unwrap_or_default());
    let writer = ask::may_ask(engine, Use::Summarize).filter(|_| args.use_provider);
    let mut by_model = writer.is_some();
    let sessions = sessions(&project).await?;
    let mut output = Output {
        dry_run: args.dry_run,
        level: level.to_string(),
        provider: writer.map(|writer| writer.provider.name),
        at_most: args.dry_run.then(AtMost::default),
        ..Output::default()
    };
    let mut unanswered_in_a_row = 0;
    for (done, session) in sessions.iter().enumerate() {
        progress(done, sessions.len());
        let step = async {
            let rows = project.store.session_messages(&project.scope, session, 0).await?;
            if rows.is_empty() {
                return Ok(());
            }
            output.sessions += 1;
            if is_up_to_date(&project, session, &rows, level, by_model).await? {
                output.up_to_date += 1;
                return Ok(());
            }
            let (session, focus) = (session.clone(), String::new());
            let wanted = Wanted { session, rows, level, max_tokens: None, focus, by_model };
            if let Some(at_most) = &mut output.at_most {
                let estimate::Estimate { requests, input, output, cost_usd, likely_usd, .. } =
                    estimate::of(engine, &project, &wanted).await?;
                at_most.add(AtMost { requests, input, output, cost_usd, likely_usd });
            } else {
                let made = make::make(engine, caller, &project, wanted, make::Keeping::Now(&project)).await?;
                let is_extractive = made.provider == "extractive";
                output.extractive += usize::from(is_extractive);
                output.cost_usd += made.cost_usd;
                unanswered_in_a_row = if made.is_silent { unanswered_in_a_row + 1 } else { 0 };
                if unanswered_in_a_row == PATIENCE {
                    by_model = false;
                    let why = made.notices.last().cloned().unwrap_or_default();
                    output.notices.push(format!(
                        "{PATIENCE} sessions in a row got no answer, so no model was asked from then on: {why}"
                    ));
                }
            }
            output.summarised += 1;
            Ok::<(), tiro_base::error::Error>(())
        };
        // If one session fails, the loop continues with the next.
        if let Err(error) = step.await {
            output.failed.push(format!("`{}`: {error}", quoted(session)));
        }
    }
    progress(sessions.len(), sessions.len());
    Ok(output)
}

async fn sessions(project: &OpenProject) -> Result<Vec<SessionId>> {
    let mut sessions = Vec::new();
    loop {
        let page = project.store.sessions(&project.scope, sessions.len(), PAGE).await?;
        let is_last = page.len() < PAGE;
        sessions.extend(page.into_iter().map(|row| row.id));
        if is_last {
            return Ok(sessions);
        }
    }
}

/// Returns whether the session has a summary that was made from exactly the messages `rows`. If `by_model` is true,
/// only a summary written by a model counts.
async fn is_up_to_date(
    project: &OpenProject,
    session: &SessionId,
    rows: &[MessageRow],
    level: Level,
    by_model: bool,
) -> Result<bool> {
    let stored = project.store.summaries(&project.scope, session, Some(level)).await?;
    let hash = source_hash(rows.iter().map(|row| &row.id));
    Ok(stored.iter().any(|stored| {
        stored.summary.source_hash == hash && !(by_model && stored.summary.provider == "extractive")
    }))
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let done = if self.dry_run { "Would summarise" } else { "Summarised" };
        let of = counted(self.sessions, "session", "sessions");
        let mut text = format!("{done} {} of {of}", self.summarised);
        if self.up_to_date > 0 {
            let _ = write!(text, ", {} up to date", self.up_to_date);
        }
        match (&self.at_most, &self.provider) {
            (Some(at_most), Some(provider)) if at_most.requests > 0 => {
                let _ = write!(text, ": {provider} would get {at_most}");
            }
            (None, Some(provider)) if self.summarised > self.extractive => {
                let by = self.summarised - self.extractive;
                let _ = write!(text, "; {by} by {provider}, cost ${:.4}", self.cost_usd);
            }
            _ if self.summarised > 0 => text += ", by choosing sentences",
            _ => {}
        }
        text.push('.');
        for failed in self.failed.iter().take(SHOWN) {
            let _ = write!(text, "\nFailed: {failed}.");
        }
        if self.failed.len() > SHOWN {
            let _ = write!(text, "\nFailed: {} more.", self.failed.len() - SHOWN);
        }
        text + &common::footnotes(&[], 0, &self.notices)
    }
}
