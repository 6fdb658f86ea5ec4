//! Which commits are part of the history of others, whatever its length.
//!
//! Each commit is read once, after its parents, and gets the next number. So whatever leads to a commit has a higher number,
//! and one pass over the numbers, downwards from a tip, marks all of its ancestors: a millisecond for 100,000 commits, kept
//! until the tip moves. Reading is what takes time, some 10 µs a commit; what was read is handed out as bytes
//! ([`Repository::unsaved_graph`]) and taken back by the next process ([`Repository::take_graph`]).
//!
//! An exploration that is stopped loses nothing: what it has read is kept, and the next one goes on.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use super::{Repository, Sha, commit};

/// Sets of ancestors that are kept: of what is checked out, of the branches, of the reflogs, and those before.
const KEPT: usize = 6;

/// Commits between two looks at the clock.
const LOOK: usize = 64;

/// The answer to whether a commit can be reached from some tips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is one of them or an ancestor.
    Yes,
    /// It is neither.
    No,
    /// The history was not read that far in the time that there was.
    Unknown,
}

/// Hashes a name by its first bytes: it is a hash itself.
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

/// The commits that were read, by number: the parents of each have lower ones.
#[derive(Default)]
pub(super) struct Graph {
    numbers: HashMap<Sha, u32, BuildHasherDefault<ByFirstBytes>>,
    shas: Vec<Sha>,
    /// Where the parents of each begin; one more than there are commits.
    first_parent: Vec<u32>,
    parents: Vec<u32>,
    /// Parents of commits that were read before theirs.
    waiting: HashMap<Sha, Vec<Sha>>,
    /// Where the history ended when it was read.
    stamp: Option<String>,
    /// How many commits are stored somewhere.
    saved: usize,
    /// Whether objects were missing: then it is not to be kept for later.
    is_partial: bool,
    /// The ancestors of the tips that were asked for last.
    reached: Vec<(Vec<Sha>, Arc<Vec<u64>>)>,
}

/// Commits that are to be kept for the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphPart {
    /// Where the history ended when they were read.
    pub stamp: String,
    /// The number of the first of them.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// They and their parents.
    pub bytes: Vec<u8>,
}

impl Repository {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        let mut graph = self.ancestry.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.graph_stamp();
        if graph.stamp.as_ref() != Some(&stamp) {
            // A shallow history that was deepened goes on where it ended.
            *graph = Graph { stamp: Some(stamp), first_parent: vec![0], ..Graph::default() };
        }
        graph
    }

    /// Returns something that changes when a shallow history ends elsewhere.
    fn graph_stamp(&self) -> String {
        let mut ends: Vec<String> =
            self.shallow().unwrap_or_default().iter().map(ToString::to_string).collect();
        ends.sort();
        if ends.is_empty() {
            String::new()
        } else {
            blake3::hash(ends.concat().as_bytes()).to_hex()[..16].into()
        }
    }

    /// Returns whether no commit was read yet, in this process or before it.
    pub fn knows_no_graph(&self) -> bool {
        self.graph().shas.is_empty()
    }

    /// Takes back what an earlier process read, in the order it was stored. What doesn't fit is left out, and read anew.
    pub fn take_graph(&self, parts: &[GraphPart]) {
        let mut graph = self.graph();
        if !graph.shas.is_empty() {
            return;
        }
        for part in parts {
            let fits = graph.stamp.as_ref() == Some(&part.stamp) && part.first == graph.shas.len();
            if !fits || !graph.append(&part.bytes) {
                break;
            }
            graph.saved = graph.shas.len();
        }
    }

    /// Returns what was read since it was stored last; `None` where there is nothing, or objects are missing.
    pub fn unsaved_graph(&self) -> Option<GraphPart> {
        let graph = self.graph();
        let (first, count) = (graph.saved, graph.shas.len() - graph.saved);
        (count > 0 && !graph.is_partial).then(|| GraphPart {
            stamp: graph.stamp.clone().unwrap_or_default(),
            first,
            count,
            bytes: graph.bytes(first),
        })
    }

    /// Notes that the part is stored.
    pub fn saved_graph(&self, part: &GraphPart) {
        let mut graph = self.graph();
        if graph.saved == part.first && graph.stamp.as_ref() == Some(&part.stamp) {
            graph.saved = part.first + part.count;
        }
    }

    /// Reads the commits that lead to `tips` and were not read yet, until `until`; returns whether that is all of them.
    ///
    /// Commits that can't be read are left out as if they were not there.
    pub fn explore(&self, tips: &[Sha], until: Option<Instant>) -> bool {
        let mut graph = self.graph();
        if tips.iter().all(|tip| graph.numbers.contains_key(tip)) {
            return true;
        }
        let shallow = self.shallow().unwrap_or_default();
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut missing = HashSet::new();
        let mut read = 0;
        for tip in tips {
            let mut path = vec![*tip];
            while let Some(sha) = path.last().copied() {
                if graph.numbers.contains_key(&sha) {
                    path.pop();
                    continue;
                }
                let is_read = graph.waiting.contains_key(&sha);
                if !is_read {
                    read += 1;
                    if read % LOOK == 0 && until.is_some_and(|until| Instant::now() >= until) {
                        return false;
                    }
                    match commit::parents(&mut objects, &sha, &mut buffer) {
                        Ok(parents) => {
                            let parents = if shallow.contains(&sha) { Vec::new() } else { parents };
                            graph.waiting.insert(sha, parents);
                        }
                        Err(_) => {
                            // What a branch names and nobody has is no gap in what can be read.
                            graph.is_partial |= path.len() > 1;
                            missing.insert(sha);
                            path.pop();
                            continue;
                        }
                    }
                }
                let unread = graph.waiting[&sha]
                    .iter()
                    .find(|parent| !graph.numbers.contains_key(parent) && !missing.contains(parent));
                match unread.copied() {
                    // Names of objects can't lead back to themselves, but a cycle must not hang either.
                    Some(parent) if path.len() <= graph.waiting.len() + 1 => path.push(parent),
                    _ => {
                        path.pop();
                        let parents = graph.waiting.remove(&sha).unwrap_or_default();
                        graph.add(sha, &parents);
                    }
                }
            }
        }
        true
    }

    /// Returns of each of `shas` whether it is one of `tips` or an ancestor of one, reading until `until` what was not read
    /// yet.
    pub fn reached(&self, tips: &[Sha], shas: &[Sha], until: Option<Instant>) -> Vec<Reach> {
        let is_whole = self.explore(tips, until);
        let mut graph = self.graph();
        let marked = graph.ancestors(tips);
        let of = |sha: &Sha| match graph.numbers.get(sha) {
            Some(&number) if marked[number as usize / 64] >> (number % 64) & 1 == 1 => Reach::Yes,
            _ if is_whole => Reach::No,
            _ => Reach::Unknown,
        };
        shas.iter().map(of).collect()
    }
}

