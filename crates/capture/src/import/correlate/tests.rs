//! Tests of how much each kind of evidence counts.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::tuning::{CALL_AT_REFLOG_TIME, PRINTED_ID};
use tiro_base::memory::{MemoryKey, Millis};
use tiro_store::SessionKey;

const MINUTE: Millis = 60_000;
const NOON: Millis = 1_700_000_000_000;

fn commit(number: i64, minute: Millis, parent: &str, files: &[&str]) -> Commit {
    let time = NOON + minute * MINUTE;
    Commit {
        key: MemoryKey::from_store(number),
        time,
        until: time,
        author: Some("Ada".into()),
        message: format!("Commit {number}"),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        shas: vec![sha(number)],
        parents: vec![parent.to_owned()].into_iter().filter(|parent| !parent.is_empty()).collect(),
        here: Some(Here { time, worktree: "/repo".into() }),
        is_pulled: false,
    }
}

fn sha(number: i64) -> String {
    format!("{number:040x}")
}

fn change(session: i64, minute: Millis, path: &str, lines: &[u32]) -> Change {
    let time = NOON + minute * MINUTE;
    let session = SessionKey::from_store(session);
    Change { session, time, path: path.into(), worktree: Some("/repo".into()), lines: lines.to_vec() }
}

fn lines(of: &[(usize, &str, &[u32])]) -> HashMap<usize, ChangedLines> {
    let mut all: HashMap<usize, ChangedLines> = HashMap::new();
    for (at, path, lines) in of {
        all.entry(*at).or_default().insert((*path).to_owned(), lines.iter().map(|line| (*line, 1)).collect());
    }
    all
}

fn evidence(commits: Vec<Commit>, changes: Vec<Change>, calls: Vec<Call>) -> Evidence {
    Evidence::new(commits, changes, calls, HashSet::from(["Ada".to_owned()]))
}

fn sessions(found: &[(SessionKey, f64)]) -> Vec<i64> {
    found.iter().map(|(session, _)| session.in_store()).collect()
}

#[test]
fn changes_of_the_last_days_count_and_a_month_old_ones_do_not() {
    let behind = |minutes_before: Millis| {
        let evidence =
            evidence(vec![commit(1, 0, "", &["a"])], vec![change(7, -minutes_before, "a", &[5])], vec![]);
        assert_eq!(evidence.commits_to_compare(0), if minutes_before > 43_200 { vec![] } else { vec![0] });
        sessions(&evidence.behind(0, &lines(&[(0, "a", &[5])])))
    };
    assert_eq!((behind(1), behind(180), behind(5 * 24 * 60)), (vec![7], vec![7], vec![7]));
    assert_eq!(behind(31 * 24 * 60), [0; 0]);
}

#[test]
fn reverted_lines_and_other_files_are_no_evidence() {
    let changes = vec![
        change(1, -50, "a", &[5]),
        change(2, -40, "a", &[6, 7]),
        change(3, -30, "b", &[5]),
        change(4, -20, "a", &[]),
    ];
    let evidence = evidence(vec![commit(1, 0, "", &["a"])], changes, vec![]);
    let found = evidence.behind(0, &lines(&[(0, "a", &[6, 9])]));
    assert_eq!(sessions(&found), [2, 4], "{found:?}");
    assert!(found[0].1 > found[1].1);
}

#[test]
fn a_change_counts_for_the_first_commit_of_its_file() {
    let commits = vec![commit(1, 0, "", &["a"]), commit(2, 10, &sha(1), &["a"])];
    for (left, expected) in [(&[6][..], vec![]), (&[5][..], vec![]), (&[8][..], vec![1])] {
        // The second commit may contain a line that the first left out.
        let evidence = evidence(commits.clone(), vec![change(1, -10, "a", &[5, 8])], vec![]);
        let lines = lines(&[(0, "a", &[5]), (1, "a", left)]);
        assert_eq!(sessions(&evidence.behind(0, &lines)), [1]);
        assert_eq!(sessions(&evidence.behind(1, &lines)), expected, "{left:?}");
    }
    let unknown = evidence(commits, vec![change(1, -10, "a", &[])], vec![]);
    assert_eq!(sessions(&unknown.behind(0, &HashMap::new())), [1]);
    assert_eq!(sessions(&unknown.behind(1, &HashMap::new())), [0; 0]);
}

