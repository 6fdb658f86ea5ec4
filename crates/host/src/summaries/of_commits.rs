//! Summarises commits with the model that the user named for summaries. The model gets the message of each commit, its
//! digest of changes, and its changed lines.
//!
//! The summary of a commit is a memory derived from the commit. A search finds the summary, and the summary is
//! forgotten, restored and purged together with the commit. Its id is derived from the commit's id, so two processes
//! store only one summary. If the model fails, the commit gets no summary, because sentences chosen from its message
//! would only repeat the message.

use std::time::Instant;

use serde::Serialize;

use crate::ask::{self, Bill, Dearest};
use crate::caller::{Caller, WritingCaller};
use crate::config::{Configured, Use};
use crate::engine::{Engine, Installation};
use crate::project::{OpenProject, WritableProject};
use crate::summaries::deadline;
use crate::summaries::estimate::{AtMost, PATIENCE};
use crate::summaries::make::AGAIN;
use crate::summaries::messages::{blocking, count};
use crate::summaries::wanted::UNKNOWN_WINDOW;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::{DAMAGED, Draft, Identity, Kind as MemoryKind, Level, Memory, MemoryId, Provenance};
use tiro_capture::import::git as import;
use tiro_digest::summarize::{self, Commit, Wish};
use tiro_embed::Loaded;
use tiro_git::{CommitReader, Repository, Sha};
use tiro_llm::{Request, catalogue};
use tiro_recall::remember::remember;
use tiro_redact::Redactor;
use tiro_store::{Matter, Outcome, Purpose, Sources};

/// The maximum number of bytes of changed lines that a model gets: about 5,000 tokens. Arbitrary.
const MOST_OF_DIFF: usize = 16 * 1024;

/// The number of commits that are read at once.
const STEP: usize = 64;

/// The error if the user named no model for summaries.
pub const NOBODY: &str = "a model summarises commits, and no provider is configured for summaries";

/// The arguments of `tiro summarize --commits`.
#[derive(Debug, Default)]
pub struct Args {
    /// The maximum number of commits to summarise; the newest come first.
    pub limit: Option<usize>,
    /// Whether to report only what summarising would need and cost.
    pub dry_run: bool,
}

