//! Finds the commits that are new since the branches were last looked at.
//!
//! The walk starts at the new tips and at the tips of the last look, and always visits the newest commit first, like
//! `git rev-list NEW --not SEEN`. The walk ends when only seen commits are left to visit. So the time doesn't depend on
//! the length of the history. If a clock was wrong by more than a day, a few old commits may count as new.

use std::collections::{BinaryHeap, HashMap, HashSet};

use super::Stop;
use crate::commit;
use crate::repository::{Repository, Tip};
use crate::sha::Sha;
use tiro_base::error::{Error, Kind, Result};

/// How far the walk continues back in time from the oldest new commit, in seconds. In this time span, the walk may find
/// that some commits that count as new were seen before.
const SLACK: i64 = 24 * 60 * 60;

/// The maximum number of commits that are visited: as many as the largest histories have.
const LIMIT: usize = 5_000_000;

#[derive(Default)]
struct Visit {
    was_seen: bool,
    is_open: bool,
    parents: Vec<Sha>,
}

#[derive(Default)]
struct Walk {
    visits: HashMap<Sha, Visit>,
    /// The commits to visit next, newest first.
    open: BinaryHeap<(i64, Sha)>,
    /// The number of commits in `open` that count as new.
    new: usize,
}

impl Repository {
    /// Returns the commits that can be reached from `tips`, but not from `seen`.
    ///
    /// A commit that no longer exists or can't be read counts as a commit without parents.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the file `shallow` can't be read, if more than five million commits are visited, or if `stop`
    /// is set.
    pub fn since(&self, tips: &[Tip], seen: &[Sha], stop: &Stop) -> Result<HashSet<Sha>> {
        let shallow = self.shallow()?;
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut read = |sha: &Sha| {
            let read = commit::parents_and_time(&mut objects, sha, &mut buffer);
            let (parents, time) = read.unwrap_or((Vec::new(), i64::MIN));
            (if shallow.contains(sha) { Vec::new() } else { parents }, time)
        };
        let mut walk = Walk::default();
        for sha in seen {
            walk.reach(*sha, true, &mut read);
        }
        for tip in tips {
            walk.reach(tip.sha, false, &mut read);
        }
        let mut oldest = i64::MAX;
        while let Some((time, sha)) = walk.open.pop() {
            if walk.new == 0 && time < oldest.saturating_sub(SLACK) {
                break;
            }
            if stop.is_set() || walk.visits.len() > LIMIT {
                return Err(too_long());
            }
            let visit = walk.visits.get_mut(&sha).expect("an open commit was reached before");
            visit.is_open = false;
            let (was_seen, parents) = (visit.was_seen, visit.parents.clone());
            if !was_seen {
                walk.new -= 1;
                oldest = oldest.min(time);
            }
            for parent in parents {
                walk.reach(parent, was_seen, &mut read);
            }
        }
        Ok(walk.visits.into_iter().filter(|(_, visit)| !visit.was_seen).map(|(sha, _)| sha).collect())
    }
}

impl Repository {
    /// Walks back from the branches, and stops on each path at the first commit made before `time`. Returns the commits
    /// where it stopped. `time` is in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The same as for [`Repository::since`].
    pub fn before(&self, time: i64, stop: &Stop) -> Result<Vec<Sha>> {
        let shallow = self.shallow()?;
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut left: Vec<Sha> = self.tips().found.into_iter().map(|tip| tip.sha).collect();
        let mut reached: HashSet<Sha> = left.iter().copied().collect();
        let mut before = Vec::new();
        while let Some(sha) = left.pop() {
            if stop.is_set() || reached.len() > LIMIT {
                return Err(too_long());
            }
            let Ok((parents, made)) = commit::parents_and_time(&mut objects, &sha, &mut buffer) else {
                continue;
            };
            if made < time {
                before.push(sha);
            } else if !shallow.contains(&sha) {
                left.extend(parents.into_iter().filter(|parent| reached.insert(*parent)));
            }
        }
        Ok(before)
    }
}

fn too_long() -> Error {
    Error::new(Kind::Git, "finding the new commits takes longer than a call may take")
        .hint("run `tiro import git`, which has no time limit")
}

impl Walk {
    /// Records that the walk reaches `sha`, from a child or as a tip. `was_seen` is true if this child or tip was seen
    /// before.
    fn reach(&mut self, sha: Sha, was_seen: bool, read: &mut impl FnMut(&Sha) -> (Vec<Sha>, i64)) {
        let is_known = self.visits.contains_key(&sha);
        if !is_known {
            let (parents, time) = read(&sha);
            self.visits.insert(sha, Visit { was_seen, is_open: true, parents });
            self.open.push((time, sha));
            self.new += usize::from(!was_seen);
            return;
        }
        // The commit may have counted as new until now. If it was in fact seen, its ancestors were seen too.
        let mut left = if was_seen { vec![sha] } else { Vec::new() };
        while let Some(sha) = left.pop() {
            let Some(visit) = self.visits.get_mut(&sha).filter(|visit| !visit.was_seen) else { continue };
            visit.was_seen = true;
            self.new -= usize::from(visit.is_open);
            left.extend(visit.parents.iter().copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::testing::Fixture;

    /// A small random generator, which makes the same histories at every run.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn the_new_commits_are_those_that_git_lists() {
        let mut state = 7;
        for _ in 0..12 {
            let fixture = Fixture::new();
            let mut stream = String::new();
            for mark in 1..=30_u64 {
                // Clocks are wrong by up to four hours, and branches begin anywhere.
                let time = 1_700_000_000 + mark * 3600 - next(&mut state) % 14_400;
                let parent = |state: &mut u64| next(state) % (mark - 1) + 1;
                writeln!(
                    stream,
                    "commit refs/heads/b{mark}\nmark :{mark}\ncommitter A <a> {time} +0000\ndata 1\nx"
                )
                .unwrap();
                if mark > 1 && !next(&mut state).is_multiple_of(8) {
                    let (first, second) = (parent(&mut state), parent(&mut state));
                    writeln!(stream, "from :{first}").unwrap();
                    if second != first && next(&mut state).is_multiple_of(3) {
                        writeln!(stream, "merge :{second}").unwrap();
                    }
                }
                stream.push('\n');
            }
            fixture.git_in(&fixture.path, &["fast-import", "--quiet"], stream.as_bytes());
            let repository = fixture.repository();
            for _ in 0..6 {
                let mut some = |count: u64| -> Vec<String> {
                    (0..next(&mut state) % count).map(|_| format!("b{}", next(&mut state) % 30 + 1)).collect()
                };
                let (new, seen) = (some(4), some(4));
                if new.is_empty() {
                    continue;
                }
                let not = seen.iter().map(|name| format!("^{name}"));
                let args: Vec<String> =
                    ["rev-list".to_owned()].into_iter().chain(new.clone()).chain(not).collect();
                let expected = fixture.git(&args.iter().map(String::as_str).collect::<Vec<_>>());
                let mut expected: Vec<Sha> = expected.lines().map(|line| line.parse().unwrap()).collect();
                let sha = |name: &String| -> Sha { fixture.git(&["rev-parse", name]).parse().unwrap() };
                let tips: Vec<Tip> = new.iter().map(|name| Tip { branch: None, sha: sha(name) }).collect();
                let seen: Vec<Sha> = seen.iter().map(sha).collect();
                let found = repository.since(&tips, &seen, &Stop::default()).unwrap();
                let mut found: Vec<Sha> = found.into_iter().collect();
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{args:?}");
            }
        }
    }
}
