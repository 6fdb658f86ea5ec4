//! Judges which sessions led to a commit.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::facts::{Call, Change, ChangedLines, Commit};
use crate::tuning::{
    AFTER_A_DAY, AFTER_A_WEEK, AMENDED_WITHIN, CALL_AT_COMMIT_TIME, CALL_AT_REFLOG_TIME, DAY, EXPLAINED,
    FILE_ALONE, FILE_IN_OTHER_COMMIT, FURTHER_FILE, HALF_OF_LINES, HORIZON, MANY_WRITERS, MOST_BY_FILES,
    NO_LINES, ONLY_OTHER_TREE, OTHER_TREE, PRINTED_ID, SOME_LINES,
};
use tiro_base::memory::Millis;
use tiro_store::SessionKey;
use tiro_store::tuning::LEAST_CONFIDENCE;

/// An event counts as before a commit if it happened at most this many milliseconds after the commit's time. Git cuts
/// the time of a commit to whole seconds.
pub const SECOND: Millis = 999;

/// Commits, and the actions of sessions around the time of these commits.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The commits, sorted by time.
    pub commits: Vec<Commit>,
    /// The changes of files, sorted by time.
    pub changes: Vec<Change>,
    /// The tool calls that make commits.
    pub calls: Vec<Call>,
    /// The names under which the user of the repository commits; empty if unknown.
    pub ours: HashSet<String>,
    by_path: HashMap<String, Vec<usize>>,
    commits_of: HashMap<String, Vec<usize>>,
    /// The lines that are no evidence, because too many sessions wrote them.
    common: HashSet<u32>,
    pub(super) by_sha: HashMap<String, usize>,
}

impl Evidence {
    /// Returns the evidence, with indexes by path and by commit id.
    pub fn new(
        commits: Vec<Commit>,
        changes: Vec<Change>,
        calls: Vec<Call>,
        ours: HashSet<String>,
    ) -> Evidence {
        let mut evidence = Evidence { commits, changes, calls, ours, ..Evidence::default() };
        for (place, change) in evidence.changes.iter().enumerate() {
            evidence.by_path.entry(change.path.clone()).or_default().push(place);
        }
        evidence.common = common(&evidence.changes);
        for (place, commit) in evidence.commits.iter().enumerate() {
            for path in &commit.files {
                if evidence.by_path.contains_key(path) {
                    evidence.commits_of.entry(path.clone()).or_default().push(place);
                }
            }
            evidence.by_sha.extend(commit.shas.iter().map(|sha| (sha.clone(), place)));
        }
        evidence
    }

    /// Returns the changes that the commit may contain: changes to its files in the month before it.
    fn before(&self, commit: &Commit) -> impl Iterator<Item = &Change> {
        let (from, until) = (commit.until - HORIZON, commit.until + SECOND);
        let within = move |places: &Vec<usize>| {
            let start = places.partition_point(|&place| self.changes[place].time < from);
            let end = places.partition_point(|&place| self.changes[place].time <= until);
            start..end
        };
        let places = commit.files.iter().filter_map(|path| self.by_path.get(path));
        places.flat_map(move |places| &places[within(places)]).map(|&place| &self.changes[place])
    }

    /// Returns the commits whose changed lines are needed to judge `commit`: the commit itself, and earlier commits
    /// that may already contain the changes to its files.
    pub fn commits_to_compare(&self, commit: usize) -> Vec<usize> {
        let own = &self.commits[commit];
        let mut wanted = HashSet::new();
        for change in self.before(own).filter(|change| !change.lines.is_empty()) {
            wanted.insert(commit);
            wanted.extend(self.between(change, commit));
        }
        let mut wanted: Vec<usize> = wanted.into_iter().collect();
        wanted.sort_unstable();
        wanted
    }

    /// Returns the other commits that changed the same file after `change` and before `commit`.
    fn between<'a>(&'a self, change: &'a Change, commit: usize) -> impl Iterator<Item = usize> + 'a {
        let until = self.commits[commit].until;
        let places = self.commits_of.get(&change.path).map(Vec::as_slice).unwrap_or_default();
        // The commits are sorted by author time. If a commit was amended after the change, it may contain the change
        // although its author time is earlier.
        let start = places.partition_point(|&place| self.commits[place].time < change.time - AMENDED_WITHIN);
        let end = places.partition_point(|&place| self.commits[place].time <= until);
        places[start.min(end)..end].iter().copied().filter(move |&other| {
            let each = &self.commits[other];
            let is_elsewhere = match (&each.here, &change.worktree) {
                (Some(here), Some(worktree)) => here.worktree != *worktree,
                // The session ran on another machine, so anyone may be the author.
                (_, None) => false,
                _ => self.is_foreign(each),
            };
            // A merge contains only changes that its parents already contain.
            let is_merge = each.parents.len() > 1;
            other != commit
                && !is_merge
                && each.until + SECOND >= change.time
                && each.until <= until
                && !is_elsewhere
        })
    }