/// The answer of `tiro summarize --commits`.
#[derive(Debug, Default, Serialize)]
pub struct Summarised {
    /// Whether this was a dry run, which asks no model.
    pub dry_run: bool,
    /// The number of commits without a summary that were considered.
    pub commits: usize,
    /// The number of these commits that have a summary now. In a dry run, the number of commits that would be sent to a
    /// model.
    pub summarised: usize,
    /// The provider that writes the summaries.
    pub provider: String,
    /// The commits that the model failed to summarise, each with the reason. They stay without a summary.
    pub failed: Vec<String>,
    /// In a dry run, the maximum number of requests, tokens and dollars that summarising needs.
    pub at_most: Option<AtMost>,
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// The number of tokens that left this machine.
    pub disclosed_tokens: u64,
    /// The number of chunks that are not embedded yet.
    pub pending: usize,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// Summarises the newest commits that have no summary. In a dry run, only returns what this would need. `progress` is
/// called with the number of commits done and their total.
///
/// Errors with [`Kind::Provider`] if no provider is named for summaries. An interrupted run can be repeated.
pub async fn summarise(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Summarised> {
    let Some(writer) = ask::may_ask(engine, Use::Summarize) else {
        return Err(
            Error::new(Kind::Provider, NOBODY).hint("`tiro provider add NAME --use summarize` adds one")
        );
    };
    let project = caller.writable_project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let rows = store.commits_without_summary(scope, args.limit.unwrap_or(usize::MAX)).await?;
    let mut output = Summarised {
        dry_run: args.dry_run,
        provider: writer.provider.name.clone(),
        at_most: args.dry_run.then(AtMost::default),
        ..Summarised::default()
    };
    let all = rows.len();
    let dearest = ask::dearest(engine, Use::Summarize)?;
    let mut silent_in_a_row = 0;
    'asking: for step in rows.chunks(STEP) {
        let commits = store.memories(scope, step.to_vec()).await?;
        let diffs = diffs(engine, &project, &commits).await?;
        for (commit, diff) in commits.iter().zip(diffs) {
            progress(output.commits, all);
            output.commits += 1;
            // If the user purged the summary but not the commit, the commit gets no new summary.
            if store.is_purged(scope, &id(&commit.id)).await? {
                continue;
            }
            if commit.is_damaged {
                let name = commit.source_id.as_deref().unwrap_or(commit.id.as_str());
                output.failed.push(format!("{name:.12}: {DAMAGED}"));
                continue;
            }
            if let Some(at_most) = &mut output.at_most {
                let (writer, dearest, text) = (writer.clone(), dearest.clone(), commit.text.clone());
                at_most.add(blocking(move || estimate(&writer, &dearest, &text, &diff)).await?);
                output.summarised += 1;
                continue;
            }
            let asked = make(engine, caller, &writer, commit, &diff).await?;
            output.cost_usd += asked.cost_usd;
            output.disclosed_tokens += asked.disclosed_tokens;
            silent_in_a_row = if asked.is_silent { silent_in_a_row + 1 } else { 0 };
            let why = match asked.text {
                Ok(text) => {
                    let (outcome, pending) = keep(engine, &project, commit, text).await?;
                    output.pending += pending;
                    output.summarised += usize::from(outcome != Outcome::Forgotten);
                    continue;
                }
                Err(why) => why,
            };
            let name = commit.source_id.as_deref().unwrap_or(commit.id.as_str());
            let message = why.to_string();
            output.failed.push(format!("{name:.12}: {message}"));
            if why.kind() == Kind::Limit || silent_in_a_row == PATIENCE {
                output.notices.push(format!("the other commits were not summarised: {message}"));
                break 'asking;
            }
        }
    }
    progress(all, all);
    if output.pending > 0 {
        engine.wrote();
    }
    Ok(output)
}

/// The result of asking about one commit.
struct CommitAnswer {
    text: Result<String>,
    cost_usd: f64,
    disclosed_tokens: u64,
    /// Whether no request was answered.
    is_silent: bool,
}

async fn make(
    engine: &Engine,
    caller: &Caller,
    writer: &Configured,
    commit: &Memory,
    diff: &str,
) -> Result<CommitAnswer> {
    let began = Instant::now();
    let options = &engine.config().options;
    let deadline = deadline::while_waiting(engine, writer);
    let secret = engine.installation().await?.secret;
    let (message, changes) = import::split(&commit.text);
    let wish = wish(writer, message, &secret);
    let bill = Bill::default();
    let matter = Matter::of(Purpose::Commit, Sources::memories([commit.id.as_str().to_owned()]));
    let asking = |request: Request| {
        let (bill, matter) = (&bill, &matter);
        let (temperature, usual_temperature) = options.summary_temperatures();
        let request = Request { temperature, usual_temperature, ..request };
        async move {
            let left = deadline.saturating_sub(began.elapsed());
            Ok(ask::ask(engine, caller, Use::Summarize, matter, &request, left, bill).await?.reply)
        }
    };
    let source = Commit { message, changes, diff };
    let made = summarize::commit_by_model(&source, &wish, &|text| count(text), asking);
    let late = || Err(Error::new(Kind::Provider, format!("no summary after {} s", deadline.as_secs())));
    let text = tokio::time::timeout(deadline + deadline / 20, made).await.unwrap_or_else(|_| late());
    Ok(CommitAnswer {
        text,
        cost_usd: bill.total().dollars(),
        disclosed_tokens: bill.disclosed(),
        is_silent: !bill.is_answered(),
    })
}

/// Returns the maximum number of requests, tokens and dollars that summarising this commit needs. The cost includes a
/// second request in case the first answer is rejected, and a repetition of each request in case it fails.
pub fn estimate(writer: &Configured, dearest: &Dearest, text: &str, diff: &str) -> AtMost {
    let (message, changes) = import::split(text);
    let wish = wish(writer, message, &[0; 32]);
    // A commit that doesn't fit the model's window isn't sent.
    let Ok(request) = summarize::commit_request(&Commit { message, changes, diff }, &wish, &count) else {
        return AtMost::default();
    };
    let (sent, back) = (request.tokens(), request.max_output);
    let (input, output) = (2 * sent + summarize::SHOWN_AGAIN * wish.max_tokens + AGAIN, 2 * back);
    let likely = (sent, wish.max_tokens.min(back));
    let (cost_usd, likely_usd) = dearest.costs((input, output), likely);
    AtMost { requests: 2, input, output, cost_usd, likely_usd }
}

fn wish<'a>(writer: &Configured, message: &str, secret: &'a [u8; 32]) -> Wish<'a> {
    Wish {
        level: Level::Standard,
        max_tokens: summarize::length(Level::Standard, count(message)),
        focus: "",
        previous: None,
        window: catalogue::window(&writer.provider).unwrap_or(UNKNOWN_WINDOW),
        secret,
    }
}

