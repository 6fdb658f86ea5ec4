//! Where `HEAD` has been: which commit was checked out when, and what made it so.
//!
//! Reflogs are read as text, from their end and only so far: a line is written for every commit, checkout, rebase step
//! and pull. They expire and can be switched off, so what they don't tell is simply not known.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::commit::Moment;
use super::place::files::{Folder, Found};
use super::{Repository, Sha, place};
use crate::memory::Millis;

/// Bytes read from the end of a reflog: some thousand lines. Where there are many, they share so many bytes in all.
const TAIL: u64 = 512 * 1024;
const ALL_TAILS: u64 = 8 * 1024 * 1024;

/// Branches whose own reflogs are read, at most, and bytes of each.
const BRANCHES: usize = 50;
const BRANCH_TAIL: u64 = 32 * 1024;

/// Folders of branches that are looked at for moves, at most. Arbitrary: a stat and a listing each.
const FOLDERS: usize = 256;

/// Entries of one such folder, and worktrees, that are looked at, at most. Arbitrary.
const ENTRIES: usize = 20_000;
const WORKTREES: usize = 500;

/// Where the `HEAD` of one work tree has been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reflog {
    /// Its moves, oldest first.
    pub moves: Vec<Move>,
}

/// What references and reflogs named when they were read last.
#[derive(Default)]
pub(super) struct KeptRefs {
    stamp: String,
    tips: Arc<Vec<Sha>>,
    /// `None` until somebody asks.
    logged: Option<Arc<Vec<Sha>>>,
}

/// A move of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub time: Millis,
    /// What was checked out before; `None` at the beginning.
    pub from: Option<Sha>,
    /// What is checked out since.
    pub to: Sha,
    /// The name that git knew whoever did it by.
    pub who: String,
    /// What was done.
    pub action: Action,
    /// The branch on which it was done, where that is told.
    pub branch: Option<String>,
}

/// What moved `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A commit was made, also by a merge.
    Commit,
    /// The last commit was replaced.
    Amend,
    /// What was committed before was committed anew elsewhere in the history, by a rebase or a cherry-pick.
    Rebase,
    /// Commits came from another repository.
    Pull,
    /// What was there before was checked out.
    Other,
}

impl Action {
    fn of(message: &str) -> Action {
        let (what, rest) = message.split_once(": ").unwrap_or((message, ""));
        let verb = what.split(' ').next().unwrap_or_default();
        let step = what.rsplit_once('(').map_or("", |(_, step)| step.trim_end_matches(')'));
        let is_merge = rest.starts_with("Merge made by");
        match verb {
            "commit" if step == "amend" => Action::Amend,
            "commit" if step == "cherry-pick" => Action::Rebase,
            "commit" | "revert" => Action::Commit,
            "cherry-pick" | "am" => Action::Rebase,
            _ if (verb == "rebase" || what.contains("--rebase"))
                && !matches!(step, "start" | "finish" | "") =>
            {
                Action::Rebase
            }
            "pull" | "merge" if is_merge => Action::Commit,
            "pull" | "clone" | "fetch" => Action::Pull,
            _ => Action::Other,
        }
    }

    /// Whether the commit that is checked out afterwards was made by it.
    pub fn makes(self) -> bool {
        matches!(self, Action::Commit | Action::Amend | Action::Rebase)
    }
}

