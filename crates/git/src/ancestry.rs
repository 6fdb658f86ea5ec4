//! Finds out which commits are ancestors of others, quickly even in a long history.
//!
//! The ancestors are looked up in the [`Graph`]. Each commit is read into the graph only once, in about 10 µs.
//! [`Repository::unsaved_graph`] encodes the commits that were read, so that the next process can load them with
//! [`Repository::take_graph`]. If the time runs out while commits are read, the commits read so far are kept, and the
//! next call continues from there.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use super::commit;
use super::graph::{Graph, GraphPart};
use super::repository::Repository;
use super::sha::Sha;

/// How many commits are read before the clock is looked at again.
const READS_PER_LOOK: usize = 64;

/// Whether a commit can be reached from the given tips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The commit is one of the tips or an ancestor of one.
    Yes,
    /// The commit is neither a tip nor an ancestor of one.
    No,
    /// Time ran out before the history was read far enough.
    Unknown,
}

impl Repository {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.graph_stamp();
        if graph.stamp.as_ref() != Some(&stamp) {
            // The shallow history was deepened: the commits at its former end now have parents, so the old graph is
            // wrong.
            *graph = Graph::new(stamp);
        }
        graph
    }

    /// Returns a text that identifies the commits at which a shallow history ends. The text is empty for a complete
    /// history.
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

    /// Returns whether the graph is empty: this process has neither read a commit nor loaded one from an earlier
    /// process.
    pub fn is_graph_empty(&self) -> bool {
        self.graph().shas.is_empty()
    }

    /// Loads the parts of the graph that earlier processes stored, in the order in which they were stored. Loading
    /// stops at the first part that doesn't continue the previous one. The commits of that part and of later parts are
    /// read from git again.
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

    /// Returns the commits that were read since the last [`Repository::saved_graph`]. Returns `None` if no commit was
    /// read since then, or if some ancestor of the commits in the graph could not be read.
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

    /// Records that `part` is stored, so that [`Repository::unsaved_graph`] doesn't return it again.
    pub fn saved_graph(&self, part: &GraphPart) {
        let mut graph = self.graph();
        if graph.saved == part.first && graph.stamp.as_ref() == Some(&part.stamp) {
            graph.saved = part.first + part.count;
        }
    }

    /// Reads those of `tips` and their ancestors that were not read before, and stops at the time `until`. Returns
    /// whether all of `tips` and their ancestors have been read.
    ///
    /// Commits that can't be read are left out.
    pub fn explore(&self, tips: &[Sha], until: Option<Instant>) -> bool {
        let mut graph = self.graph();
        if tips.iter().all(|tip| graph.numbers.contains_key(tip)) {
            return true;
        }
        let shallow = self.shallow().unwrap_or_default();
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut parents_of = |sha: &Sha| {
            let parents = commit::parents(&mut objects, sha, &mut buffer).ok()?;
            Some(if shallow.contains(sha) { Vec::new() } else { parents })
        };
        let mut reads = 0;
        let mut is_over = || {
            reads += 1;
            reads % READS_PER_LOOK == 0 && until.is_some_and(|until| Instant::now() >= until)
        };
        let mut missing = HashSet::new();
        tips.iter().all(|tip| graph.add_history(*tip, &mut parents_of, &mut missing, &mut is_over))
    }

    /// Returns for each of `shas`, in order, whether it is one of `tips` or an ancestor of one. Commits that were not
    /// read yet are read first, until the time `until`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn ancestors_are_right_for_any_tips_and_kept_for_the_next_process() {
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

        // An invalid part is ignored, and its commits are read again.
        let torn = GraphPart { bytes: part.bytes[..part.bytes.len() - 3].to_vec(), ..part };
        let third = fixture.repository();
        third.take_graph(&[torn]);
        check(&third);
    }

    #[test]
    fn commits_read_before_the_deadline_are_kept() {
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