    /// Returns whether someone other than the user of the repository is the author of the commit.
    fn is_foreign(&self, commit: &Commit) -> bool {
        !self.ours.is_empty() && commit.author.as_ref().is_some_and(|author| !self.ours.contains(author))
    }

    /// Returns the ancestors of `commit` that were made after `since`.
    pub(super) fn ancestors(&self, commit: usize, since: Millis) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut left = vec![commit];
        while let Some(next) = left.pop() {
            for parent in self.commits[next].parents.iter().filter_map(|sha| self.by_sha.get(sha)) {
                // A day is added, because clocks differ and a rebase can put older commits after newer ones.
                if self.commits[*parent].until >= since - DAY && found.insert(*parent) {
                    left.push(*parent);
                }
            }
        }
        found
    }

    /// Returns the sessions that led to the commit with their confidences, the highest confidence first. `lines`
    /// contains the changed lines of the commits that [`Evidence::commits_to_compare`] returns, as far as they can be
    /// read.
    pub fn behind(&self, commit: usize, lines: &HashMap<usize, ChangedLines>) -> Vec<(SessionKey, f64)> {
        let mut found = self.by_calls(&self.commits[commit]);
        for (session, confidence) in self.by_files(commit, lines) {
            let known = found.entry(session).or_default();
            *known = known.max(confidence);
        }
        let last = |session: SessionKey| {
            let changes = self.before(&self.commits[commit]).filter(|each| each.session == session);
            changes.map(|each| each.time).max()
        };
        let mut found: Vec<(SessionKey, f64)> =
            found.into_iter().filter(|(_, confidence)| *confidence >= LEAST_CONFIDENCE).collect();
        found.sort_by(|(one, sure), (other, surer)| {
            surer.total_cmp(sure).then_with(|| last(*other).cmp(&last(*one))).then(one.cmp(other))
        });
        found
    }

    fn by_calls(&self, commit: &Commit) -> HashMap<SessionKey, f64> {
        let mut found: HashMap<SessionKey, f64> = HashMap::new();
        for call in &self.calls {
            let confidence = if !call.sha.is_empty() {
                if commit.shas.iter().any(|sha| sha.starts_with(&call.sha)) { PRINTED_ID } else { 0.0 }
            } else {
                let is_within = |time: Millis| time + SECOND >= call.began && time <= call.ended + SECOND;
                match (&commit.here, &call.worktree) {
                    (Some(here), Some(worktree)) if here.worktree != *worktree => 0.0,
                    (Some(here), _) if is_within(here.time) => CALL_AT_REFLOG_TIME,
                    (None, _) if !commit.is_pulled && !self.is_foreign(commit) && is_within(commit.until) => {
                        CALL_AT_COMMIT_TIME
                    }
                    _ => 0.0,
                }
            };
            let known = found.entry(call.session).or_default();
            *known = known.max(confidence);
        }
        found
    }

    fn by_files(&self, place: usize, lines: &HashMap<usize, ChangedLines>) -> HashMap<SessionKey, f64> {
        let commit = &self.commits[place];
        let is_foreign = self.is_foreign(commit);
        let mut by_file: HashMap<(SessionKey, &str), Vec<&Change>> = HashMap::new();
        let is_of_others = is_foreign && commit.here.is_none();
        for change in self.before(commit).filter(|change| !is_of_others || change.worktree.is_none()) {
            by_file.entry((change.session, &change.path)).or_default().push(change);
        }
        let Some(first) = by_file.values().flatten().map(|change| change.time).min() else {
            return HashMap::new();
        };
        let ancestors = self.ancestors(place, first);
        let mut files: Vec<Held> = by_file
            .into_iter()
            .map(|((session, path), changes)| Held {
                session,
                ..self.held(place, path, &changes, &ancestors, lines)
            })
            .collect();
        files.sort_by(|one, other| (&one.path, one.session).cmp(&(&other.path, other.session)));
        // If it is known which lines a session wrote, and the commit contains none of them, the session's other changes
        // count little.
        let wrote = |held: &Held| (!held.lines.is_empty(), !held.shared.is_empty());
        let mut by_session: HashMap<SessionKey, (bool, bool)> = HashMap::new();
        for held in &files {
            let (others, shared) = by_session.entry(held.session).or_default();
            (*others, *shared) = (*others | wrote(held).0, *shared | wrote(held).1);
        }
        for held in &mut files {
            if by_session[&held.session] == (true, false) {
                held.by_file = held.by_file.min(FILE_IN_OTHER_COMMIT);
            }
        }
        let mut found: HashMap<SessionKey, (f64, usize)> = HashMap::new();
        for rivals in files.chunk_by(|one, other| one.path == other.path) {
            let own = lines.get(&place).and_then(|files| files.get(&rivals[0].path));
            let telling = own.map(|own| own.keys().filter(|hash| !self.is_common(hash, Some(own))).count());
            let mut weights = weights(rivals, telling.unwrap_or_default());
            for (held, weight) in rivals.iter().zip(&mut weights) {
                if (is_foreign || commit.is_pulled) && held.shared.is_empty() && !held.is_of_anyone {
                    *weight = 0.0;
                }
            }
            // If a change was made in two work trees, it was probably committed in the work tree in which the commit
            // was made.
            let mut both = rivals.iter().zip(&weights);
            let is_here = both.any(|(held, weight)| !held.is_elsewhere && *weight >= LEAST_CONFIDENCE);
            for (held, weight) in rivals.iter().zip(weights) {
                let weight = match held.is_elsewhere {
                    true if is_here => weight * OTHER_TREE,
                    true => weight * ONLY_OTHER_TREE,
                    false => weight,
                };
                let known = found.entry(held.session).or_default();
                *known = (known.0.max(weight), known.1 + usize::from(weight >= LEAST_CONFIDENCE));
            }
        }
        // Each further file increases the confidence a little.
        let sum = |(most, files): (f64, usize)| {
            if files > 1 { (most + FURTHER_FILE * (files - 1) as f64).min(MOST_BY_FILES) } else { most }
        };
        found.into_iter().map(|(session, weights)| (session, sum(weights))).collect()
    }

    /// Returns whether a line is too common to be evidence: many sessions wrote it, or the file contains it more than
    /// once.
    fn is_common(&self, hash: &u32, own: Option<&HashMap<u32, usize>>) -> bool {
        self.common.contains(hash) || own.is_some_and(|own| own.get(hash) > Some(&1))
    }

    /// Returns the part of a session's changes to a file that the commit contains.
    fn held(
        &self,
        place: usize,
        path: &str,
        changes: &[&Change],
        ancestors: &HashSet<usize>,
        lines: &HashMap<usize, ChangedLines>,
    ) -> Held {
        let commit = &self.commits[place];
        let own_lines = lines.get(&place).and_then(|files| files.get(path));
        let is_in_own_tree = |change: &Change| match (&commit.here, &change.worktree) {
            (Some(here), Some(worktree)) => here.worktree == *worktree,
            _ => true,
        };
        let is_of_anyone = changes.iter().all(|change| change.worktree.is_none());
        let mut held = Held { path: path.to_owned(), is_elsewhere: true, is_of_anyone, ..Held::default() };
        for change in changes {
            held.last = change.time;
            let taken: Vec<usize> = self.between(change, place).collect();
            let by_ancestor: Vec<usize> =
                taken.iter().copied().filter(|other| ancestors.contains(other)).collect();
            let age = commit.until - change.time;
            let is_old = age > 7 * DAY;
            let fresh = if is_old {
                AFTER_A_WEEK
            } else if age > DAY {
                AFTER_A_DAY
            } else {
                1.0
            };
            let telling: Vec<u32> =
                change.lines.iter().filter(|hash| !self.is_common(hash, own_lines)).copied().collect();
            let by_file = match own_lines.filter(|_| !telling.is_empty()) {
                None if !by_ancestor.is_empty() => 0.0,
                // No lines can be compared: the file couldn't be read, or no line of the change is evidence.
                None if taken.is_empty() => FILE_ALONE * fresh,
                None => FILE_IN_OTHER_COMMIT,
                Some(own) => {
                    // A line that an ancestor already committed can't be committed again.
                    let earlier = |hash: &u32| {
                        by_ancestor.iter().any(|other| {
                            lines
                                .get(other)
                                .and_then(|files| files.get(path))
                                .is_none_or(|lines| lines.contains_key(hash))
                        })
                    };
                    let left: Vec<u32> = telling.into_iter().filter(|hash| !earlier(hash)).collect();
                    // Lines that the file lacked when it was committed since, and that come back weeks later, were
                    // written again.
                    let came_back = is_old && !by_ancestor.is_empty();
                    let shared: Vec<u32> =
                        left.iter().filter(|hash| !came_back && own.contains_key(hash)).copied().collect();
                    held.last_share = shared.len() as f64 / left.len().max(1) as f64;
                    held.lines.extend(left);
                    held.shared.extend(shared);
                    NO_LINES
                }
            };
            if by_file > NO_LINES || !held.shared.is_empty() {
                held.is_elsewhere &= !is_in_own_tree(change);
            }
            held.by_file = held.by_file.max(by_file);
        }
        held
    }
}

