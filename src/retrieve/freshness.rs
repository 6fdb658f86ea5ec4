//! Whether what a hit speaks of still stands.

use crate::git::{Reach, Repository, Sha};
use crate::memory::{Kind, Memory};

/// Commits read to tell whether one is reachable, for one hit. A large history is learnt over several searches.
const COMMITS_READ: usize = 20_000;

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

/// Returns what became of what `memory` speaks of; `shas` are the ids under which git may know it, for a commit.
///
/// What can't be told is taken for current. Reads git objects: call it for the few hits of an answer.
pub fn freshness(repository: Option<&Repository>, memory: &Memory, shas: &[String]) -> Freshness {
    let Some(repository) = repository else { return Freshness::Current };
    let Some(head) = repository.head().ok().and_then(|head| head.commit) else { return Freshness::Current };
    let made_at: Vec<Sha> = match memory.kind {
        Kind::Commit => shas.iter().filter_map(|sha| sha.parse().ok()).collect(),
        _ => memory.head_sha.iter().filter_map(|sha| sha.parse().ok()).collect(),
    };
    let Some(first) = made_at.first() else { return Freshness::Current };
    let standing: Vec<&Sha> = made_at.iter().filter(|sha| repository.contains(sha)).collect();
    if standing.is_empty() {
        return Freshness::CommitGone;
    }
    let is_elsewhere = |sha: &&&Sha| repository.is_reachable(&head, sha, COMMITS_READ) == Reach::No;
    if standing.iter().filter(is_elsewhere).count() == standing.len() {
        return Freshness::OtherBranch;
    }
    if let (Some(path), true) = (&memory.path, memory.kind != Kind::Commit) {
        let then = repository.blob_at(first, path).ok().flatten();
        let now = repository.blob_at(&head, path).ok().flatten();
        if then.is_some() && then != now {
            return Freshness::FileChanged;
        }
    }
    Freshness::Current
}