/// A line that a session wrote in January used to link it to a commit of February that wrote it again.
#[test]
fn a_line_that_comes_back_weeks_later_is_no_evidence() {
    let days = |days: Millis| days * 24 * 60;
    for (first, expected) in [(-days(20), vec![]), (-days(2), vec![1])] {
        let commits = vec![commit(1, first, "", &["a"]), commit(2, 0, &sha(1), &["a"])];
        let evidence = evidence(commits, vec![change(1, first - 10, "a", &[5, 8])], vec![]);
        let lines = lines(&[(0, "a", &[5]), (1, "a", &[8])]);
        assert_eq!(sessions(&evidence.behind(1, &lines)), expected);
    }
}

#[test]
fn a_commit_of_another_author_needs_a_call_of_the_session() {
    let theirs = Commit { author: Some("Bea".into()), here: None, ..commit(1, 0, "", &["a"]) };
    let call = Call {
        session: SessionKey::from_store(2),
        began: NOON,
        ended: NOON,
        sha: sha(1)[..12].into(),
        worktree: None,
    };
    let changes = vec![change(1, -10, "a", &[5])];
    let evidence = evidence(vec![theirs.clone()], changes.clone(), vec![call]);
    assert_eq!(evidence.behind(0, &lines(&[(0, "a", &[5])])), [(SessionKey::from_store(2), PRINTED_ID)]);
    // If the user is unknown, any author may be the user.
    let unknown = Evidence::new(vec![theirs], changes, vec![], HashSet::new());
    assert_eq!(sessions(&unknown.behind(0, &lines(&[(0, "a", &[5])]))), [1]);
}

#[test]
fn the_work_tree_decides_between_equal_changes_and_excludes_none() {
    let elsewhere = Change { worktree: Some("/other".into()), ..change(2, -5, "a", &[5]) };
    let alone = evidence(vec![commit(1, 0, "", &["a"])], vec![elsewhere.clone()], vec![]);
    assert_eq!(
        sessions(&alone.behind(0, &lines(&[(0, "a", &[5])]))),
        [2],
        "squashed from the other work tree"
    );
    let both = evidence(vec![commit(1, 0, "", &["a"])], vec![change(1, -10, "a", &[5]), elsewhere], vec![]);
    assert_eq!(sessions(&both.behind(0, &lines(&[(0, "a", &[5])]))), [1]);
}

#[test]
fn a_call_without_output_is_matched_by_time_and_work_tree() {
    let call = |worktree: &str, began: Millis| Call {
        session: SessionKey::from_store(3),
        began: NOON + began,
        ended: NOON + began + 4000,
        sha: String::new(),
        worktree: Some(worktree.into()),
    };
    for (call, expected) in [
        (call("/repo", -2000), vec![(SessionKey::from_store(3), CALL_AT_REFLOG_TIME)]),
        (call("/other", -2000), vec![]),
        (call("/repo", 5000), vec![]),
    ] {
        let evidence = evidence(vec![commit(1, 0, "", &["a"])], vec![], vec![call]);
        assert_eq!(evidence.behind(0, &HashMap::new()), expected);
    }
}

#[test]
fn amended_and_squashed_commits_differ_from_branches_that_continue() {
    // Commit 1 is the base. Commit 2 was amended, which gave 3. Commits 4 and 5 on a branch were squashed into 6.
    // Commit 7 is other work on the same files.
    let amended = Commit { until: NOON + 5 * MINUTE, ..commit(3, 1, &sha(1), &["a"]) };
    let commits = vec![
        commit(1, 0, "", &["a", "b"]),
        commit(2, 1, &sha(1), &["a"]),
        amended,
        commit(4, 10, &sha(3), &["a"]),
        commit(5, 20, &sha(4), &["b"]),
        commit(7, 25, &sha(3), &["a", "b"]),
        commit(6, 30, &sha(3), &["a", "b"]),
    ];
    let of = |keys: &[i64]| -> HashSet<usize> {
        (0..commits.len()).filter(|&at| keys.contains(&commits[at].key.in_store())).collect()
    };
    let evidence = evidence(commits.clone(), vec![], vec![]);
    let found = |alike: bool, on_branch: &[i64]| {
        let are_alike = |one: &Commit, _: &Commit, _: &[String]| alike && one.key.in_store() == 5;
        let seen = Seen {
            current: &of(&[1, 3, 6]),
            on_branch: &of(on_branch),
            amended: &HashSet::new(),
            are_alike: &are_alike,
        };
        let found = replaced(&evidence, &seen);
        found
            .iter()
            .map(|each| (commits[each.old].key.in_store(), commits[each.by].key.in_store()))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(true, &[1, 3, 6, 7]), [(2, 3), (4, 6), (5, 6)]);
    assert_eq!(found(true, &[1, 3, 5, 4, 6, 7]), [(2, 3), (4, 6), (5, 6)], "the branch may stay");
    assert_eq!(
        found(false, &[1, 2, 3, 4, 5, 6, 7]),
        [],
        "a commit on a branch with other contents is not replaced"
    );
}