/// Returns the confidence of each of the `rivals`, which are sessions that changed the same file of the commit.
/// `telling` is the number of the commit's lines in this file that are evidence. Each line counts for only one session.
/// A session that changed the file in the commit's work tree is preferred, then the session with the largest share of
/// its lines in the commit, then the session that changed the file last.
fn weights(rivals: &[Held], telling: usize) -> Vec<f64> {
    let mut owners: HashMap<u32, usize> = HashMap::new();
    let claim = |held: &Held| (!held.is_elsewhere, held.share(held.shared.len()), held.last);
    for (place, held) in rivals.iter().enumerate() {
        for hash in &held.shared {
            let owner = owners.entry(*hash).or_insert(place);
            if claim(held).partial_cmp(&claim(&rivals[*owner])).is_some_and(Ordering::is_gt) {
                *owner = place;
            }
        }
    }
    let is_explained = telling > 0 && owners.len() as f64 >= EXPLAINED * telling as f64;
    let weight = |(place, held): (usize, &Held)| {
        let owned = owners.values().filter(|owner| **owner == place).count();
        if owned > 0 {
            let by_lines = SOME_LINES + HALF_OF_LINES * (2.0 * held.share(owned)).min(1.0);
            held.by_file.max(by_lines)
        } else if !held.lines.is_empty() || is_explained {
            // Either other sessions explain the whole file, or the commit contains none of the lines that the session
            // wrote. In the second case, the commit probably doesn't contain the session's other changes to the file
            // either.
            held.by_file.min(FILE_IN_OTHER_COMMIT)
        } else {
            held.by_file
        }
    };
    rivals.iter().enumerate().map(weight).collect()
}