impl Reflog {
    /// Reads the lines of a reflog; those that are none are passed over. `branch` is what is checked out now.
    pub fn parse(text: &str, branch: Option<&str>) -> Reflog {
        let mut moves: Vec<Move> = Vec::new();
        let mut messages: Vec<&str> = Vec::new();
        for line in text.lines() {
            let (who_and_when, message) = line.split_once('\t').unwrap_or((line, ""));
            let parse = || {
                let (old, new, rest) = three(who_and_when)?;
                let mut words = rest.rsplit(' ');
                let (_zone, seconds) = (words.next()?, words.next()?);
                // As a commit's time: what is beyond the calendar is its border.
                let time = seconds.parse::<i64>().ok()?.clamp(Moment::FIRST, Moment::LAST) * 1000;
                let who = rest.split_once(" <").map_or("", |(who, _)| who).to_owned();
                let from = old.parse().ok().filter(|sha: &Sha| sha.as_bytes() != &[0; 20]);
                let action = Action::of(message);
                Some(Move { time, from, to: new.parse().ok()?, who, action, branch: None })
            };
            if let Some(parsed) = parse() {
                moves.push(parsed);
                messages.push(message);
            }
        }
        let branches = branches_of(&messages, branch);
        moves.iter_mut().zip(branches).for_each(|(each, branch)| each.branch = branch);
        Reflog { moves }
    }

    /// Returns the commit that was checked out at `time`, or `None` where the reflog doesn't reach back so far.
    pub fn at(&self, time: Millis) -> Option<Sha> {
        // A clock that was set back leaves times out of order; the last line that fits is the one that counts.
        self.moves.iter().rev().find(|each| each.time <= time).map(|each| each.to)
    }
}

