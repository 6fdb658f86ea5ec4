//! Where `HEAD` has been: which commit was checked out when, and in which work tree a commit was made.
//!
//! Reflogs are read as text, from their end and only so far: a line is written for every commit, checkout, rebase step
//! and pull. They expire and can be switched off, so what they don't tell is simply not known.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::place::files::{Folder, Found};
use super::{Repository, Sha};
use crate::memory::Millis;

/// Bytes read from the end of a reflog: some thousand lines. Where there are many, they share so many bytes in all.
const TAIL: u64 = 512 * 1024;
const ALL_TAILS: u64 = 8 * 1024 * 1024;

/// Folders of branches that are looked at for moves, at most. Arbitrary: a stat and a listing each.
const FOLDERS: usize = 256;

/// Entries of one such folder, and worktrees, that are looked at, at most. Arbitrary.
const ENTRIES: usize = 20_000;
const WORKTREES: usize = 500;

/// Where the `HEAD` of one work tree has been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reflog {
    /// What was checked out from when on, oldest first.
    moves: Vec<(Millis, Sha)>,
}

impl Reflog {
    /// Reads the lines of a reflog; those that are none are passed over.
    pub fn parse(text: &str) -> Reflog {
        let moved = |line: &str| {
            let (who_and_when, _) = line.split_once('\t').unwrap_or((line, ""));
            let (_, new, _) = three(who_and_when)?;
            let mut words = who_and_when.rsplit(' ');
            let (_zone, seconds) = (words.next()?, words.next()?);
            Some((seconds.parse::<i64>().ok()?.checked_mul(1000)?, new.parse().ok()?))
        };
        Reflog { moves: text.lines().filter_map(moved).collect() }
    }

    /// Returns the commit that was checked out at `time`, or `None` where the reflog doesn't reach back so far.
    pub fn at(&self, time: Millis) -> Option<Sha> {
        // A clock that was set back leaves times out of order; the last line that fits is the one that counts.
        self.moves.iter().rev().find(|(since, _)| *since <= time).map(|(_, sha)| *sha)
    }

    /// Returns the commits that were checked out, oldest first.
    pub fn commits(&self) -> impl Iterator<Item = Sha> {
        self.moves.iter().map(|(_, sha)| *sha)
    }
}

