//! Finds out what became of files and identifiers that somebody named at an earlier commit.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Instant;

use crate::commit;
use crate::diff::entries::{Deadline, Entry, changed_entries, shown};
use crate::objects::Handle;
use crate::repository::Repository;
use crate::sha::Sha;
use crate::trees::words::{LARGEST, Words, add_words, hash, read};
use tiro_base::error::{Error, Kind, Result};

/// How many commits are read before the clock is looked at again.
const READS_PER_LOOK: usize = 64;

/// What became of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is as it was, or it was never there, or it can't be told apart from others.
    Unchanged,
    /// The content or the place of the file changed.
    Changed,
    /// It is not there any more.
    Gone,
    /// Time ran out.
    Unknown,
}

/// The last commit up to a moment, and the first commit after it, on the way from `HEAD` back along the first parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// The last commit up to the moment; `None` if there is none.
    pub before: Option<Sha>,
    /// The first commit after the moment; `None` if there is none. What was being written at the moment is in this
    /// commit.
    pub after: Option<Sha>,
}

/// A file that differs between two commits.
struct Change {
    path: String,
    old: Option<gix::ObjectId>,
    new: Option<gix::ObjectId>,
}

impl Repository {
    /// Returns the commits around the moment when `then` was checked out, or, without `then`, around `seconds`, a time
    /// since 1970. Returns `None` if time runs out.
    pub fn around(&self, head: &Sha, then: Option<&Sha>, seconds: i64, until: Instant) -> Option<Around> {
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut time = |sha: &Sha| commit::parents_and_time(&mut objects, sha, &mut buffer).ok();
        let oldest = then.and_then(&mut time).map(|(_, made)| made);
        let (mut at, mut after) = (Some(*head), None);
        let mut count = 0;
        while let Some(sha) = at {
            let Some((parents, made)) = time(&sha) else { break };
            let is_before = match (then, oldest) {
                (Some(then), Some(oldest)) => sha == *then || made < oldest,
                _ => made <= seconds,
            };
            if is_before {
                return Some(Around { before: then.copied().or(Some(sha)), after });
            }
            count += 1;
            if count % READS_PER_LOOK == 0 && Instant::now() >= until {
                return None;
            }
            (after, at) = (Some(sha), parents.first().copied());
        }
        Some(Around { before: then.copied(), after })
    }

    /// Returns what became of `files` and of `identifiers` from a moment until the commit `now`, each in its order. Files
    /// are compared first. Stops reading at `until`; the next call continues.
    ///
    /// A file is named by its path or the end of its path. If several files have this end, nothing is claimed. A file has
    /// changed if it did so after the first commit after the moment. An identifier is gone if no file of `now` contains it
    /// as a word, but a file before the moment did.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if one of the commits can't be read.
    pub fn fates(
        &self,
        then: Around,
        now: &Sha,
        files: &[String],
        identifiers: &[String],
        until: Instant,
    ) -> Result<(Vec<Fate>, Vec<Fate>)> {
        let all = |fate| (vec![fate; files.len()], vec![fate; identifiers.len()]);
        let Some(before) = then.before.filter(|before| before != now) else {
            return Ok(all(Fate::Unchanged));
        };
        let deadline = Deadline::at(until);
        let mut objects = self.objects.handle().keeping(8 << 20, 8 << 20);
        let new = tree_of(&mut objects, now)?;
        let Some(changes) = changes(&mut objects, &before, new, deadline)? else {
            return Ok(all(if deadline.is_over() { Fate::Unknown } else { Fate::Unchanged }));
        };
        let (mut of_files, mut of_identifiers) = all(Fate::Unchanged);
        let touches = |name: &String| {
            changes.iter().any(|change| change.old.is_some() && ends_with_path(&change.path, name))
        };
        if files.iter().any(touches) {
            let later = match then.after {
                Some(after) => self::changes(&mut objects, &after, new, deadline)?.unwrap_or_default(),
                None => Vec::new(),
            };
            let listed = changed_entries(&mut objects, None, new, deadline).map_err(failed)?;
            let listed: Vec<String> = match listed.partial {
                true => return Ok(all(if deadline.is_over() { Fate::Unknown } else { Fate::Unchanged })),
                false => listed.found.iter().map(|entry| shown(&entry.path)).collect(),
            };
            let fate = |name: &String| match deadline.is_over() {
                true => Fate::Unknown,
                false => file_fate(name, &changes, &later, &listed),
            };
            of_files = files.iter().map(fate).collect();
        }
        if !identifiers.is_empty() && !changes.is_empty() {
            of_identifiers = self.identifier_fates(&mut objects, new, &changes, identifiers, deadline);
        }
        Ok((of_files, of_identifiers))
    }