impl Graph {
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

    /// Returns a bit for each number: whether the commit is one of `tips` or leads to one.
    fn ancestors(&mut self, tips: &[Sha]) -> Arc<Vec<u64>> {
        let words = self.shas.len().div_ceil(64);
        if let Some(place) = self.reached.iter().position(|(known, _)| known == tips) {
            let known = self.reached.remove(place);
            // What was read since may lead to a tip that was unknown before.
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

    /// Returns the commits from the number `first` on: 20 bytes of the name, how many parents, their numbers.
    fn bytes(&self, first: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.shas.len() - first) * 27);
        for number in first..self.shas.len() {
            let parents = self.parents_of(number);
            bytes.extend_from_slice(self.shas[number].as_bytes());
            bytes.extend_from_slice(&(parents.len() as u16).to_le_bytes());
            parents.iter().for_each(|parent| bytes.extend_from_slice(&parent.to_le_bytes()));
        }
        bytes
    }

    /// Adds commits as [`Graph::bytes`] returns them; `false`, with those before it, at one that makes no sense.
    fn append(&mut self, mut bytes: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tests::Fixture;

    #[test]
    fn ancestors_are_told_whatever_the_tips_and_kept_for_the_next_process() {
        let fixture = Fixture::new();
        let commits: Vec<Sha> = (0..20).map(|n| fixture.commit("a", n.to_string(), "step")).collect();
        fixture.git(&["checkout", "-q", "-b", "side", &commits[9].to_string()]);
        let side = fixture.commit("b", "1\n", "on the side");
        fixture.git(&["merge", "-q", "--no-edit", &commits[12].to_string()]);
        let merge = fixture.head();
        let repository = fixture.repository();
        let asked =
            [commits[0], commits[9], commits[12], commits[13], commits[19], side, merge, Sha([9; 20])];
        let check = |repository: &Repository| {
            use Reach::{No, Yes};
            let from = |tips: &[Sha]| repository.reached(tips, &asked, None);
            assert_eq!(from(&[commits[19]]), [Yes, Yes, Yes, Yes, Yes, No, No, No]);
            assert_eq!(from(&[merge]), [Yes, Yes, Yes, No, No, Yes, Yes, No]);
            assert_eq!(from(&[commits[9]]), [Yes, Yes, No, No, No, No, No, No]);
            assert_eq!(from(&[commits[19], merge]), [Yes, Yes, Yes, Yes, Yes, Yes, Yes, No]);
            assert_eq!(from(&[]), [No; 8]);
        };
        check(&repository);
        let part = repository.unsaved_graph().unwrap();
        repository.saved_graph(&part);
        assert_eq!((part.first, part.count, repository.unsaved_graph()), (0, 22, None));

        let again = fixture.repository();
        again.take_graph(std::slice::from_ref(&part));
        check(&again);
        assert_eq!(again.unsaved_graph(), None, "nothing was read again");
        let next = fixture.commit("c", "1\n", "further");
        assert_eq!(again.reached(&[next], &[side, commits[13]], None), [Reach::Yes, Reach::No]);
        assert_eq!(again.unsaved_graph().map(|part| (part.first, part.count)), Some((22, 1)));

        // What makes no sense is read anew.
        let torn = GraphPart { bytes: part.bytes[..part.bytes.len() - 3].to_vec(), ..part };
        let third = fixture.repository();
        third.take_graph(&[torn]);
        check(&third);
    }

    #[test]
    fn what_was_read_when_time_was_up_is_kept() {
        let fixture = Fixture::new();
        let mut stream = Vec::new();
        for n in 1..=1000 {
            stream.extend(
                format!("commit refs/heads/main\nmark :{n}\ncommitter A <a@b> {n} +0000\ndata 0\n\n").bytes(),
            );
        }
        fixture.git_in(&fixture.path, &["fast-import", "--quiet"], &stream);
        let tip: Sha = fixture.git(&["rev-parse", "main"]).parse().unwrap();
        let first: Sha = fixture.git(&["rev-list", "--max-parents=0", "main"]).parse().unwrap();
        let repository = fixture.repository();
        let over = Some(Instant::now());
        assert_eq!(repository.reached(&[tip], &[first], over), [Reach::Unknown]);
        let tries = (0..40).find(|_| repository.reached(&[tip], &[first], over) == [Reach::Yes]);
        assert!(tries.is_some_and(|tries| tries > 5), "64 commits at a time: {tries:?}");
    }
}
