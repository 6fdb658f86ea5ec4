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

/// When something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeAt {
    /// The commit that was checked out, if it is known.
    pub then: Option<Sha>,
    /// The time in seconds since 1970, which counts if `then` is `None`.
    pub seconds: i64,
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
    /// Returns the commits around each of `moments`, in their order, found in one walk back from `head`. Returns `None`
    /// for those that the walk has not reached at `until`.
    pub fn around(&self, head: &Sha, moments: &[MadeAt], until: Instant) -> Vec<Option<Around>> {
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut read = |sha: &Sha| commit::parents_and_time(&mut objects, sha, &mut buffer).ok();
        let mut found = vec![None; moments.len()];
        let made_at = |moment: &MadeAt| moment.then.and_then(|then| Some((then, read(&then)?.1)));
        let made_at: Vec<Option<(Sha, i64)>> = moments.iter().map(made_at).collect();
        let mut open: Vec<usize> = (0..moments.len()).collect();
        let (mut at, mut after) = (Some(*head), None);
        let mut count = 0;
        while let Some(sha) = at.filter(|_| !open.is_empty()) {
            let Some((parents, made)) = read(&sha) else { break };
            open.retain(|place| {
                let is_before = match made_at[*place] {
                    Some((then, oldest)) => sha == then || made < oldest,
                    None => made <= moments[*place].seconds,
                };
                if is_before {
                    found[*place] = Some(Around { before: moments[*place].then.or(Some(sha)), after });
                }
                !is_before
            });
            count += 1;
            if count % READS_PER_LOOK == 0 && Instant::now() >= until {
                return found;
            }
            (after, at) = (Some(sha), parents.first().copied());
        }
        for place in open {
            found[place] = Some(Around { before: moments[place].then, after });
        }
        found
    }

    /// Returns what became of `files` and of `identifiers` from a moment until the commit `now`, each in its order.
    /// Files are compared first. Stops reading at `until`; the next call continues.
    ///
    /// A file is named by its path or the end of its path. If several files have this end, nothing is claimed. A file
    /// has changed if it did so after the first commit after the moment. An identifier is gone if no file of `now`
    /// contains it as a word, but a file before the moment did.
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
        let mut kept = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let touches = |name: &String| {
            changes.iter().any(|change| change.old.is_some() && ends_with_path(&change.path, name))
        };
        if files.iter().any(touches) {
            let later = match then.after {
                Some(after) => self::changes(&mut objects, &after, new, deadline)?.unwrap_or_default(),
                None => Vec::new(),
            };
            let Some(words) = Words::of(&mut kept, &mut objects, new, deadline) else {
                return Ok(all(if deadline.is_over() { Fate::Unknown } else { Fate::Unchanged }));
            };
            let fate = |name: &String| match deadline.is_over() {
                true => Fate::Unknown,
                false => file_fate(name, &changes, &later, &words.paths),
            };
            of_files = files.iter().map(fate).collect();
        }
        if !identifiers.is_empty() && !changes.is_empty() {
            let is_known = match Words::of(&mut kept, &mut objects, new, deadline) {
                Some(words) => words.contain(&mut objects, identifiers, deadline),
                None => vec![None; identifiers.len()],
            };
            of_identifiers = identifier_fates(&mut objects, &changes, identifiers, &is_known, deadline);
        }
        Ok((of_files, of_identifiers))
    }
}

/// Returns what became of each identifier. `changes` are the files that differ from the earlier commit. `is_known` says
/// for each identifier whether a file has it now, if that is known.
fn identifier_fates(
    objects: &mut Handle,
    changes: &[Change],
    identifiers: &[String],
    is_known: &[Option<bool>],
    deadline: Deadline,
) -> Vec<Fate> {
    let lost = |place: &usize| is_known[*place] == Some(false);
    let lost: Vec<&String> = (0..identifiers.len()).filter(lost).map(|place| &identifiers[place]).collect();
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
    let fate = |(name, known): (&String, &Option<bool>)| match known {
        Some(false) if had.contains(name.as_str()) => Fate::Gone,
        Some(false) | None if deadline.is_over() => Fate::Unknown,
        _ => Fate::Unchanged,
    };
    identifiers.iter().zip(is_known).map(fate).collect()
}

fn failed(fault: String) -> Error {
    Error::new(Kind::Git, format!("cannot compare two commits: {fault}"))
}

fn tree_of(objects: &mut Handle, commit: &Sha) -> Result<gix::ObjectId> {
    Ok(commit::read(objects, commit, &mut Vec::new()).map_err(failed)?.tree)
}

/// Returns the files whose content differs between the commit `then` and the tree `now`, or `None` if there are too
/// many.
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

/// Returns what became of the file `name`. `changes` are the changes since the moment, `later` those since the first
/// commit after it, and `listed` all files that are there now.
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
        let moment = |then: Option<Sha>, seconds| MadeAt { then, seconds };
        let moments = [
            moment(Some(commits[0]), i64::MAX),
            moment(None, time(&commits[2])),
            moment(None, time(&commits[0]) - 1),
        ];
        let around = repository.around(&commits[2], &moments, soon());
        let around: Vec<_> =
            around.into_iter().map(|around| around.map(|it| (it.before, it.after))).collect();
        let expected =
            [(Some(commits[0]), Some(commits[1])), (Some(commits[2]), None), (None, Some(commits[0]))];
        assert_eq!(around, expected.map(Some));
    }
}