    /// Returns what became of each identifier. `changes` are the files that differ from the earlier commit.
    fn identifier_fates(
        &self,
        objects: &mut Handle,
        now: gix::ObjectId,
        changes: &[Change],
        identifiers: &[String],
        deadline: Deadline,
    ) -> Vec<Fate> {
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = Words::are(&mut kept, objects, now, identifiers, deadline);
        drop(kept);
        let lost = |place: &usize| is_known[*place] == Some(false);
        let lost: Vec<&String> =
            (0..identifiers.len()).filter(lost).map(|place| &identifiers[place]).collect();
        let mut had: HashSet<&str> = HashSet::new();
        for id in changes.iter().filter_map(|change| change.old) {
            if had.len() == lost.len() || deadline.is_over() {
                break;
            }
            let mut words = HashSet::new();
            if let Ok(text) = read(objects, &id, LARGEST) {
                add_words(&text, &mut words);
            }
            had.extend(
                lost.iter().map(|name| name.as_str()).filter(|name| words.contains(&hash(name.as_bytes()))),
            );
        }
        let fate = |(name, known): (&String, Option<bool>)| match known {
            Some(false) if had.contains(name.as_str()) => Fate::Gone,
            Some(false) | None if deadline.is_over() => Fate::Unknown,
            _ => Fate::Unchanged,
        };
        identifiers.iter().zip(is_known).map(fate).collect()
    }
}

fn failed(fault: String) -> Error {
    Error::new(Kind::Git, format!("cannot compare two commits: {fault}"))
}

fn tree_of(objects: &mut Handle, commit: &Sha) -> Result<gix::ObjectId> {
    Ok(commit::read(objects, commit, &mut Vec::new()).map_err(failed)?.tree)
}

/// Returns the files whose content differs between the commit `then` and the tree `now`, or `None` if there are too many.
fn changes(
    objects: &mut Handle,
    then: &Sha,
    now: gix::ObjectId,
    deadline: Deadline,
) -> Result<Option<Vec<Change>>> {
    let old = tree_of(objects, then)?;
    let entries = changed_entries(objects, Some(old), now, deadline).map_err(failed)?;
    let change = |entry: &Entry| {
        let [old, new] = [entry.old, entry.new].map(|side| side.map(|(_, id)| id));
        Change { path: shown(&entry.path), old, new }
    };
    let changes = entries.found.iter().map(change).filter(|change| change.old != change.new);
    Ok((!entries.partial).then(|| changes.collect()))
}

