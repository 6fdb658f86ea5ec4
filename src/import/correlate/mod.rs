//! Which conversations led to a commit (document 001 §5), and how sure that is. Pure.
//!
//! Evidence decides: the commit was made by a call of the session, or holds what the session wrote. A change counts for the
//! first commit of its file that follows it, and for a later one only with lines that the first left out; lines that were
//! taken back before are in none. That a session was at work at the time, or read the file, says nothing. What somebody else
//! committed came of no session here, unless a call of it made the commit.
//!
//! A line that many sessions wrote, or that the file has more than once, decides nothing. Where several sessions wrote a line
//! of the commit, it counts for the one of whose lines the commit has more.
//!
//! Confidence is between 0 and 1. The numbers are set by hand, in an order that matters more than they do: a printed id, a
//! call at that time, lines that are in the commit, a file of which nothing more is known. Below [`LEAST`] there is no link.

mod replaced;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use crate::memory::{MemoryKey, Millis};
use crate::store::SessionKey;

pub use replaced::{Replaced, Seen, replaced, same_change};

/// The least confidence of a link.
pub const LEAST: f64 = 0.5;

/// How long before a commit a file may have been changed for it: what isn't committed after a month is not waited for.
pub const HORIZON: Millis = 30 * DAY;

/// What a commit's time leaves out: it is cut to whole seconds, and what led to it may have happened in that second.
pub const SECOND: Millis = 999;

const DAY: Millis = 24 * 60 * 60 * 1000;

/// How long after it was made first a commit may be amended and take in what was changed until then.
pub const AMENDED_WITHIN: Millis = 2 * DAY;

/// The id that git printed names the commit.
const NAMED: f64 = 0.99;

/// The commit was made while a call that commits ran in its work tree, by the reflog's time or by its own.
const TIMED: (f64, f64) = (0.9, 0.8);

/// A file of it was changed, and how is not known.
const FILE: f64 = 0.6;

/// The same, and another commit has had that file since.
const FILE_TAKEN: f64 = 0.2;

/// None of the lines that were changed are in it.
const OTHER_LINES: f64 = 0.05;

/// Some of the lines are in it: so much for one of very many, so much more for half of them. A sixth is enough for a link.
const LINES: (f64, f64) = (0.3, 0.65);

/// The share of a commit's lines in a file from which on nothing is left that a session of which no lines are known may have
/// written.
const EXPLAINED: f64 = 0.9;

/// Sessions that wrote a line from which on it tells nothing. Two may work on the same; more rarely do.
const MANY_WRITERS: usize = 3;

/// What a file counts that was changed in another work tree, where somebody changed it in the commit's own, or nobody did.
const OTHER_TREE: (f64, f64) = (0.4, 0.9);

/// A commit, as far as conversations are concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// Its key in the store.
    pub seq: MemoryKey,
    /// When the change was made.
    pub time: Millis,
    /// When the commit was made: later where it was amended. What was changed up to then may be in it.
    pub until: Millis,
    /// Its author's name.
    pub author: Option<String>,
    /// The beginning of its message.
    pub message: String,
    /// The paths it changed, relative to the root of the work tree.
    pub files: Vec<String>,
    /// Its ids.
    pub shas: Vec<String>,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// Where the repository's reflogs say that it was made.
    pub here: Option<Here>,
    /// Whether a reflog says that it came from another repository.
    pub is_pulled: bool,
}

/// Where a commit was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// When.
    pub time: Millis,
    /// In which work tree.
    pub worktree: String,
}

/// A change of a file by a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The session.
    pub session: SessionKey,
    /// When.
    pub time: Millis,
    /// The file.
    pub path: String,
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// Hashes of the lines it put in and took out, sorted; none where that isn't known.
    pub lines: Vec<u32>,
}

/// A call by which a session committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The session.
    pub session: SessionKey,
    /// When it began.
    pub began: Millis,
    /// When it was answered.
    pub ended: Millis,
    /// The beginning of the id that git printed; empty where it printed none.
    pub sha: String,
    /// The work tree.
    pub worktree: Option<String>,
}

/// Hashes of the lines that a commit changes, by file, with how often each stands in the file.
pub type ChangedLines = HashMap<String, HashMap<u32, usize>>;

/// Commits and what sessions did around their time.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The commits, in order of time.
    pub commits: Vec<Commit>,
    /// Changes of files, in order of time.
    pub changes: Vec<Change>,
    /// Calls that commit.
    pub calls: Vec<Call>,
    /// The names that the user of the repository goes by; none where that isn't known.
    pub ours: HashSet<String>,
    by_path: HashMap<String, Vec<usize>>,
    commits_of: HashMap<String, Vec<usize>>,
    /// Lines that many sessions wrote.
    common: HashSet<u32>,
    by_sha: HashMap<String, usize>,
}

