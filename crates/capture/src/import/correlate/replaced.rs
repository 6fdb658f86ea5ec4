//! Finds commits that were replaced by newer ones because they were amended, rebased with changes, or squashed.
//!
//! An amended or rebased commit and its replacement have the same author and author time. A squash contains the files
//! of all its parts, in the state after the last part. The current commit and its ancestors do not count as replaced,
//! even if they show these signs.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::evidence::Evidence;
use super::facts::Commit;
use crate::tuning::HORIZON;
use tiro_base::memory::Millis;

/// The maximum number of commits that one squash may consist of. Arbitrary.
const MOST_PARTS: usize = 100;

/// A commit and its replacement, as indexes of [`Evidence::commits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replaced {
    /// The replaced commit.
    pub old: usize,
    /// The replacement.
    pub by: usize,
}

/// What git knows about the commits.
pub struct Seen<'a> {
    /// The commit that is checked out and its ancestors.
    pub current: &'a HashSet<usize>,
    /// The commits of all branches and their ancestors.
    pub on_branch: &'a HashSet<usize>,
    /// Pairs of ids. According to a reflog, the second commit of each pair amended the first.
    pub amended: &'a HashSet<(String, String)>,
    /// A function that returns whether two commits left all the given files in the same state.
    pub are_alike: &'a dyn Fn(&Commit, &Commit, &[String]) -> bool,
}

/// Returns the replaced commits with their replacements, in the order of the commits. Each replaced commit occurs once.
pub fn replaced(evidence: &Evidence, seen: &Seen<'_>) -> Vec<Replaced> {
    let commits = &evidence.commits;
    let mut found: BTreeSet<Replaced> = BTreeSet::new();
    let old: Vec<usize> = (0..commits.len()).filter(|place| !seen.current.contains(place)).collect();
    if old.is_empty() {
        return Vec::new();
    }
    for &old in old.iter().filter(|place| !seen.on_branch.contains(place)) {
        let again = |by: &usize| {
            let is_amended = || {
                let of = |one: &String| {
                    commits[*by].shas.iter().any(|other| seen.amended.contains(&(one.clone(), other.clone())))
                };
                commits[old].shas.iter().any(of)
            };
            *by != old && (is_same_change(evidence, old, *by) || is_amended())
        };
        // If there are several replacements, a replacement that is checked out or on a branch is preferred, then the
        // latest.
        let by = (0..commits.len()).filter(again).max_by_key(|&by| {
            (seen.current.contains(&by), seen.on_branch.contains(&by), commits[by].until, commits[by].key)
        });
        let is_later = |by: &usize| {
            seen.on_branch.contains(by)
                || (commits[*by].until, commits[*by].key) > (commits[old].until, commits[old].key)
        };
        found.extend(by.filter(is_later).map(|by| Replaced { old, by }));
    }
    for &by in seen.current {
        if let [_] = commits[by].parents[..] {
            squashed(evidence, seen, by, &old, &mut found);
        }
    }
    let mut once = HashSet::new();
    found.into_iter().filter(|each| once.insert(each.old)).collect()
}

/// Returns the pairs of commits that make the same change twice. Evidence for the first commit of a pair also counts
/// for the second.
pub fn same_change(evidence: &Evidence) -> Vec<Replaced> {
    let mut by_time: HashMap<(Millis, Option<&String>), Vec<usize>> = HashMap::new();
    for (place, commit) in evidence.commits.iter().enumerate() {
        by_time.entry((commit.time, commit.author.as_ref())).or_default().push(place);
    }
    let mut found = Vec::new();
    for places in by_time.values().filter(|places| (2..=MOST_PARTS).contains(&places.len())) {
        let made = |place: &usize| (evidence.commits[*place].until, evidence.commits[*place].key);
        for &old in places {
            let later = places.iter().copied().filter(|by| made(by) > made(&old));
            found
                .extend(later.filter(|&by| is_same_change(evidence, old, by)).map(|by| Replaced { old, by }));
        }
    }
    found.sort_by_key(|each| (evidence.commits[each.by].until, *each));
    found
}

/// Returns whether two commits make the same change twice: they have the same author and author time, share the subject
/// or a file, and neither is an ancestor of the other.
fn is_same_change(evidence: &Evidence, first: usize, second: usize) -> bool {
    let (old, by) = (&evidence.commits[first], &evidence.commits[second]);
    let subject = |commit: &Commit| commit.message.lines().next().unwrap_or_default().to_owned();
    let shares_a_file = || old.files.iter().any(|path| by.files.contains(path));
    old.time == by.time
        && old.author.is_some()
        && old.author == by.author
        && (subject(old) == subject(by) || shares_a_file())
        && !evidence.ancestors(second, old.time).contains(&first)
        && !evidence.ancestors(first, old.time).contains(&second)
}

/// Finds the commits that were squashed into `by`: a chain of commits that are not checked out, and that together
/// changed exactly the files of `by`.
fn squashed(evidence: &Evidence, seen: &Seen<'_>, by: usize, old: &[usize], found: &mut BTreeSet<Replaced>) {
    let commits = &evidence.commits;
    let squash = &commits[by];
    let files: HashSet<&String> = squash.files.iter().collect();
    let is_part = |place: usize| {
        let part = &commits[place];
        part.until <= squash.until
            && part.until >= squash.time - HORIZON
            && part.files.iter().all(|path| files.contains(path))
    };
    let mut best: Vec<usize> = Vec::new();
    for &tip in old.iter().filter(|&&tip| tip != by && !commits[tip].files.is_empty() && is_part(tip)) {
        let (mut parts, mut next) = (Vec::new(), Some(tip));
        let mut their_files: HashSet<&String> = HashSet::new();
        while let Some(place) = next.filter(|place| !seen.current.contains(place) && parts.len() < MOST_PARTS)
        {
            let is_merge = commits[place].parents.len() > 1;
            if !is_merge {
                if !is_part(place) {
                    break;
                }
                their_files.extend(&commits[place].files);
                parts.push(place);
            }
            next = commits[place].parents.first().and_then(|sha| evidence.by_sha.get(sha)).copied();
        }
        let names_all = || parts.len() > 1 && parts.iter().all(|&part| is_named(squash, &commits[part]));
        let is_squash = their_files == files
            && parts.len() > best.len()
            && (names_all() || (seen.are_alike)(&commits[tip], squash, &squash.files));
        if is_squash {
            best = parts;
        }
    }
    found.extend(best.into_iter().map(|old| Replaced { old, by }));
}

/// Returns whether the message of `squash` contains the subject or the id of the commit `part`.
fn is_named(squash: &Commit, part: &Commit) -> bool {
    let subject = part.message.lines().next().unwrap_or_default();
    part.shas.iter().any(|sha| squash.message.contains(sha))
        || (subject.len() > 7 && squash.message.contains(subject))
}
