//! Whether what a hit speaks of still stands.

use std::time::{Duration, Instant};

use crate::git::{Reach, Repository, Sha};
use crate::memory::{Kind, Memory};

/// Commits read by one search to tell whether others are reachable: some 20 ms. A large history is learnt over several.
const COMMITS_READ: usize = 2_000;

/// How long git is asked for one answer, whatever it is asked; what is left then is taken for current.
const PATIENCE: Duration = Duration::from_millis(400);

/// What became of what a memory speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing is known to have changed.
    Current,
    /// The file it speaks of differs from what it was.
    FileChanged,
    /// It was made on a branch that isn't part of what is checked out.
    OtherBranch,
    /// The commit it is, or was made at, is no longer in the repository.
    CommitGone,
}

impl Freshness {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Freshness::Current => "current",
            Freshness::FileChanged => "file_changed",
            Freshness::OtherBranch => "other_branch",
            Freshness::CommitGone => "commit_gone",
        }
    }
}

/// What a memory speaks of, as far as git can tell what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The commits that it is, under any of its ids, or that was checked out when it was made.
    made_at: Vec<Sha>,
    /// The file it speaks of.
    path: Option<String>,
}

impl Subject {
    /// Returns what `memory` speaks of; `commit_ids` are the ids under which git may know it, for a commit.
    pub fn of(memory: &Memory, commit_ids: &[String]) -> Subject {
        let is_commit = memory.kind == Kind::Commit;
        let shas = if is_commit { commit_ids } else { memory.head_sha.as_slice() };
        Subject {
            made_at: shas.iter().filter_map(|sha| sha.parse().ok()).collect(),
            path: memory.path.clone().filter(|_| !is_commit),
        }
    }
}

/// What became of a subject, and by which id it is still reached from what is checked out, as far as that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What became of it.
    pub freshness: Freshness,
    /// Of the commits it was made at, the one that is part of what is checked out.
    pub reached: Option<Sha>,
}

impl Standing {
    /// What is said where nothing can be told.
    pub const UNKNOWN: Standing = Standing { freshness: Freshness::Current, reached: None };
}

/// Returns what became of each of `subjects`. What can't be told is taken for current.
///
/// Reads git objects, which blocks: meant for the few hits of an answer.
pub fn standing(repository: &Repository, subjects: &[Subject]) -> Vec<Standing> {
    let head = repository.head().ok().and_then(|head| head.commit);
    let Some(head) = head else { return vec![Standing::UNKNOWN; subjects.len()] };
    let mut budget = COMMITS_READ;
    let began = Instant::now();
    let in_time = |subject: &Subject| match began.elapsed() < PATIENCE {
        true => one(repository, &head, subject, &mut budget),
        false => Standing::UNKNOWN,
    };
    subjects.iter().map(in_time).collect()
}

fn one(repository: &Repository, head: &Sha, subject: &Subject, budget: &mut usize) -> Standing {
    let Some(first) = subject.made_at.first() else { return Standing::UNKNOWN };
    let mut reached = None;
    let mut is_elsewhere = false;
    for sha in &subject.made_at {
        match repository.is_reachable(head, sha, *budget) {
            Reach::Yes => {
                reached = Some(*sha);
                is_elsewhere = false;
                break;
            }
            Reach::No => is_elsewhere = true,
            // What wasn't reached within the budget isn't looked for again in this answer.
            Reach::Unknown => *budget = 0,
        }
    }
    let freshness = match is_elsewhere {
        true if subject.made_at.iter().any(|sha| repository.contains(sha)) => Freshness::OtherBranch,
        true => Freshness::CommitGone,
        false if file_changed(repository, head, first, subject.path.as_deref()) => Freshness::FileChanged,
        false => Freshness::Current,
    };
    Standing { freshness, reached }
}

fn file_changed(repository: &Repository, head: &Sha, made_at: &Sha, path: Option<&str>) -> bool {
    let Some(path) = path else { return false };
    let then = repository.blob_at(made_at, path).ok().flatten();
    then.is_some() && then != repository.blob_at(head, path).ok().flatten()
}