/// Returns the branch that was checked out after each of the moves that `messages` tell of, `now` being that after the last.
fn branches_of(messages: &[&str], now: Option<&str>) -> Vec<Option<String>> {
    let named = |name: &str| Some(name.to_owned()).filter(|name| name.parse::<Sha>().is_err());
    let short = |name: &str| name.trim().strip_prefix("refs/heads/").map(str::to_owned);
    let checkout = |message: &str| {
        let (from, to) = message.strip_prefix("checkout: moving from ")?.split_once(" to ")?;
        Some((named(from), named(to)))
    };
    let renamed = |message: &str| {
        let (from, to) = message.strip_prefix("Branch: renamed ")?.split_once(" to ")?;
        Some((short(from), short(to)))
    };
    let returned = |message: &str| message.split_once("returning to ").map(|(_, name)| short(name));
    // From the end: each message says what was checked out before it, too.
    let mut after = now.map(str::to_owned);
    let mut branches = Vec::with_capacity(messages.len());
    for message in messages.iter().rev() {
        if let Some(name) = returned(message) {
            // The steps of a rebase make the branch anew that it returns to.
            after = name;
        }
        match checkout(message).or_else(|| renamed(message)) {
            Some((before, to)) => {
                branches.push(to);
                after = before;
            }
            None => branches.push(after.clone()),
        }
    }
    branches.reverse();
    branches
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
            let head = git_dir.end("HEAD", 1024).unwrap_or_default();
            let branch = head.trim().strip_prefix("ref: refs/heads/");
            git_dir.end("logs/HEAD", most).map(|text| Reflog::parse(&text, branch)).unwrap_or_default()
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

    /// Returns where branches stand, those of other repositories as they were fetched last among them, and what is checked
    /// out in each work tree; in order, each once.
    pub fn branch_tips(&self) -> Arc<Vec<Sha>> {
        Arc::clone(&self.kept_refs().tips)
    }

    /// Returns the commits that reflogs still name, of `HEAD` in each work tree and of branches; in order, each once. Git
    /// keeps them and what leads to them.
    pub fn reflog_commits(&self) -> Arc<Vec<Sha>> {
        let mut kept = self.kept_refs();
        Arc::clone(kept.logged.get_or_insert_with(|| Arc::new(self.read_reflog_commits())))
    }

    /// Returns what references name, read again where any of them moved.
    fn kept_refs(&self) -> MutexGuard<'_, KeptRefs> {
        let stamp = self.heads_stamp() + &branches(&self.place.common, "refs/remotes");
        let mut kept = self.refs.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.stamp != stamp {
            *kept = KeptRefs { stamp, tips: Arc::new(self.read_branch_tips()), logged: None };
        }
        kept
    }

    fn read_branch_tips(&self) -> Vec<Sha> {
        let (place, packed) = (&self.place, &self.packed);
        let beneath = |heads| place::refs::beneath(place, packed, heads).found.into_values();
        let mut tips: Vec<Sha> = beneath("refs/heads/").chain(beneath("refs/remotes/")).collect();
        let git_dirs = self.worktrees().into_iter().chain([place.own.clone(), place.common.clone()]);
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
        let branches = place::refs::branches(&self.place, &self.packed).found;
        for name in branches.keys().take(BRANCHES) {
            let log = self.place.common.end(&format!("logs/refs/heads/{name}"), BRANCH_TAIL);
            log.iter().for_each(|text| add(&Reflog::parse(text, None)));
        }
        let mut found: Vec<Sha> = found.into_iter().collect();
        found.sort();
        found
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
        let branches = blake3::hash(branches(common, "refs/heads").as_bytes()).to_hex();
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
fn branches(common: &Folder, beneath: &str) -> String {
    let mut folders = vec![beneath.to_owned()];
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
        let text = format!(
            "{B} {A} Ann Example <a@example.org> 100 +0200\tcommit: x\nno line\n{A} {B} Ann <a@b> 200 -0100\tcheckout: y\n"
        );
        let log = Reflog::parse(&text, None);
        assert_eq!(log.at(99_999), None);
        assert_eq!(log.at(100_000), Some(A.parse().unwrap()));
        assert_eq!(log.at(5_000_000), Some(B.parse().unwrap()));
        assert_eq!((log.moves[0].who.as_str(), log.moves[0].action), ("Ann Example", Action::Commit));
    }

    /// A commit at such a time ended the program that looked for what was done a second later.
    #[test]
    fn a_time_beyond_the_calendar_is_its_border() {
        let times =
            [(i64::MAX / 1000, Moment::LAST), (i64::MIN / 1000, Moment::FIRST), (i64::MAX, Moment::LAST)];
        for (seconds, border) in times {
            let log = Reflog::parse(&format!("{A} {B} Ann <a@b> {seconds} +0000\tcommit: x\n"), None);
            assert_eq!(log.moves[0].time, border * 1000, "{seconds}");
        }
    }

    #[test]
    fn what_was_done_on_which_branch_is_told_by_the_messages() {
        use Action::*;
        let table = [
            ("commit (initial): a", Commit, Some("old")),
            ("Branch: renamed refs/heads/old to refs/heads/main", Other, Some("main")),
            ("checkout: moving from main to topic", Other, Some("topic")),
            ("commit: checkout: moving from here to there", Commit, Some("topic")),
            ("commit (amend): b", Amend, Some("topic")),
            ("checkout: moving from topic to main", Other, Some("main")),
            ("pull: Fast-forward", Pull, Some("main")),
            ("pull: Merge made by the 'ort' strategy.", Commit, Some("main")),
            ("merge topic: Fast-forward", Other, Some("main")),
            ("checkout: moving from main to bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", Other, None),
            ("commit: alone", Commit, None),
            ("checkout: moving from bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb to main", Other, Some("main")),
            ("rebase (start): checkout main", Other, Some("topic")),
            ("rebase (pick): b", Rebase, Some("topic")),
            ("rebase (finish): returning to refs/heads/topic", Other, Some("topic")),
            ("pull --rebase origin main (pick): b", Rebase, Some("topic")),
            ("cherry-pick: c", Rebase, Some("topic")),
        ];
        let lines = table.map(|(message, ..)| format!("{A} {B} Ann <a@b> 200 -0100\t{message}\n"));
        let found = Reflog::parse(&lines.concat(), Some("topic")).moves;
        for (each, (message, action, branch)) in found.iter().zip(table) {
            assert_eq!((each.action, each.branch.as_deref()), (action, branch), "{message}");
        }
        assert_eq!(found.len(), table.len());
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
