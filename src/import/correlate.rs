//! Which conversations led to a commit (document 001 §5, "correlation by metadata"). Pure.
//!
//! A session is behind a commit where it was at work in the two hours before the commit's own time. Several may be:
//! all are kept, the likeliest first. The work tree says most, then which files were touched, then the branch, which is
//! another one after a merge, then how recently. A rebase or a cherry-pick changes no time: a commit keeps its author's.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::memory::Millis;

/// How long before a commit a session may have been at work on it.
pub const WINDOW: Millis = 2 * 60 * 60 * 1000;

/// What a commit's time leaves out: it is cut to whole seconds, and what led to it may have been said in that second.
pub const SECOND: Millis = 999;

/// A commit, as far as conversations are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// When the change was made.
    pub time: Millis,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The work tree it was made in, where a reflog tells.
    pub worktree: Option<String>,
    /// The paths it changed, relative to the root of the work tree.
    pub files: Vec<String>,
}

/// A moment at which a session was at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Millis,
    /// The session's row.
    pub session: i64,
    /// The branch it was on.
    pub branch: Option<String>,
    /// The work tree it was in.
    pub worktree: Option<String>,
    /// The files it touched, relative to the root of the work tree.
    pub files: Vec<String>,
}

/// Returns the sessions behind the commit, the likeliest first; `moments` are in order of time.
pub fn behind(commit: &Made, moments: &[Moment]) -> Vec<i64> {
    let start = moments.partition_point(|moment| moment.time < commit.time - WINDOW);
    let end = moments.partition_point(|moment| moment.time <= commit.time + SECOND);
    let mut sessions: BTreeMap<i64, Session<'_>> = BTreeMap::new();
    for moment in &moments[start..end] {
        let session = sessions.entry(moment.session).or_default();
        session.last = Some(moment);
        session.files.extend(moment.files.iter().map(String::as_str));
    }
    // What one side doesn't know speaks neither for nor against.
    let agrees = |one: &Option<String>, other: Option<&String>| match (one, other) {
        (Some(one), Some(other)) => i8::from(one == other) * 2,
        _ => 1,
    };
    let mut found: Vec<_> = sessions
        .into_iter()
        .map(|(row, session)| {
            let last = session.last.expect("a session has a moment");
            let shared = commit.files.iter().filter(|path| session.files.contains(path.as_str())).count();
            let likeliest = (
                agrees(&commit.worktree, last.worktree.as_ref()),
                shared,
                agrees(&commit.branch, last.branch.as_ref()),
                last.time,
            );
            (Reverse(likeliest), row)
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, row)| row).collect()
}

/// What a session did within the window.
#[derive(Default)]
struct Session<'a> {
    last: Option<&'a Moment>,
    files: HashSet<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Millis = 60_000;

    fn commit() -> Made {
        Made {
            time: 10 * WINDOW,
            branch: Some("main".into()),
            worktree: Some("/repo".into()),
            files: vec!["src/a.rs".into(), "src/b.rs".into()],
        }
    }

    fn session(session: i64, minutes_before: Millis) -> Moment {
        let time = commit().time - minutes_before * MINUTE;
        Moment { session, time, branch: commit().branch, worktree: commit().worktree, files: vec![] }
    }

    fn order(mut moments: Vec<Moment>) -> Vec<i64> {
        moments.sort_by_key(|moment| moment.time);
        behind(&commit(), &moments)
    }

    #[test]
    fn only_the_two_hours_before_count() {
        assert_eq!(order(vec![session(1, 120), session(2, 121), session(3, -1), session(4, 0)]), [4, 1]);
        let same_second = Moment { time: commit().time + SECOND, ..session(5, 0) };
        let next_second = Moment { time: commit().time + SECOND + 1, ..session(6, 0) };
        assert_eq!(order(vec![same_second, next_second]), [5]);
    }

    #[test]
    fn a_commit_merged_into_another_branch_is_known_by_its_files() {
        let on_topic =
            Moment { branch: Some("topic".into()), files: vec!["src/a.rs".into()], ..session(1, 50) };
        assert_eq!(order(vec![on_topic, session(2, 5)]), [1, 2]);
    }

    #[test]
    fn the_work_tree_comes_before_files_and_files_before_branch_and_recency() {
        let elsewhere = Moment { worktree: Some("/other".into()), ..session(1, 0) };
        let other_branch = Moment { branch: Some("wip".into()), ..session(2, 1) };
        let recent = session(3, 2);
        let touched = Moment { files: vec!["src/b.rs".into()], ..session(4, 90) };
        let unknown =
            Moment { branch: None, worktree: None, files: vec!["src/a.rs".into()], ..session(5, 1) };
        let moments = vec![elsewhere, other_branch, recent, touched, unknown];
        assert_eq!(order(moments), [4, 3, 2, 5, 1]);
    }

    #[test]
    fn equals_are_ordered_by_their_row() {
        assert_eq!(order(vec![session(9, 5), session(7, 5)]), [7, 9]);
    }
}