/// Returns the lines that are no evidence, because too many sessions wrote them.
fn common(changes: &[Change]) -> HashSet<u32> {
    let lines = |change: &Change| {
        let session = change.session;
        change.lines.clone().into_iter().map(move |hash| (hash, session))
    };
    let mut writers: Vec<(u32, SessionKey)> = changes.iter().flat_map(lines).collect();
    writers.sort_unstable();
    writers.dedup();
    let of_line = writers.chunk_by(|(one, _), (other, _)| one == other);
    of_line.filter(|writers| writers.len() >= MANY_WRITERS).map(|writers| writers[0].0).collect()
}

/// A session's changes to one file, as far as a commit contains them.
#[derive(Default)]
struct Held {
    session: SessionKey,
    path: String,
    /// Whether the changes were made on another machine, so that anyone may be the author of their commit.
    is_of_anyone: bool,
    /// The confidence that the session's changes to the file give if their lines in the commit are not counted.
    by_file: f64,
    /// The lines that the session changed and that no ancestor of the commit already contains.
    lines: HashSet<u32>,
    /// The part of `lines` that the commit contains.
    shared: HashSet<u32>,
    /// The commit contains this share of the lines of the session's last change.
    last_share: f64,
    /// The time when the session last changed the file.
    last: Millis,
    /// Whether all changes that count were made in a work tree other than the commit's.
    is_elsewhere: bool,
}

impl Held {
    /// Returns `count` as a share of all the session's lines. If the share of the session's last change is larger,
    /// returns that share.
    fn share(&self, count: usize) -> f64 {
        let of_all = count as f64 / self.lines.len().max(1) as f64;
        let of_last = self.last_share * count as f64 / self.shared.len().max(1) as f64;
        of_all.max(of_last)
    }
}
