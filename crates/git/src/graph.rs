//! The graph of commits, in which each commit is identified by a number.
//!
//! Each commit is read once, after its parents, and gets the next number. So every ancestor has a lower number than its
//! descendants. One pass from a tip's number down to 0 marks all ancestors of that tip. The pass takes a millisecond
//! for 100,000 commits, and its result is kept until the tip moves.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::sha::Sha;

/// How many sets of ancestors are kept. `HEAD`, the branches and the reflogs have two sets each: one for their present
/// state, and one for their state before the last move.
const KEPT: usize = 6;

/// Hashes a [`Sha`] by taking its first bytes, because it is a hash already.
#[derive(Default)]
pub(super) struct ByFirstBytes(u64);

impl Hasher for ByFirstBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 ^= u64::from_le_bytes(*first).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

/// The commits that were read. Each commit has a number that is higher than the numbers of its parents.
#[derive(Default)]
pub(super) struct Graph {
    /// The number of each commit.
    pub numbers: HashMap<Sha, u32, BuildHasherDefault<ByFirstBytes>>,
    /// The commits, by number.
    pub shas: Vec<Sha>,
    /// Where the parents of each commit begin in `parents`. One more entry at the end says where the parents of the
    /// last commit end.
    first_parent: Vec<u32>,
    parents: Vec<u32>,
    /// The commits that were read but have no number yet, because not all their parents have one. Each value lists the
    /// parents of a commit.
    waiting: HashMap<Sha, Vec<Sha>>,
    /// Identifies the commits at which a shallow history ended when the graph was read; `None` before the first read.
    pub stamp: Option<String>,
    /// How many of the commits are already stored for the next process.
    pub saved: usize,
    /// Whether an ancestor of some commit could not be read. Such a graph is not stored.
    pub is_partial: bool,
    /// The last results of [`Graph::ancestors`], each with the tips that it belongs to.
    reached: Vec<(Vec<Sha>, Arc<Vec<u64>>)>,
}

/// A run of commits, encoded to be stored for the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphPart {
    /// Identifies the commits at which a shallow history ended when the part was read; empty for a complete history.
    pub stamp: String,
    /// The number of the first commit of the part.
    pub first: usize,
    /// How many commits the part contains.
    pub count: usize,
    /// The encoded commits: the id of each and the numbers of its parents.
    pub bytes: Vec<u8>,
}

impl Graph {
    /// Returns an empty graph of the history that `stamp` identifies.
    pub fn new(stamp: String) -> Graph {
        Graph { stamp: Some(stamp), first_parent: vec![0], ..Graph::default() }
    }

    /// Adds `tip` and its ancestors, parents first. Stops and returns `false` as soon as `is_over` returns true; the
    /// commits added until then stay.
    ///
    /// `parents_of` reads the parents of a commit. If `parents_of` returns `None`, the commit can't be read. Such a
    /// commit is added to `missing` and left out of the graph.
    pub fn add_history(
        &mut self,
        tip: Sha,
        parents_of: &mut impl FnMut(&Sha) -> Option<Vec<Sha>>,
        missing: &mut HashSet<Sha>,
        is_over: &mut impl FnMut() -> bool,
    ) -> bool {
        let mut path = vec![tip];
        while let Some(sha) = path.last().copied() {
            if self.numbers.contains_key(&sha) {
                path.pop();
                continue;
            }
            if !self.waiting.contains_key(&sha) {
                if is_over() {
                    return false;
                }
                let Some(parents) = parents_of(&sha) else {
                    // A missing tip, such as that of a stale branch, leaves no gap in the graph; a missing ancestor
                    // does.
                    self.is_partial |= path.len() > 1;
                    missing.insert(sha);
                    path.pop();
                    continue;
                };
                self.waiting.insert(sha, parents);
            }
            let unread = self.waiting[&sha]
                .iter()
                .find(|parent| !self.numbers.contains_key(parent) && !missing.contains(parent));
            match unread.copied() {
                // Damaged data may say that a commit is its own ancestor. Even then, this must not loop forever.
                Some(parent) if path.len() <= self.waiting.len() + 1 => path.push(parent),
                _ => {
                    path.pop();
                    let parents = self.waiting.remove(&sha).unwrap_or_default();
                    self.add(sha, &parents);
                }
            }
        }
        true
    }