impl Evidence {
    /// Returns the evidence, ready to be asked.
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

    /// Returns the changes that the commit may hold: of its files, within a month before it.
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

    /// Returns the commits whose changed lines tell something: those that may hold what a session wrote, and those that had
    /// the same files in between.
    pub fn wants_lines(&self, commit: usize) -> Vec<usize> {
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

    /// Returns the other commits of the file that were made since it was changed.
    fn between<'a>(&'a self, change: &'a Change, commit: usize) -> impl Iterator<Item = usize> + 'a {
        let until = self.commits[commit].until;
        let places = self.commits_of.get(&change.path).map(Vec::as_slice).unwrap_or_default();
        // They are in order of their first time; one that was amended since may have begun before the change.
        let start = places.partition_point(|&place| self.commits[place].time < change.time - AMENDED_WITHIN);
        let end = places.partition_point(|&place| self.commits[place].time <= until);
        places[start.min(end)..end].iter().copied().filter(move |&other| {
            let each = &self.commits[other];
            let is_elsewhere = match (&each.here, &change.worktree) {
                (Some(here), Some(worktree)) => here.worktree != *worktree,
                _ => self.is_foreign(each),
            };
            // A merge takes in nothing that its parents don't have.
            let is_merge = each.parents.len() > 1;
            other != commit
                && !is_merge
                && each.until + SECOND >= change.time
                && each.until <= until
                && !is_elsewhere
        })
    }

    /// Whether somebody else is the author.
    fn is_foreign(&self, commit: &Commit) -> bool {
        !self.ours.is_empty() && commit.author.as_ref().is_some_and(|author| !self.ours.contains(author))
    }

    /// Returns which of the other commits lead to this one, as far as they are among these, and not beyond `since`.
    fn ancestors(&self, commit: usize, since: Millis) -> HashSet<usize> {
        let mut found = HashSet::new();
        let mut left = vec![commit];
        while let Some(next) = left.pop() {
            for parent in self.commits[next].parents.iter().filter_map(|sha| self.by_sha.get(sha)) {
                // An hour more: clocks differ, and a rebase puts what is older behind what is newer.
                if self.commits[*parent].until >= since - DAY && found.insert(*parent) {
                    left.push(*parent);
                }
            }
        }
        found
    }

    /// Returns the sessions behind the commit, the likeliest first, with how sure that is. `lines` has the
    /// changed lines of those commits of [`Evidence::wants_lines`] that can be read.
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
            found.into_iter().filter(|(_, confidence)| *confidence >= LEAST).collect();
        found.sort_by(|(one, sure), (other, surer)| {
            surer.total_cmp(sure).then_with(|| last(*other).cmp(&last(*one))).then(one.cmp(other))
        });
        found
    }

