//! Whether a commit is part of the history of another, asked for a handful of hits at every search.
//!
//! The ancestors of one tip are collected newest first, as far as the questions reach, and kept until the tip
//! changes; when the new tip continues the old one, only what is new is read. A question has a budget of commits,
//! so the first search in a large repository is not held up: it gets [`Reach::Unknown`] and the next one continues.

use std::collections::{BinaryHeap, HashSet};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{Repository, Sha, commit};

/// How long one question takes, whatever its budget: a commit can have megabytes.
const PATIENCE: Duration = Duration::from_millis(200);

/// The answer to whether a commit can be reached from a tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is the tip or an ancestor.
    Yes,
    /// It is neither.
    No,
    /// The budget was spent before this could be told.
    Unknown,
}

/// The ancestors of one tip that were found so far.
#[derive(Default)]
pub(super) struct Ancestry {
    tip: Option<Sha>,
    found: HashSet<Sha>,
    /// Found, with parents still to look at; the newest is at the top.
    frontier: BinaryHeap<(i64, Sha, Vec<Sha>)>,
    /// The tip before this one with its complete ancestors: met again, the walk need not go past it.
    before: Option<(Sha, HashSet<Sha>)>,
}

impl Repository {
    /// Returns whether `sha` is `tip` or one of its ancestors, reading at most `budget` commits more,
    /// or a thousand beyond it where the last one joins so many.
    ///
    /// 100,000 commits take about 4 MB once all are found. Commits that cannot be read have no ancestors.
    pub fn is_reachable(&self, tip: &Sha, sha: &Sha, budget: usize) -> Reach {
        let mut ancestry = self.ancestry.lock().unwrap_or_else(PoisonError::into_inner);
        // What is known needs no look at the objects, which takes a millisecond to begin with.
        if ancestry.tip == Some(*tip) {
            if ancestry.found.contains(sha) {
                return Reach::Yes;
            }
            if ancestry.frontier.is_empty() {
                return Reach::No;
            }
        }
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut read = |sha: Sha| {
            // A commit that cannot be read goes last and ends there.
            let (parents, time) =
                commit::parents_and_time(&mut objects, &sha, &mut buffer).unwrap_or((Vec::new(), i64::MIN));
            (time, sha, parents)
        };
        if ancestry.tip != Some(*tip) {
            ancestry.start(*tip);
            ancestry.frontier.push(read(*tip));
        }
        let (mut left, began) = (budget, Instant::now());
        while left > 0 && began.elapsed() < PATIENCE {
            if ancestry.found.contains(sha) {
                return Reach::Yes;
            }
            let Some((_, next, parents)) = ancestry.frontier.pop() else { return Reach::No };
            if let Some((_, found)) = ancestry.before.take_if(|(before, _)| *before == next) {
                ancestry.found.extend(found);
                continue;
            }
            left = left.saturating_sub(parents.len().max(1));
            for parent in parents {
                if ancestry.found.insert(parent) {
                    ancestry.frontier.push(read(parent));
                }
            }
        }
        match (ancestry.found.contains(sha), ancestry.frontier.is_empty()) {
            (true, _) => Reach::Yes,
            (false, true) => Reach::No,
            (false, false) => Reach::Unknown,
        }
    }
}

impl Ancestry {
    fn start(&mut self, tip: Sha) {
        let complete = self.frontier.is_empty();
        let found = std::mem::take(&mut self.found);
        self.before = self.tip.filter(|_| complete).map(|tip| (tip, found));
        self.frontier.clear();
        self.found = HashSet::from([tip]);
        self.tip = Some(tip);
    }
}
