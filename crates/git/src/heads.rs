//! Finds where `HEAD` and the branches of a repository point now and where they pointed in the past, in every work
//! tree.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::discover::files::{Folder, PathKind};
use super::discover::refs;
use super::reflog::Reflog;
use super::repository::{KeptRefs, Repository};
use super::sha::Sha;

/// The maximum number of bytes that are read from the end of one reflog (a few thousand lines), and from all reflogs
/// together.
const TAIL: u64 = 512 * 1024;
const ALL_TAILS: u64 = 8 * 1024 * 1024;

/// The maximum number of branches whose own reflogs are read, and the maximum number of bytes that are read from the
/// end of each of these reflogs.
const BRANCHES: usize = 50;
const BRANCH_TAIL: u64 = 32 * 1024;

/// The maximum number of folders of branches that are checked for changes. Arbitrary: there is a limit because the
/// check takes time for each folder, whose metadata and entries are read.
const FOLDERS: usize = 256;

/// The maximum number of entries that are read from one folder of branches, and the maximum number of worktrees
/// that are read. Arbitrary.
const ENTRIES: usize = 20_000;
const WORKTREES: usize = 500;

impl Repository {
    /// Returns the reflog of every work tree. The key is the canonical root of the work tree.
    pub fn reflogs(&self) -> HashMap<PathBuf, Reflog> {
        let common = self.common_dir();
        let worktrees = self.worktrees();
        let most = (ALL_TAILS / (worktrees.len() as u64 + 2)).min(TAIL);
        let read = |git_dir: &Folder| {
            let head = git_dir.end("HEAD", 1024).unwrap_or_default();
            let branch = head.trim().strip_prefix("ref: refs/heads/");
            git_dir.end("logs/HEAD", most).map(|text| Reflog::parse(&text, branch)).unwrap_or_default()
        };
        let mut found = HashMap::new();
        // Unless the repository is bare, its common directory is the folder `.git` in the main work tree.
        if let Some(root) = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"))
        {
            found.insert(root.to_path_buf(), read(&self.location.common));
        }
        if let Some(root) = self.work_dir() {
            found.entry(root).or_insert_with(|| read(&self.location.own));
        }
        for git_dir in worktrees {
            // The work tree must point back to this git directory. If it doesn't, it was moved or belongs to another
            // repository.
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

    /// Returns the roots of the linked work trees that git still lists and that no longer exist.
    pub fn gone_work_trees(&self) -> Vec<PathBuf> {
        let root = |git_dir: Folder| {
            let link = git_dir.end("gitdir", 4096)?;
            let root = PathBuf::from(link.trim()).parent()?.to_owned();
            (root.is_absolute() && root.symlink_metadata().is_err()).then_some(root)
        };
        self.worktrees().into_iter().filter_map(root).collect()
    }

    /// Returns the git directories of the linked worktrees.
    fn worktrees(&self) -> Vec<Folder> {
        let common = &self.location.common;
        let (worktrees, _) = common.list("worktrees", WORKTREES).unwrap_or_default();
        let folders = worktrees.into_iter().filter(|(_, found)| *found == PathKind::Folder);
        folders.map(|(name, _)| common.within("worktrees").within(&name)).collect()
    }

    /// Returns the commits at which local and remote-tracking branches point, and the commits that are checked out in
    /// work trees with a detached `HEAD`. They are sorted and without duplicates.
    pub fn branch_tips(&self) -> Arc<Vec<Sha>> {
        Arc::clone(&self.kept_refs().tips)
    }

    /// Returns the commits that the reflogs of `HEAD` and of the branches name, sorted and without duplicates. Git's
    /// garbage collection keeps these commits and their ancestors.
    pub fn reflog_commits(&self) -> Arc<Vec<Sha>> {
        let mut kept = self.kept_refs();
        Arc::clone(kept.logged.get_or_insert_with(|| Arc::new(self.read_reflog_commits())))
    }

    /// Returns the commits that references name. The commits are kept in memory, and read from files again only after a
    /// reference has moved.
    fn kept_refs(&self) -> MutexGuard<'_, KeptRefs> {
        let stamp = self.heads_stamp() + &branches(&self.location.common, "refs/remotes");
        let mut kept = self.refs.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.stamp != stamp {
            *kept = KeptRefs { stamp, tips: Arc::new(self.read_branch_tips()), logged: None };
        }
        kept
    }

    fn read_branch_tips(&self) -> Vec<Sha> {
        let (location, packed) = (&self.location, &self.packed);
        let beneath = |heads| refs::beneath(location, packed, heads).found.into_values();
        let mut tips: Vec<Sha> = beneath("refs/heads/").chain(beneath("refs/remotes/")).collect();
        let git_dirs = self.worktrees().into_iter().chain([location.own.clone(), location.common.clone()]);
        tips.extend(git_dirs.filter_map(|git_dir| git_dir.end("HEAD", 128)?.trim().parse::<Sha>().ok()));
        tips.sort();
        tips.dedup();
        tips
    }

    fn read_reflog_commits(&self) -> Vec<Sha> {
        let mut found: HashSet<Sha> = HashSet::new();
        let mut add = |reflog: &Reflog| {
            found.extend(reflog.moves.iter().flat_map(|each| each.from.into_iter().chain([each.to])));
        };
        self.reflogs().values().for_each(&mut add);
        let branches = refs::branches(&self.location, &self.packed).found;
        for name in branches.keys().take(BRANCHES) {
            let log = self.location.common.end(&format!("logs/refs/heads/{name}"), BRANCH_TAIL);
            log.iter().for_each(|text| add(&Reflog::parse(text, None)));
        }
        let mut found: Vec<Sha> = found.into_iter().collect();
        found.sort();
        found
    }

    /// If `HEAD` is detached, returns the commit that is checked out, because that commit may be on no branch. Returns
    /// `None` during a rebase, because the intermediate commits of a rebase may be dropped.
    pub fn detached(&self) -> Option<Sha> {
        let git_dir = &self.location.own;
        let is_rebase =
            ["rebase-merge", "rebase-apply"].iter().any(|name| git_dir.look(name) != PathKind::Nothing);
        git_dir.end("HEAD", 128).filter(|_| !is_rebase)?.trim().parse().ok()
    }

    /// Returns a text that changes whenever a local branch or the `HEAD` of any work tree moves, or `.mailmap` changes.
    /// Computing this text takes a few file system calls for each work tree and folder of branches.
    pub fn heads_stamp(&self) -> String {
        let common = &self.location.common;
        let mut git_dirs = self.worktrees();
        git_dirs.extend([self.location.own.clone(), common.clone()]);
        git_dirs.sort_by(|one, other| one.path().cmp(other.path()));
        git_dirs.dedup_by(|one, other| one.path() == other.path());
        let size_and_time = |path: &Path| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            Some((metadata.len(), metadata.modified().ok()))
        };
        let branches = blake3::hash(branches(common, "refs/heads").as_bytes()).to_hex();
        let packed = size_and_time(&common.path().join("packed-refs"));
        let mut stamp = format!("{packed:?} {}", &branches[..16]) + &self.mailmap_stamp();
        for git_dir in git_dirs {
            let head = git_dir.end("HEAD", 1024).unwrap_or_default();
            // In a work tree without a reflog, only the file of its branch shows that `HEAD` moved.
            let branch = head.strip_prefix("ref: ").filter(|name| name.starts_with("refs/"));
            let branch = branch.and_then(|name| common.end(name.trim(), 128));
            let log = size_and_time(&git_dir.path().join("logs/HEAD"));
            stamp += &format!("\n{} {} {log:?}", head.trim(), branch.unwrap_or_default().trim());
        }
        stamp
    }
}

/// Returns a text that changes whenever a reference below the folder `beneath` moves. The text consists of the
/// modification times of the folders. Git moves a reference by replacing its file, and this updates the time of the
/// folder.
fn branches(common: &Folder, beneath: &str) -> String {
    let mut folders = vec![beneath.to_owned()];
    let (mut times, mut at) = (Vec::new(), 0);
    while let Some(folder) = folders.get(at).filter(|_| at < FOLDERS).cloned() {
        let changed = std::fs::symlink_metadata(common.path().join(&folder));
        let changed = changed.and_then(|metadata| metadata.modified()).ok();
        let (entries, _) = common.list(&folder, ENTRIES).unwrap_or_default();
        let beneath = entries.into_iter().filter(|(_, found)| *found == PathKind::Folder);
        folders.extend(beneath.map(|(name, _)| format!("{folder}/{name}")));
        times.push(format!("{folder} {changed:?}"));
        at += 1;
    }
    times.sort();
    times.join("\n")
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

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
        assert_eq!(logs[&root].moves.last().map(|each| each.to), Some(fixture.head()));
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