    fn by_calls(&self, commit: &Commit) -> HashMap<SessionKey, f64> {
        let mut found: HashMap<SessionKey, f64> = HashMap::new();
        for call in &self.calls {
            let confidence = if !call.sha.is_empty() {
                if commit.shas.iter().any(|sha| sha.starts_with(&call.sha)) { NAMED } else { 0.0 }
            } else {
                let is_within = |time: Millis| time + SECOND >= call.began && time <= call.ended + SECOND;
                match (&commit.here, &call.worktree) {
                    (Some(here), Some(worktree)) if here.worktree != *worktree => 0.0,
                    (Some(here), _) if is_within(here.time) => TIMED.0,
                    (None, _) if !commit.is_pulled && !self.is_foreign(commit) && is_within(commit.until) => {
                        TIMED.1
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
        if !(is_foreign && commit.here.is_none()) {
            for change in self.before(commit) {
                by_file.entry((change.session, &change.path)).or_default().push(change);
            }
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
        // Of a session that wrote other lines than the commit has, and none that it has, nothing else is believed.
        let wrote = |held: &Held| (!held.lines.is_empty(), !held.shared.is_empty());
        let mut by_session: HashMap<SessionKey, (bool, bool)> = HashMap::new();
        for held in &files {
            let (others, shared) = by_session.entry(held.session).or_default();
            (*others, *shared) = (*others | wrote(held).0, *shared | wrote(held).1);
        }
        for held in &mut files {
            if by_session[&held.session] == (true, false) {
                held.by_file = held.by_file.min(FILE_TAKEN);
            }
        }
        let mut found: HashMap<SessionKey, (f64, usize)> = HashMap::new();
        for rivals in files.chunk_by(|one, other| one.path == other.path) {
            let own = lines.get(&place).and_then(|files| files.get(&rivals[0].path));
            let telling = own.map(|own| own.keys().filter(|hash| !self.is_common(hash, Some(own))).count());
            let mut weights = weights(rivals, telling.unwrap_or_default());
            for (held, weight) in rivals.iter().zip(&mut weights) {
                if (is_foreign || commit.is_pulled) && held.shared.is_empty() {
                    *weight = 0.0;
                }
            }
            // What is in two work trees at once is committed from one of them.
            let mut both = rivals.iter().zip(&weights);
            let is_here = both.any(|(held, weight)| !held.is_elsewhere && *weight >= LEAST);
            for (held, weight) in rivals.iter().zip(weights) {
                let weight = match held.is_elsewhere {
                    true if is_here => weight * OTHER_TREE.0,
                    true => weight * OTHER_TREE.1,
                    false => weight,
                };
                let known = found.entry(held.session).or_default();
                *known = (known.0.max(weight), known.1 + usize::from(weight >= LEAST));
            }
        }
        // Each further file makes it a little surer.
        let sum = |(most, files): (f64, usize)| {
            if files > 1 { (most + 0.02 * (files - 1) as f64).min(0.97) } else { most }
        };
        found.into_iter().map(|(session, weights)| (session, sum(weights))).collect()
    }

    /// Whether the line tells nothing of who wrote it: many did, or the file of the commit has it more than once.
    fn is_common(&self, hash: &u32, own: Option<&HashMap<u32, usize>>) -> bool {
        self.common.contains(hash) || own.is_some_and(|own| own.get(hash) > Some(&1))
    }

    /// Returns how much of what a session did to a file the commit holds.
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
        let mut held = Held { path: path.to_owned(), is_elsewhere: true, ..Held::default() };
        for change in changes {
            held.last = change.time;
            let taken: Vec<usize> = self.between(change, place).collect();
            let by_ancestor: Vec<usize> =
                taken.iter().copied().filter(|other| ancestors.contains(other)).collect();
            let age = commit.until - change.time;
            let fresh = if age > 7 * DAY {
                0.7
            } else if age > DAY {
                0.9
            } else {
                1.0
            };
            let telling: Vec<u32> =
                change.lines.iter().filter(|hash| !self.is_common(hash, own_lines)).copied().collect();
            let by_file = match own_lines.filter(|_| !telling.is_empty()) {
                None if !by_ancestor.is_empty() => 0.0,
                // The file couldn't be read, or of the change nothing is known that tells it from others.
                None if taken.is_empty() => FILE * fresh,
                None => FILE_TAKEN,
                Some(own) => {
                    // What an earlier commit of this history took isn't there to be taken again.
                    let earlier = |hash: &u32| {
                        by_ancestor.iter().any(|other| {
                            lines
                                .get(other)
                                .and_then(|files| files.get(path))
                                .is_none_or(|lines| lines.contains_key(hash))
                        })
                    };
                    let left: Vec<u32> = telling.into_iter().filter(|hash| !earlier(hash)).collect();
                    let shared: Vec<u32> =
                        left.iter().filter(|hash| own.contains_key(hash)).copied().collect();
                    held.last_share = shared.len() as f64 / left.len().max(1) as f64;
                    held.lines.extend(left);
                    held.shared.extend(shared);
                    OTHER_LINES
                }
            };
            if by_file > OTHER_LINES || !held.shared.is_empty() {
                held.is_elsewhere &= !is_in_own_tree(change);
            }
            held.by_file = held.by_file.max(by_file);
        }
        held
    }
}

/// Returns how sure each of the sessions that changed a file led to a commit, which changes so many lines of it that tell
/// something. A line counts for one of them: for the one of whose lines the commit has more, or else for the later.
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
            let by_lines = LINES.0 + LINES.1 * (2.0 * held.share(owned)).min(1.0);
            held.by_file.max(by_lines)
        } else if !held.lines.is_empty() || is_explained {
            // What else it did to the file was of the same kind, or nothing of the commit is left that it may have done.
            held.by_file.min(FILE_TAKEN)
        } else {
            held.by_file
        }
    };
    rivals.iter().enumerate().map(weight).collect()
}

/// Returns the lines that so many sessions wrote that they tell nothing of any.
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

/// What a commit holds of what a session did to a file.
#[derive(Default)]
struct Held {
    session: SessionKey,
    path: String,
    /// How sure it is by the file alone.
    by_file: f64,
    /// The lines that the session changed and that no commit took before.
    lines: HashSet<u32>,
    /// Those of them that are in the commit.
    shared: HashSet<u32>,
    /// Which share of the last change is in the commit.
    last_share: f64,
    /// When the session changed the file last.
    last: Millis,
    /// Whether it was done in another work tree than the commit was made in.
    is_elsewhere: bool,
}

impl Held {
    /// Returns which share of the lines `count` of those in the commit are, of all or of the last change.
    fn share(&self, count: usize) -> f64 {
        let of_all = count as f64 / self.lines.len().max(1) as f64;
        let of_last = self.last_share * count as f64 / self.shared.len().max(1) as f64;
        of_all.max(of_last)
    }
}