#[test]
fn a_line_of_many_writers_or_repeated_in_the_file_is_no_evidence() {
    let behind = |others: i64, times: usize| {
        let own = change(1, -50, "a", &[5, 6, 7]);
        let others = (0..others).map(|other| change(10 + other, -100, "b", &[6]));
        let changes: Vec<Change> = others.chain([own]).collect();
        let evidence = evidence(vec![commit(1, 0, "", &["a"])], changes, vec![]);
        let mut lines = lines(&[(0, "a", &[6, 9])]);
        lines.get_mut(&0).unwrap().get_mut("a").unwrap().insert(6, times);
        sessions(&evidence.behind(0, &lines))
    };
    assert_eq!(behind(0, 1), [1], "a line of its own");
    assert_eq!(behind(0, 2), [0; 0], "the file has it twice");
    assert_eq!(behind(2, 1), [0; 0], "three sessions wrote it");
}

#[test]
fn a_line_counts_for_the_session_with_most_lines_in_the_commit() {
    // Session 1 wrote two lines that were reverted, and one that session 2 wrote as well.
    let changes = vec![change(1, -10, "a", &[5, 6, 7]), change(2, -50, "a", &[7, 8])];
    let both = evidence(vec![commit(1, 0, "", &["a"])], changes, vec![]);
    assert_eq!(sessions(&both.behind(0, &lines(&[(0, "a", &[7, 8])]))), [2]);
    assert_eq!(sessions(&both.behind(0, &lines(&[(0, "a", &[6, 7, 8])]))), [2, 1]);
}

#[test]
fn an_explained_commit_is_not_linked_to_a_session_with_unknown_lines() {
    let changes = vec![change(1, -10, "a", &[]), change(2, -50, "a", &[7, 8])];
    let both = evidence(vec![commit(1, 0, "", &["a"])], changes, vec![]);
    assert_eq!(sessions(&both.behind(0, &lines(&[(0, "a", &[7, 8])]))), [2]);
    assert_eq!(sessions(&both.behind(0, &lines(&[(0, "a", &[7, 8, 9, 10])]))), [2, 1]);
}

#[test]
fn few_of_many_lines_are_no_link_and_neither_is_a_merge() {
    let many: Vec<u32> = (1..=20).collect();
    let evidence_of = |commits| evidence(commits, vec![change(1, -10, "a", &many)], vec![]);
    let behind =
        |own: &[u32]| evidence_of(vec![commit(1, 0, "", &["a"])]).behind(0, &lines(&[(0, "a", own)]));
    assert_eq!((sessions(&behind(&[1, 2])), sessions(&behind(&[1, 2, 3, 4]))), (vec![], vec![1]));
    let merge = Commit { parents: vec![sha(8), sha(9)], ..commit(1, -5, "", &["a"]) };
    let merged = evidence_of(vec![merge, commit(2, 0, &sha(1), &["a"])]);
    assert_eq!(sessions(&merged.behind(1, &lines(&[(1, "a", &many)]))), [1]);
}

#[test]
fn a_session_none_of_whose_lines_are_in_the_commit_is_not_linked_by_another_file() {
    let behind = |first: &[u32]| {
        let changes = vec![change(1, -20, "a", first), change(1, -10, "b", &[])];
        let evidence = evidence(vec![commit(1, 0, "", &["a", "b"])], changes, vec![]);
        sessions(&evidence.behind(0, &lines(&[(0, "a", &[5, 6]), (0, "b", &[7])])))
    };
    assert_eq!((behind(&[8, 9]), behind(&[5, 9])), (vec![], vec![1]));
}