fn ends_with_path(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns what became of the file `name`. `changes` are the changes since the moment, `later` those since the first commit
/// after it, and `listed` all files that are there now.
fn file_fate(name: &str, changes: &[Change], later: &[Change], listed: &[String]) -> Fate {
    let touched: Vec<&Change> = (changes.iter())
        .filter(|change| change.old.is_some() && ends_with_path(&change.path, name))
        .collect();
    let is_same =
        |path: &&String| ends_with_path(path, name) && !changes.iter().any(|change| change.path == **path);
    let [change] = touched[..] else { return Fate::Unchanged };
    if listed.iter().any(|path| is_same(&path)) {
        return Fate::Unchanged;
    }
    let last = change.path.rsplit('/').next().unwrap_or(&change.path);
    // The file was moved: a new file has its content or its name.
    let is_moved = |other: &Change| {
        other.old.is_none() && (other.new == change.old || ends_with_path(&other.path, last))
    };
    let is_later = later.iter().any(|other| other.path == change.path && other.old.is_some());
    match change.new.is_some() || changes.iter().any(is_moved) {
        true if is_later => Fate::Changed,
        true => Fate::Unchanged,
        false => Fate::Gone,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::Fixture;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn fates(
        fixture: &Fixture,
        then: Around,
        files: &[&str],
        identifiers: &[&str],
    ) -> (Vec<Fate>, Vec<Fate>) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let now = fixture.head();
        fixture.repository().fates(then, &now, &owned(files), &owned(identifiers), soon()).unwrap()
    }

    #[test]
    fn files_and_identifiers_have_fates() {
        use Fate::{Changed, Gone, Unchanged};
        let fixture = Fixture::new();
        fixture.write("src/a.rs", "fn kept() {}\nfn retry_call() {}\nfn in_large() {}\n");
        fixture.write("src/b.rs", "fn other() {}\n");
        fixture.write("src/old/c.rs", "fn moved() { /* long enough to be the same */ }\n");
        fixture.write("x/mod.rs", "1\n");
        fixture.write("y/mod.rs", "2\n");
        let then = fixture.commit_all("first");
        fixture.write("new.rs", "fn begun() {}\n");
        let after = fixture.commit_all("what was being written");
        fixture.write("src/a.rs", "fn kept() {}\nfn retry_calls() {}\n");
        fixture.write("large.js", format!("{}\nin_large();\n", "x = 1;\n".repeat(200_000)));
        fixture.write("src/new/c.rs", "fn moved() { /* long enough to be the same */ }\n");
        fixture.git(&["rm", "-q", "src/b.rs", "src/old/c.rs", "x/mod.rs"]);
        fixture.commit_all("second");
        let around = Around { before: Some(then), after: Some(after) };
        let files =
            ["src/a.rs", "a.rs", "src/b.rs", "b.rs", "src/old/c.rs", "mod.rs", "x/mod.rs", "z.rs", "rs"];
        let identifiers = ["kept", "retry_call", "moved", "never_there", "in_large"];
        let (files, identifiers) = fates(&fixture, around, &files, &identifiers);
        // There were two files `mod.rs`, so which one is meant is not known.
        let expected = [Changed, Changed, Gone, Gone, Changed, Unchanged, Gone, Unchanged, Unchanged];
        assert_eq!(files, expected);
        assert_eq!(identifiers, [Unchanged, Gone, Unchanged, Unchanged, Unchanged]);
        let now = Around { before: Some(fixture.head()), after: None };
        assert_eq!(fates(&fixture, now, &["src/a.rs"], &["kept"]), (vec![Unchanged], vec![Unchanged]));
        // What a note describes is committed after it.
        let own = Around { before: Some(after), after: Some(fixture.head()) };
        assert_eq!(fates(&fixture, own, &["src/a.rs"], &[]), (vec![Unchanged], vec![]));
    }

    #[test]
    fn without_time_the_fates_are_unknown() {
        let fixture = Fixture::new();
        let then = fixture.commit("a.rs", "fn retry_call() {}\n", "first");
        let now = fixture.commit("a.rs", "fn other() {}\n", "second");
        let repository = fixture.repository();
        let (names, around) = (["retry_call".to_owned()], Around { before: Some(then), after: Some(then) });
        let at = |until| repository.fates(around, &now, &["a.rs".to_owned()], &names, until).unwrap();
        assert_eq!(at(Instant::now()), (vec![Fate::Unknown], vec![Fate::Unknown]));
        assert_eq!(at(soon()), (vec![Fate::Changed], vec![Fate::Gone]));
    }

    #[test]
    fn the_commits_around_a_moment_are_found() {
        let fixture = Fixture::new();
        let commits: Vec<Sha> = (1..=3).map(|n| fixture.commit("a", format!("{n}\n"), "next")).collect();
        let repository = fixture.repository();
        let time = |sha: &Sha| -> i64 {
            fixture.git(&["show", "-s", "--format=%ct", &sha.to_string()]).trim().parse().unwrap()
        };
        let around =
            |then: Option<&Sha>, seconds| repository.around(&commits[2], then, seconds, soon()).unwrap();
        let first = around(Some(&commits[0]), i64::MAX);
        assert_eq!((first.before, first.after), (Some(commits[0]), Some(commits[1])));
        let last = around(None, time(&commits[2]));
        assert_eq!((last.before, last.after), (Some(commits[2]), None));
        let early = around(None, time(&commits[0]) - 1);
        assert_eq!((early.before, early.after), (None, Some(commits[0])));
    }
}
