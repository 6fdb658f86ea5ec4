//! Imports the commits of the project's repository.

pub(super) mod authors;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::follow::graph;
use crate::follow::history::{self, Stored, Wanted};
use crate::follow::in_time::in_time;
use crate::follow::link::{self, Span, WorkTrees};
use crate::import::git::{self as import, CommitDraft};
use crate::sources::{Ignored, Sources, random};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::humanize::counted;
use tiro_base::memory::{CommitRecord, Draft, Identity, Kind as MemoryKind, Provenance};
use tiro_git::{History, KnownCommit, Listed, Outcome as Read, Repository, Sha, Stop, Tip, Tips};
use tiro_intake::Intake;
use tiro_intake::prepare::{Prepared, prepare_all};
use tiro_redact::{self, Redaction};
use tiro_store::Outcome;

/// The number of commits that one transaction stores. Such batches limit the memory used, and an interrupted import
/// continues after the last batch.
const BATCH: usize = 256;

/// The arguments of an import of commits.
#[derive(Debug, Default)]
pub struct Args {
    /// The number of threads that read commits.
    pub threads: usize,
    /// The maximum number of commits to import; the newest ones are chosen.
    pub limit: Option<usize>,
    /// Commits to import although no branch leads to them. Commits that no longer exist are skipped.
    pub also: Vec<Sha>,
    /// The time at which the import stops. Commits that are stored by then stay stored.
    pub until: Option<Instant>,
    /// Whether to import the whole history or only new commits.
    pub wanted: Wanted,
}

