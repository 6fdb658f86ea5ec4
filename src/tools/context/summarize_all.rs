//! Summarises every session that has no summary of a level yet, or one that is out of date.
//!
//! A summary is out of date where other messages are there by now than it was made of, and where sentences were chosen
//! for it while a model may write it. A session that fails is told of, and the others are summarised all the same.

use std::fmt::Write;

use serde::Serialize;

use crate::ask;
use crate::caller::Caller;
use crate::config::Use;
use crate::engine::Engine;
use crate::error::{Result, quoted};
use crate::humanize::counted;
use crate::memory::Level;
use crate::project::OpenProject;
use crate::scope::SessionId;
use crate::store::{MessageRow, source_hash};
use crate::summaries::estimate::{AtMost, PATIENCE};
use crate::summaries::make;
use crate::summaries::wanted::Wanted;
use crate::tools::common;
use crate::tools::context::summarize_conversation::Detail;

/// Sessions that are named at once.
const PAGE: usize = 500;

/// Failures that are told in words; the data has all.
const SHOWN: usize = 5;

/// What `tiro summarize --all` takes.
#[derive(Debug, Default)]
pub struct Args {
    /// How much each summary says; standard if left out.
    pub level: Option<Detail>,
    /// Whether a model may write them, where one is named.
    pub use_provider: bool,
    /// Only says what it would take and cost.
    pub dry_run: bool,
}

/// What `tiro summarize --all` answers.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Whether nothing was made.
    pub dry_run: bool,
    /// How much each summary says.
    pub level: String,
    /// Sessions there are.
    pub sessions: usize,
    /// Sessions that have such a summary of all that was said.
    pub up_to_date: usize,
    /// Sessions summarised; of a dry run, those that would be.
    pub summarised: usize,
    /// Those of them for which sentences were chosen.
    pub extractive: usize,
    /// Who writes them; absent where sentences are chosen.
    pub provider: Option<String>,
    /// Sessions that could not be summarised, with the reason.
    pub failed: Vec<String>,
    /// Of a dry run, what it takes at most.
    pub at_most: Option<AtMost>,
    /// What it cost in US dollars.
    pub cost_usd: f64,
    /// What else there is to know.
    pub notices: Vec<String>,
}

/// Summarises the sessions that need it, the latest first, or says what that would take; `progress` hears done and all.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let project = caller.project(engine).await?;
    let level = Level::from(args.level.unwrap_or_default());
    let writer = ask::may_ask(engine, Use::Summarize).filter(|_| args.use_provider);
    let mut by_model = writer.is_some();
    let sessions = sessions(project).await?;
    let mut output = Output {
        dry_run: args.dry_run,
        level: level.to_string(),
        provider: writer.map(|writer| writer.provider.name),
        at_most: args.dry_run.then(AtMost::default),
        ..Output::default()
    };
    let mut silent_in_a_row = 0;
    for (done, session) in sessions.iter().enumerate() {
        progress(done, sessions.len());
        let step = async {
            let rows = project.store.session_messages(&project.scope, session, 0).await?;
            if rows.is_empty() {
                return Ok(());
            }
            output.sessions += 1;
            if is_up_to_date(project, session, &rows, level, by_model).await? {
                output.up_to_date += 1;
                return Ok(());
            }
            let (session, focus) = (session.clone(), String::new());
            let wanted = Wanted { session, rows, level, max_tokens: None, focus, by_model };
            if let Some(at_most) = &mut output.at_most {
                let make::Estimate { requests, input, output, cost_usd, likely_usd, .. } =
                    make::estimate(engine, project, &wanted).await?;
                at_most.add(AtMost { requests, input, output, cost_usd, likely_usd });
            } else {
                let made = make::make(engine, caller, project, wanted).await?;
                let is_chosen = made.provider == "extractive";
                output.extractive += usize::from(is_chosen);
                output.cost_usd += made.cost_usd;
                silent_in_a_row = if made.is_silent { silent_in_a_row + 1 } else { 0 };
                if silent_in_a_row == PATIENCE {
                    by_model = false;
                    let why = made.notices.last().cloned().unwrap_or_default();
                    output.notices.push(format!("no model was asked from then on: {why}"));
                }
            }
            output.summarised += 1;
            Ok::<(), crate::error::Error>(())
        };
        // The others are none the worse for it.
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

/// Tells whether the newest summary of the whole session is of the messages `rows`, and by a model where one may write it.
async fn is_up_to_date(
    project: &OpenProject,
    session: &SessionId,
    rows: &[MessageRow],
    level: Level,
    by_model: bool,
) -> Result<bool> {
    let known = project.store.summaries(&project.scope, session, Some(level)).await?;
    let hash = source_hash(rows.iter().map(|row| &row.id));
    Ok(known.iter().any(|known| {
        known.summary.source_hash == hash && !(by_model && known.summary.provider == "extractive")
    }))
}

impl Output {
    /// Returns the answer in words.
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