fn three(line: &str) -> Option<(&str, &str, &str)> {
    let mut parts = line.splitn(3, ' ');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

impl Repository {
    /// Returns the reflog of every work tree, by the canonical root of the work tree.
    pub fn reflogs(&self) -> HashMap<PathBuf, Reflog> {
        let common = self.common_dir();
        let worktrees = self.worktrees();
        let most = (ALL_TAILS / (worktrees.len() as u64 + 2)).min(TAIL);
        let read = |git_dir: &Folder| {
            git_dir.end("logs/HEAD", most).map(|text| Reflog::parse(&text)).unwrap_or_default()
        };
        let mut found = HashMap::new();
        // The main work tree is where its git directory lies, unless the repository is bare.
        if let Some(root) = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"))
        {
            found.insert(root.to_path_buf(), read(&self.place.common));
        }
        if let Some(root) = self.work_dir() {
            found.entry(root).or_insert_with(|| read(&self.place.own));
        }
        for git_dir in worktrees {
            // One that doesn't lead back is another's, or was moved.
            let root = git_dir.end("gitdir", 4096).and_then(|link| {
                let dot_git = git_dir.path().join(link.trim());
                let root = dot_git.parent()?.canonicalize().ok()?;
                let back = Folder::new(root.clone(), false).end(".git", 4096)?;
                let back = root.join(back.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
                (back == git_dir.path().canonicalize().ok()?).then_some(root)
            });
            if let Some(root) = root {
                found.insert(root, read(&git_dir));
            }
        }
        found
    }

    /// Returns the git directories of the linked worktrees.
    fn worktrees(&self) -> Vec<Folder> {
        let common = &self.place.common;
        let (worktrees, _) = common.list("worktrees", WORKTREES).unwrap_or_default();
        let folders = worktrees.into_iter().filter(|(_, found)| *found == Found::Folder);
        folders.map(|(name, _)| common.within("worktrees").within(&name)).collect()
    }

    /// Returns the commit that is checked out where no branch is: only this work tree leads to it. `None` while a rebase
    /// is under way, whose steps may come to nothing.
    pub fn detached(&self) -> Option<Sha> {
        let git_dir = &self.place.own;
        let is_rebase =
            ["rebase-merge", "rebase-apply"].iter().any(|name| git_dir.look(name) != Found::Nothing);
        git_dir.end("HEAD", 128).filter(|_| !is_rebase)?.trim().parse().ok()
    }

    /// Returns something that changes whenever what is checked out in a work tree moves, in this one or in another, or a
    /// branch that isn't; a few calls to the file system for each.
    pub fn heads_stamp(&self) -> String {
        let common = &self.place.common;
        let mut git_dirs = self.worktrees();
        git_dirs.extend([self.place.own.clone(), common.clone()]);
        git_dirs.sort_by(|one, other| one.path().cmp(other.path()));
        git_dirs.dedup_by(|one, other| one.path() == other.path());
        let size_and_time = |path: &Path| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            Some((metadata.len(), metadata.modified().ok()))
        };
        let branches = blake3::hash(branches(common).as_bytes()).to_hex();
        let packed = size_and_time(&common.path().join("packed-refs"));
        let mut stamp = format!("{packed:?} {}", &branches[..16]);
        for git_dir in git_dirs {
            let head = git_dir.end("HEAD", 1024).unwrap_or_default();
            // Where no reflog is kept, the branch tells.
            let branch = head.strip_prefix("ref: ").filter(|name| name.starts_with("refs/"));
            let branch = branch.and_then(|name| common.end(name.trim(), 128));
            let log = size_and_time(&git_dir.path().join("logs/HEAD"));
            stamp += &format!("\n{} {} {log:?}", head.trim(), branch.unwrap_or_default().trim());
        }
        stamp
    }
}

/// Returns when something was put into a folder of branches last: a branch is moved by putting a new file in its place.
fn branches(common: &Folder) -> String {
    let mut folders = vec!["refs/heads".to_owned()];
    let (mut times, mut at) = (Vec::new(), 0);
    while let Some(folder) = folders.get(at).filter(|_| at < FOLDERS).cloned() {
        let changed = std::fs::symlink_metadata(common.path().join(&folder));
        let changed = changed.and_then(|metadata| metadata.modified()).ok();
        let (entries, _) = common.list(&folder, ENTRIES).unwrap_or_default();
        let beneath = entries.into_iter().filter(|(_, found)| *found == Found::Folder);
        folders.extend(beneath.map(|(name, _)| format!("{folder}/{name}")));
        times.push(format!("{folder} {changed:?}"));
        at += 1;
    }
    times.sort();
    times.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tests::Fixture;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    #[test]
    fn the_commit_checked_out_is_that_of_the_last_line_before() {
        let log = Reflog::parse(&format!(
            "{B} {A} Ann Example <a@example.org> 100 +0200\tcommit: x\nno line\n{A} {B} Ann <a@b> 200 -0100\tcheckout: y\n"
        ));
        assert_eq!(log.at(99_999), None);
        assert_eq!(log.at(100_000), Some(A.parse().unwrap()));
        assert_eq!(log.at(5_000_000), Some(B.parse().unwrap()));
    }

    #[test]
    fn every_work_tree_has_its_own() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        let elsewhere = tempfile::tempdir().unwrap();
        let tree = elsewhere.path().canonicalize().unwrap().join("tree");
        fixture.git(&["worktree", "add", "-q", "-b", "wip", tree.to_str().unwrap()]);
        let logs = fixture.repository().reflogs();
        let root = fixture.repository().work_dir().unwrap();
        assert_eq!(logs.len(), 2, "{logs:?}");
        assert_eq!(logs[&root].commits().last(), Some(fixture.head()));
        assert!(logs.contains_key(&tree));
    }

    #[test]
    fn a_commit_changes_the_stamp() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        let before = fixture.repository().heads_stamp();
        assert_eq!(before, fixture.repository().heads_stamp());
        fixture.commit("a.txt", "b\n", "second");
        assert_ne!(before, fixture.repository().heads_stamp());
    }

    #[test]
    fn a_branch_that_is_moved_and_not_checked_out_changes_the_stamp() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        fixture.git(&["branch", "side/one"]);
        fixture.commit("a.txt", "b\n", "second");
        for moved in ["side/one", "other"] {
            let before = fixture.repository().heads_stamp();
            fixture.git(&["fetch", "-q", ".", &format!("main:{moved}")]);
            assert_ne!(before, fixture.repository().heads_stamp(), "{moved}");
        }
    }

    #[test]
    fn a_commit_is_detached_where_no_branch_is_checked_out_and_nothing_is_rebased() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        assert_eq!(fixture.repository().detached(), None);
        fixture.git(&["checkout", "-q", "--detach"]);
        assert_eq!(fixture.repository().detached(), Some(fixture.head()));
        std::fs::create_dir(fixture.path.join(".git/rebase-merge")).unwrap();
        assert_eq!(fixture.repository().detached(), None);
    }
}