/// The result of an import of commits.
#[derive(Debug, Default)]
pub struct Imported {
    /// Commits stored by this call.
    pub imported: usize,
    /// Documents of the repository stored by this call.
    pub documents: usize,
    /// Commits that were stored before, either under the same id, or under another id if they make the same change.
    pub already_stored: usize,
    /// Commits that were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// Commits that `limit` left out, usually the older ones.
    pub left_out: usize,
    /// Whether git took too long, so that an unknown number of commits may be missing.
    pub is_unfinished: bool,
    /// Commits left out because they change only files that `ignore.paths` names.
    pub ignored: usize,
    /// Imported commits that are now linked to at least one session.
    pub linked: usize,
    /// Commits that could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// Kinds of incomplete or special commits, such as merges, each with its count.
    pub flags: Vec<Redaction>,
    /// Secrets replaced, by rule.
    pub redactions: Vec<Redaction>,
    /// Pieces of text that are not embedded yet.
    pub pending: usize,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// Reads the wanted commits that the store lacks, and stores them. `progress` is called with the number done and the
/// total.
///
/// Fails with [`Kind::Git`] if the project is not in a repository. An interrupted import can simply be repeated.
pub async fn import(
    (sources, intake): (&Sources, &dyn Intake),
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Imported> {
    let repository = repository(sources)?;
    let stored = Stored::of(intake).await?;
    let wanted = args.wanted;
    let (threads, until) = (args.threads.max(1), args.until);
    let found = {
        let (repository, known, stored) =
            (Arc::clone(repository), history::known(intake).await?, stored.clone());
        in_time(until, move |stop| find(&repository, &known, &stored, args, stop)).await
    };
    let Some(found) = found else { return Ok(Imported { is_unfinished: true, ..Imported::default() }) };
    let ImportPlan { history, tips, skipped, unreadable, notices } = found?;
    let mut output = Imported { unreadable, notices, left_out: skipped, ..Imported::default() };
    // If a call waits for this import, catching up updates the author names and reads the graph later.
    let learns = until.is_none();
    if learns {
        authors::follow(sources, intake, None).await?;
    }
    // The import is recorded as complete only if nothing was left out. A commit that is missing from this clone or
    // unreadable today may be readable later.
    let may_be_whole = |output: &Imported| {
        skipped == 0 && !output.is_unfinished && output.unreadable.is_empty() && !repository.is_shallow()
    };
    if history.commits.is_empty() {
        if learns {
            graph::learn(sources, intake, None).await?;
        } else {
            // Another process may have stored the commits but not linked them yet.
            let (span, left) = (span_of_head(intake, repository, until).await?, left(until));
            output.linked = link::link_span((sources, intake), &WorkTrees::of(sources), &span, left).await?;
        }
        if may_be_whole(&output) {
            stored.end(intake, wanted, &tips).await?;
        }
        return Ok(output);
    }
    stored.begin(intake, wanted, skipped).await?;

    let all = history.commits.len();
    let ignored = sources.machine.ignored.clone();
    let mut reading = read(Arc::clone(repository), history, threads, ignored);
    let mut done = 0;
    let mut span = Span::default();
    let work_trees = WorkTrees::of(sources);
    while let Some(batch) = next_batch(&mut reading, until, &mut output).await {
        done += batch.len();
        let drafts = drafts(batch, &work_trees, &mut span, &mut output);
        store(sources, intake, drafts, &mut output).await?;
        progress(done, all);
    }
    match may_be_whole(&output) {
        true => stored.end(intake, wanted, &tips).await?,
        false => stored.end_in_part(intake, wanted, &tips).await?,
    }
    if learns {
        graph::learn(sources, intake, None).await?;
    }
    output.linked = link::link_span((sources, intake), &work_trees, &span, left(until)).await?;
    Ok(output)
}

/// Returns how much time is left until `until`.
fn left(until: Option<Instant>) -> Option<Duration> {
    until.map(|until| until.saturating_duration_since(Instant::now()))
}

/// Returns the time of the commit that is checked out, if it is stored.
async fn span_of_head(
    intake: &dyn Intake,
    repository: &Arc<Repository>,
    until: Option<Instant>,
) -> Result<Span> {
    let mut span = Span::default();
    let repository = Arc::clone(repository);
    let head = in_time(until, move |_| repository.head().ok().and_then(|head| head.commit)).await.flatten();
    let Some(head) = head else { return Ok(span) };
    if let Some(time) = intake.time_of_commit(&head.to_string()).await? {
        span.widen(time);
    }
    Ok(span)
}

/// Returns the next batch of commits. Returns `None` if no batch is left, or if the batch isn't read by
/// `until`.
async fn next_batch(
    reading: &mut mpsc::Receiver<Vec<ReadCommit>>,
    until: Option<Instant>,
    output: &mut Imported,
) -> Option<Vec<ReadCommit>> {
    let Some(until) = until else { return reading.recv().await };
    timeout_at(until.into(), reading.recv()).await.unwrap_or_else(|_| {
        output.is_unfinished = true;
        None
    })
}

/// Returns the drafts to store, and counts the commits that are left out.
fn drafts(
    batch: Vec<ReadCommit>,
    work_trees: &WorkTrees,
    span: &mut Span,
    output: &mut Imported,
) -> Vec<Draft> {
    let mut drafts = Vec::with_capacity(batch.len());
    for commit in batch {
        match commit {
            Ok(None) => output.ignored += 1,
            Ok(Some(commit)) => {
                note(&mut output.flags, &commit);
                let branch = work_trees.branch(&commit.sha).map(str::to_owned);
                let draft = draft(CommitDraft { branch: branch.or(commit.branch.clone()), ..commit });
                span.widen(draft.time);
                drafts.push(draft);
            }
            Err(reason) => output.unreadable.push(reason),
        }
    }
    drafts
}

/// Stores the drafts and counts the results.
async fn store(
    sources: &Sources,
    intake: &dyn Intake,
    drafts: Vec<Draft>,
    output: &mut Imported,
) -> Result<()> {
    let Prepared { memories, redactions } = prepare_all(&sources.redactor, drafts, &mut random);
    let receipt = intake.remember(memories).await?;
    output.imported += receipt.count(Outcome::Stored);
    output.already_stored += receipt.count(Outcome::AlreadyStored) + receipt.count(Outcome::Conflict);
    output.forgotten += receipt.count(Outcome::Forgotten);
    output.pending += receipt.pending;
    for (rule, count) in redactions {
        tiro_redact::add(&mut output.redactions, &rule, count);
    }
    Ok(())
}

/// The plan for an import of a repository.
pub struct ImportPlan {
    /// The commits to import, oldest first.
    pub history: History,
    /// The commits from which the search started: those that branches point at, and those named in `also`.
    tips: Vec<Sha>,
    /// How many commits the limit leaves out.
    pub skipped: usize,
    /// Commits that can't be read, with the reason.
    pub unreadable: Vec<String>,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

/// Finds the commits that are wanted and not stored yet.
pub fn find(
    repository: &Repository,
    known: &HashSet<Sha>,
    stored: &Stored,
    args: Args,
    stop: &Stop,
) -> Result<ImportPlan> {
    let mut notices = Vec::new();
    if repository.is_shallow() {
        notices.push("the clone is shallow: older commits are not in it (`git fetch --unshallow`)".into());
    }
    if repository.lacks_alternates() {
        notices.push(
            "this repository uses objects of another repository, which Tiro does not read, so commits may be \
             missing (if you trust this repository, add its directory to the option `git.trusted`)"
                .into(),
        );
    }
    let Tips { found: mut tips, faults } = repository.tips();
    if !faults.is_empty() {
        let left_out = counted(faults.len(), "reference is", "references are");
        notices.push(format!("{left_out} left out: {}", faults.join("; ")));
    }
    // The main branch comes first, whichever branch is checked out.
    tips.sort_by_key(|tip| !matches!(tip.branch.as_deref(), Some("main" | "master" | "trunk")));
    let also = args.also.into_iter().filter(|sha| repository.contains(sha));
    tips.extend(also.map(|sha| Tip { branch: None, sha }));
    if tips.is_empty() {
        notices.push("the repository has no commits yet".into());
    }
    let mut history = match stored.seen(args.wanted) {
        Some(seen) => {
            let new = repository.since(&tips, seen, stop)?;
            let is_old = &mut |sha: &Sha| !new.contains(sha);
            let mut history = repository.history(&tips, KnownCommit::CoversAncestors, stop, is_old)?;
            history.commits.retain(|commit| !known.contains(&commit.sha));
            history
        }
        // After a finished import, all ancestors of each stored commit are stored. After an interrupted import,
        // ancestors of a stored commit may be missing.
        None => {
            repository.history(&tips, stored.covers(args.wanted), stop, &mut |sha| known.contains(sha))?
        }
    };
    let unreadable = history.unreadable.iter().map(|each| format!("{}: {}", each.sha, each.reason)).collect();
    let skipped = args.limit.map_or(0, |limit| history.commits.len().saturating_sub(limit));
    if skipped > 0 && stored.has_no_gaps(args.wanted) {
        history.commits.truncate(history.commits.len() - skipped);
        notices.push(format!("{skipped} newer commits were left out by `limit`"));
    } else if skipped > 0 {
        history.commits.drain(..skipped);
        notices.push(format!("{skipped} older commits were left out by `limit`"));
    }
    let tips = tips.into_iter().map(|tip| tip.sha).collect();
    Ok(ImportPlan { history, tips, skipped, unreadable, notices })
}

/// Returns the repository of the project. Fails with [`Kind::Git`] if there is none, or if it can't be read.
pub fn repository(sources: &Sources) -> Result<&Arc<Repository>> {
    sources.repository.as_ref().ok_or_else(|| match &sources.trouble {
        Some(trouble) => Error::new(Kind::Git, trouble.clone()),
        None => no_repository(&sources.root),
    })
}

/// Returns the error for an import in a directory without a repository.
pub fn no_repository(root: &Path) -> Error {
    Error::new(Kind::Git, format!("`{}` is not a git repository", quoted(root.display())))
        .hint("name a repository with --project")
}

/// The result of reading a commit: its draft, `None` if it is ignored, or the reason why it can't be read.
type ReadCommit = Result<Option<CommitDraft>, String>;

/// Reads the commits on another thread and sends them in batches. The thread reads only a few batches ahead of the
/// store, and stops when the receiver is dropped.
fn read(
    repository: Arc<Repository>,
    history: History,
    threads: usize,
    ignored: Ignored,
) -> mpsc::Receiver<Vec<ReadCommit>> {
    let (sender, receiver) = mpsc::channel(2);
    std::thread::spawn(move || {
        let shas: Vec<Sha> = history.commits.iter().map(|listed| listed.sha).collect();
        let mut listed = history.commits.iter();
        let mut batch = Vec::with_capacity(BATCH);
        repository.details(&shas, threads, &|path| ignored.path(path), |read| {
            batch.push(read_commit(read, &history, listed.next()));
            if batch.len() < BATCH && !sender.is_closed() {
                return ControlFlow::Continue(());
            }
            match sender.blocking_send(std::mem::take(&mut batch)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        // Sending fails only if the import was stopped and the receiver is gone.
        let _ = sender.blocking_send(batch);
    });
    receiver
}

fn read_commit(read: Read, history: &History, listed: Option<&Listed>) -> ReadCommit {
    let branch = listed.and_then(|listed| history.branch(listed));
    let commit = read.map_err(|each| format!("{}: {}", each.sha, each.reason))?;
    Ok((!commit.changes.is_ignored()).then(|| import::draft(&commit, branch)))
}

fn draft(commit: CommitDraft) -> Draft {
    let time = commit.author_time.seconds.saturating_mul(1000);
    let sha = commit.sha.to_string();
    let mut draft = Draft::new(MemoryKind::Commit, Provenance::GitCommit, commit.text, time);
    // A rebased or cherry-picked commit keeps its patch and its author time, so it gets the same identity.
    draft.identity = Identity::Named(match &commit.patch_id {
        // The message is part of the identity: a commit whose message was amended is stored as another text.
        Some(patch) => format!("patch:{patch}:{time}:{}", blake3::hash(commit.message.as_bytes()).to_hex()),
        None => format!("sha:{sha}"),
    });
    draft.indexed = Some(commit.indexed);
    draft.lead = Some(commit.message);
    draft.title = Some(commit.title);
    draft.speaker = Some(commit.author).filter(|author| !author.is_empty());
    draft.branch = commit.branch;
    draft.source_id = Some(sha.clone());
    draft.commit = Some(CommitRecord {
        sha,
        parents: commit.parents.iter().map(Sha::to_string).collect(),
        patch_id: commit.patch_id.map(|patch| patch.to_string()),
        files: commit.files,
    });
    draft
}

fn note(flags: &mut Vec<Redaction>, commit: &CommitDraft) {
    for flag in &commit.flags {
        tiro_redact::add(flags, flag.as_str(), 1);
    }
}