/// Returns the redacted changed lines of each of `commits`, in their order. The text is empty for a commit that is not
/// in this clone.
async fn diffs(engine: &Engine, project: &OpenProject, commits: &[Memory]) -> Result<Vec<String>> {
    let shas: Vec<Option<Sha>> =
        commits.iter().map(|commit| commit.source_id.as_deref().and_then(|sha| sha.parse().ok())).collect();
    let Some(repository) = project.repository.clone() else { return Ok(vec![String::new(); shas.len()]) };
    let redactor = redactor(Some(&engine.installation().await?));
    let ignored = engine.config().ignored.clone();
    blocking(move || {
        let is_ignored = |path: &str| ignored.path(path);
        let mut reader = repository.reader(&is_ignored);
        shas.iter()
            .map(|sha| sha.map_or(String::new(), |sha| diff(&repository, &mut reader, &redactor, &sha)))
            .collect()
    })
    .await
}

/// Returns the redactor for diffs. It uses the installation's secret, if an installation is given.
pub fn redactor(installation: Option<&Installation>) -> Redactor {
    Redactor::new(installation.map_or([0; 32], |installation| installation.secret))
}

/// Returns the redacted changed lines of a commit, as a model gets them. Within this diff, different secrets get
/// different marks, so that a changed secret is visible as a change. The marks of different diffs can't be compared.
pub fn diff(
    repository: &Repository,
    reader: &mut CommitReader<'_>,
    redactor: &Redactor,
    sha: &Sha,
) -> String {
    if !repository.contains(sha) {
        return String::new();
    }
    reader.diff(sha, &redactor.within(&format!("diff {sha}")), MOST_OF_DIFF).unwrap_or_default()
}

/// Stores the summary of a commit. Returns the outcome and the number of its chunks that wait to be embedded.
async fn keep(
    engine: &Engine,
    project: &WritableProject,
    commit: &Memory,
    text: String,
) -> Result<(Outcome, usize)> {
    let mut draft = Draft::new(MemoryKind::Summary, Provenance::Derived, text, commit.time);
    draft.identity = Identity::Named(name(&commit.id));
    draft.references = vec![commit.id.clone()];
    draft.title.clone_from(&commit.title);
    draft.branch.clone_from(&commit.branch);
    let redactor = &project.redactor;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let random = || engine.random();
    let kept =
        remember(store, scope, redactor, &Loaded::default(), vec![draft], engine.now(), random, |_| {})
            .await?
            .receipt;
    let outcome = kept.outcomes.first().map_or(Outcome::Forgotten, |(_, outcome)| *outcome);
    Ok((outcome, kept.pending))
}

/// Returns the name from which the id of a commit's summary is derived.
fn name(commit: &MemoryId) -> String {
    format!("of commit {commit}")
}

/// Returns the id of the summary of a commit.
fn id(commit: &MemoryId) -> MemoryId {
    MemoryId::derive(MemoryKind::Summary, None, &name(commit))
}