    fn add(&mut self, sha: Sha, parents: &[Sha]) {
        let number = self.shas.len() as u32;
        let known = parents.iter().filter_map(|parent| self.numbers.get(parent));
        self.parents.extend(known);
        self.first_parent.push(self.parents.len() as u32);
        self.shas.push(sha);
        self.numbers.insert(sha, number);
    }

    fn parents_of(&self, number: usize) -> &[u32] {
        &self.parents[self.first_parent[number] as usize..self.first_parent[number + 1] as usize]
    }

    /// Returns one bit for each commit: whether the commit is one of `tips` or an ancestor of one of them. The bit of
    /// the commit with the number `n` is bit `n % 64` of word `n / 64`.
    pub fn ancestors(&mut self, tips: &[Sha]) -> Arc<Vec<u64>> {
        let words = self.shas.len().div_ceil(64);
        if let Some(place) = self.reached.iter().position(|(known, _)| known == tips) {
            let known = self.reached.remove(place);
            // The kept result is complete only if it contains all tips: a tip may have been read after the result was
            // computed.
            let is_known = tips.iter().all(|tip| {
                self.numbers.get(tip).is_none_or(|&number| {
                    known.1.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
                })
            });
            if is_known {
                let mut marked = known.1;
                if marked.len() < words {
                    Arc::make_mut(&mut marked).resize(words, 0);
                }
                self.reached.push((known.0, Arc::clone(&marked)));
                return marked;
            }
        }
        let mut marked = vec![0_u64; words];
        let mut highest = 0;
        for &number in tips.iter().filter_map(|tip| self.numbers.get(tip)) {
            marked[number as usize / 64] |= 1 << (number % 64);
            highest = highest.max(number as usize + 1);
        }
        for number in (0..highest).rev() {
            if marked[number / 64] >> (number % 64) & 1 == 1 {
                for &parent in self.parents_of(number) {
                    marked[parent as usize / 64] |= 1 << (parent % 64);
                }
            }
        }
        let marked = Arc::new(marked);
        self.reached.push((tips.to_vec(), Arc::clone(&marked)));
        if self.reached.len() > KEPT {
            self.reached.remove(0);
        }
        marked
    }

    /// Encodes the commits from the number `first` on. A commit takes 20 bytes for its id, 2 for the count of its
    /// parents, and 4 for the number of each parent. Counts and numbers are little-endian.
    pub fn bytes(&self, first: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.shas.len() - first) * 27);
        for number in first..self.shas.len() {
            let parents = self.parents_of(number);
            bytes.extend_from_slice(self.shas[number].as_bytes());
            bytes.extend_from_slice(&(parents.len() as u16).to_le_bytes());
            parents.iter().for_each(|parent| bytes.extend_from_slice(&parent.to_le_bytes()));
        }
        bytes
    }

    /// Adds commits encoded by [`Graph::bytes`]. At the first invalid commit, stops and returns `false`; the commits
    /// before that one stay.
    pub fn append(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((sha, rest)) = bytes.split_first_chunk::<20>() {
            let number = self.shas.len() as u32;
            let Some((count, rest)) = rest.split_first_chunk::<2>() else { return false };
            let Some((parents, rest)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * 4)
            else {
                return false;
            };
            let parents: Vec<u32> = parents
                .chunks_exact(4)
                .map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
                .collect();
            if parents.iter().any(|parent| *parent >= number) {
                return false;
            }
            self.parents.extend(parents);
            self.first_parent.push(self.parents.len() as u32);
            self.shas.push(Sha(*sha));
            self.numbers.insert(Sha(*sha), number);
            bytes = rest;
        }
        bytes.is_empty()
    }
}
