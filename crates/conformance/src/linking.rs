//! Promises about commits: which sessions led to them, the evidence for this, and the graph of commits.

use super::fixture::{Answered, Fixture, commit, message_at, name, prepared, quarter, sha, tool_call};
use tiro_base::memory::{Draft, FileWrite, Kind, MemoryKey, Millis, Provenance, Work};
use tiro_store::*;

/// Stores commits made at 10, 20, … ms, and one message for each session. Returns the keys of the commits and of
/// the sessions.
async fn history(fixture: &Fixture, commits: &str, sessions: &[&str]) -> (Vec<MemoryKey>, Vec<SessionKey>) {
    let (mut made, mut opened) = (Vec::new(), Vec::new());
    for (number, digit) in commits.chars().enumerate() {
        let id = fixture.put(commit(digit, &format!("commit {digit}\nbody"), 10 * (number as i64 + 1))).await;
        made.push(fixture.key(&id).await);
    }
    for session in sessions {
        fixture.say(session, &[session]).await;
        opened.push(fixture.session_key(session).await);
    }
    (made, opened)
}

async fn link(fixture: &Fixture, commit: MemoryKey, sessions: &[(SessionKey, f64)]) {
    fixture.store.link_commits(&fixture.scope, vec![(commit, sessions.to_vec())]).await.answered();
}

pub async fn links_keep_their_order_and_confidence(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "ab", &["s", "t"]).await;
    let links = [(sessions[1], 0.9), (sessions[0], 0.6)];
    link(&fixture, commits[0], &links).await;
    let found = fixture.store.links_of(&fixture.scope, vec![commits[0]]).await.answered();
    assert_eq!(found, [(commits[0], links.to_vec())]);
    let asked = vec![commits[1], commits[0]];
    let behind = fixture.store.sessions_behind(&fixture.scope, asked).await.answered();
    assert_eq!(behind, [vec![], vec![(name("t"), 0.9), (name("s"), 0.6)]]);
}

pub async fn new_links_replace_the_old(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "a", &["s", "t"]).await;
    link(&fixture, commits[0], &[(sessions[0], 0.6)]).await;
    link(&fixture, commits[0], &[(sessions[1], 0.9)]).await;
    let behind = fixture.store.sessions_behind(&fixture.scope, vec![commits[0]]).await.answered().concat();
    assert_eq!(behind, [(name("t"), 0.9)]);
    link(&fixture, commits[0], &[]).await;
    assert!(fixture.store.commits_of(&fixture.scope, &name("t")).await.answered().is_empty());
}

pub async fn a_link_leaves_with_its_session(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "a", &["s"]).await;
    link(&fixture, commits[0], &[(sessions[0], 0.6)]).await;
    fixture.forget_session("s", "f1").await;
    assert!(
        fixture.store.sessions_behind(&fixture.scope, vec![commits[0]]).await.answered().concat().is_empty()
    );
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert_eq!(
        fixture.store.links_of(&fixture.scope, commits.clone()).await.answered(),
        [(commits[0], vec![])]
    );
    link(&fixture, commits[0], &[(sessions[0], 0.6)]).await;
    assert_eq!(
        fixture.store.links_of(&fixture.scope, commits.clone()).await.answered(),
        [(commits[0], vec![])]
    );
}

pub async fn commits_of_a_session_come_latest_first(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "abc", &["s"]).await;
    for commit in [commits[0], commits[2]] {
        link(&fixture, commit, &[(sessions[0], 0.6)]).await;
    }
    assert_eq!(
        fixture.store.commits_of(&fixture.scope, &name("s")).await.answered(),
        [commits[2], commits[0]]
    );
}

pub async fn linked_commits_are_listed_nearest_first(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "abc", &["s"]).await;
    for (commit, confidence) in commits.iter().zip([0.9, 0.8, 0.7]) {
        link(&fixture, *commit, &[(sessions[0], confidence)]).await;
    }
    let came = async |time: Millis, limit| {
        let (rows, all) =
            fixture.store.linked_commits(&fixture.scope, &name("s"), None, time, limit).await.answered();
        (rows.into_iter().map(|row| row.subject).collect::<Vec<_>>(), all)
    };
    assert_eq!(came(15, 9).await, (vec!["commit b".into(), "commit c".into(), "commit a".into()], 3));
    assert_eq!(came(15, 1).await, (vec!["commit b".to_owned()], 3));
}

pub async fn a_session_behind_a_commit_is_shown_as_of_its_time(fixture: Fixture) {
    fixture.save(vec![message_at("s", "a", 10), message_at("s", "b", 20), message_at("t", "c", 50)]).await;
    let origin = Origin { title: Some("A title".into()), ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("s"), origin).await.answered();
    let sessions = vec![name("s"), name("unknown"), name("t")];
    let behind = fixture.store.behind(&fixture.scope, sessions, 15).await.answered();
    let rows: Vec<_> =
        behind.into_iter().map(|row| (row.session, row.title, row.time, row.ordinal)).collect();
    assert_eq!(rows, [(name("s"), Some("A title".to_owned()), 10, 0), (name("t"), None, 50, 0)]);
}

fn write(path: &str) -> Work {
    let write = FileWrite { path: path.into(), worktree: Some("/w".into()), lines: vec![7, 3] };
    Work { writes: vec![write], ..Work::default() }
}

fn committed(sha: &str, ended: Millis) -> Work {
    Work { commits: Some(vec![sha.into()]), ended: Some(ended), ..Work::default() }
}

pub async fn changes_of_files_come_in_order_of_time(fixture: Fixture) {
    for (text, path, time) in [("a", "late.rs", 30), ("b", "early.rs", 10), ("c", "other.rs", 90)] {
        fixture.put(tool_call("s", text, write(path), time)).await;
    }
    let key = fixture.session_key("s").await;
    let rows = fixture.store.file_writes(&fixture.scope, 10, 30).await.answered();
    assert_eq!(
        rows.iter().map(|row| (row.path.as_str(), row.time)).collect::<Vec<_>>(),
        [("early.rs", 10), ("late.rs", 30)]
    );
    assert!(rows.iter().all(|row| row.session == key && row.worktree.as_deref() == Some("/w")));
    assert_eq!(rows[0].lines.len(), 2);
}

pub async fn changes_of_one_file_come_the_latest_first(fixture: Fixture) {
    for (text, path, time) in [("a", "x.rs", 30), ("b", "x.rs", 10), ("c", "y.rs", 20), ("d", "x.rs", 90)] {
        fixture.put(tool_call("s", text, write(path), time)).await;
    }
    let read = async |paths: &[&str], limit| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let rows = fixture.store.writes_of(&fixture.scope, paths, 30, limit).await.answered();
        rows.iter().map(|row| (row.path.clone(), row.time)).collect::<Vec<_>>()
    };
    let found = |rows: &[(&str, Millis)]| -> Vec<(String, Millis)> {
        rows.iter().map(|(path, time)| ((*path).to_owned(), *time)).collect()
    };
    assert_eq!(read(&["x.rs"], 9).await, found(&[("x.rs", 30), ("x.rs", 10)]));
    assert_eq!(read(&["x.rs", "y.rs", "x.rs"], 1).await, found(&[("x.rs", 30), ("y.rs", 20)]));
    assert_eq!(read(&["z.rs"], 9).await, []);
    let rows = fixture.store.writes_of(&fixture.scope, vec!["y.rs".into()], 30, 1).await.answered();
    assert_eq!(fixture.store.texts(&fixture.scope, vec![rows[0].memory]).await.answered()[0].1, "c");
}

pub async fn evidence_leaves_with_its_message(fixture: Fixture) {
    let call = fixture.put(tool_call("s", "a", write("a.rs"), 10)).await;
    fixture.put(tool_call("s", "b", committed("abc", 25), 20)).await;
    fixture.forget(&[&call], "f1").await;
    assert!(fixture.store.file_writes(&fixture.scope, 0, 99).await.answered().is_empty());
    assert_eq!(fixture.store.commit_calls(&fixture.scope, 0, 99).await.answered().len(), 1);
    fixture.undo().await;
    assert_eq!(fixture.store.file_writes(&fixture.scope, 0, 99).await.answered().len(), 1);
}

pub async fn calls_that_commit_are_known_by_their_time(fixture: Fixture) {
    for (text, sha, time) in [("a", "aaa", 10), ("b", "bbb", 20), ("c", "ccc", 30)] {
        fixture.put(tool_call("s", text, committed(sha, time + 5), time)).await;
    }
    let calls = fixture.store.commit_calls(&fixture.scope, 15, 25).await.answered();
    let rows: Vec<_> = calls.iter().map(|call| (call.sha.as_str(), call.began, call.ended)).collect();
    assert_eq!(rows, [("bbb", 20, 25)]);
}

pub async fn the_first_evidence_is_known(fixture: Fixture) {
    assert_eq!(fixture.store.first_evidence(&fixture.scope).await.answered(), None);
    fixture.put(tool_call("s", "a", write("a.rs"), 30)).await;
    fixture.put(tool_call("s", "b", committed("abc", 25), 20)).await;
    assert_eq!(fixture.store.first_evidence(&fixture.scope).await.answered(), Some(20));
}

fn part(stamp: &str, first: usize, count: usize) -> GraphRow {
    GraphRow { stamp: stamp.into(), first, count, bytes: vec![first as u8; count] }
}

pub async fn parts_of_the_graph_follow_one_another(fixture: Fixture) {
    let add = async |part| fixture.store.add_to_commit_graph(&fixture.scope, part).await.answered();
    assert!(add(part("one", 0, 3)).await && add(part("one", 3, 2)).await);
    let parts = async || fixture.store.commit_graph(&fixture.scope).await.answered();
    assert_eq!(parts().await, [part("one", 0, 3), part("one", 3, 2)]);
    // A part with another stamp replaces the graph.
    assert!(add(part("two", 0, 4)).await);
    assert_eq!(parts().await, [part("two", 0, 4)]);
}

pub async fn of_two_that_add_a_part_one_does(fixture: Fixture) {
    let other = fixture.engine.open();
    let (one, two) = tokio::join!(
        fixture.store.add_to_commit_graph(&fixture.scope, part("one", 0, 3)),
        other.add_to_commit_graph(&fixture.scope, part("one", 0, 3))
    );
    assert!(one.answered() != two.answered(), "one was first");
    assert!(!fixture.store.add_to_commit_graph(&fixture.scope, part("one", 7, 1)).await.answered(), "a gap");
    assert_eq!(fixture.store.commit_graph(&fixture.scope).await.answered(), [part("one", 0, 3)]);
}

pub async fn a_commit_stands_for_those_it_replaces(fixture: Fixture) {
    let (commits, _) = history(&fixture, "abc", &[]).await;
    let (store, scope) = (&fixture.store, &fixture.scope);
    // The first commit was amended, and the result was then squashed.
    let replaced = vec![(commits[0], commits[1]), (commits[1], commits[2])];
    store.replace_commits(scope, commits[..2].to_vec(), None, replaced).await.answered();
    assert_eq!(fixture.stand_ins(&commits).await, [(commits[0], commits[2]), (commits[1], commits[2])]);
    let mut replaced = store.replaced_commits(scope).await.answered();
    replaced.sort();
    assert_eq!(replaced, [(commits[0], sha('a')), (commits[1], sha('b'))]);
}

pub async fn a_commit_that_is_back_is_not_replaced(fixture: Fixture) {
    let (commits, _) = history(&fixture, "ab", &[]).await;
    let (store, scope) = (&fixture.store, &fixture.scope);
    let replaced = vec![(commits[0], commits[1])];
    store.replace_commits(scope, vec![commits[0]], None, replaced).await.answered();
    assert_eq!(fixture.stand_ins(&commits).await.len(), 1);
    // The replacement of a commit is kept if the commit is among `others`.
    let others = Some([commits[0]].into_iter().collect());
    store.replace_commits(scope, vec![commits[0]], others, Vec::new()).await.answered();
    assert_eq!(fixture.stand_ins(&commits).await.len(), 1);
    store.replace_commits(scope, vec![commits[0]], None, Vec::new()).await.answered();
    assert!(fixture.stand_ins(&commits).await.is_empty());
}

pub async fn a_prefix_names_one_commit_or_none(fixture: Fixture) {
    let (commits, _) = history(&fixture, "ab", &[]).await;
    let mut similar = commit('c', "similar", 90);
    let long = format!("aaaa{}", "b".repeat(36));
    (similar.draft.source_id, similar.draft.commit.as_mut().unwrap().sha) = (Some(long.clone()), long);
    fixture.put(similar).await;
    let named = async |prefix: &str| {
        let found = fixture.store.commit_named(&fixture.scope, prefix).await.answered();
        found.map(|(commit, _)| commit)
    };
    assert_eq!((named("bbb").await, named("aaaaa").await), (Some(commits[1]), Some(commits[0])));
    assert_eq!((named("aaa").await, named("ccc").await), (None, None));
}

pub async fn forgotten_commits_stay_known(fixture: Fixture) {
    let ids = fixture.save(vec![commit('a', "one", 10), commit('b', "two", 20)]).await.outcomes;
    fixture.forget(&[&ids[0].0], "f1").await;
    let mut known = fixture.store.known_commits(&fixture.scope).await.answered();
    known.sort();
    assert_eq!(known, [sha('a'), sha('b')], "an import doesn't read them again");
}

pub async fn commits_are_paged_in_order_of_time(fixture: Fixture) {
    let (commits, _) = history(&fixture, "abcd", &[]).await;
    let made = async |after, until, limit| {
        let rows = fixture.store.commits_made(&fixture.scope, after, until, limit).await.answered();
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(made((0, None), 30, 2).await, commits[..2]);
    assert_eq!(made((20, Some(commits[1])), 30, 2).await, commits[2..3]);
    let rows = fixture.store.commits_made(&fixture.scope, (0, None), 99, 1).await.answered();
    assert_eq!(
        (rows[0].time, rows[0].shas.clone(), rows[0].message.as_str()),
        (10, vec![sha('a')], "commit a\nbody")
    );
}

pub async fn the_last_commit_before_a_time_is_of_its_branch(fixture: Fixture) {
    for (digit, branch, time) in [('a', "main", 10), ('b', "side", 20)] {
        let mut commit = commit(digit, "a commit", time);
        commit.draft.branch = Some(branch.into());
        fixture.put(commit).await;
    }
    let places = [("main", 30), ("side", 30), ("side", 15)].map(|(branch, time)| (branch.to_owned(), time));
    let found = fixture.store.commits_before(&fixture.scope, places.to_vec()).await.answered();
    assert_eq!(found, [Some(sha('a')), Some(sha('b')), None]);
}

pub async fn a_summary_of_a_commit_is_known_by_it(fixture: Fixture) {
    let ids = fixture.save(vec![commit('a', "one", 10), commit('b', "two", 20)]).await.outcomes;
    let keys = [fixture.key(&ids[0].0).await, fixture.key(&ids[1].0).await];
    let (store, scope) = (&fixture.store, &fixture.scope);
    assert_eq!(store.commits_without_summary(scope, 9).await.answered(), [keys[1], keys[0]]);
    let mut draft = Draft::new(Kind::Summary, Provenance::Derived, "two in short", 20);
    draft.references = vec![ids[1].0.clone()];
    let summary = fixture.put(prepared(draft, "two in short")).await;
    assert_eq!(store.commits_without_summary(scope, 9).await.answered(), [keys[0]]);
    assert_eq!(store.summary_of_commit(scope, &ids[1].0).await.answered(), Some(summary));
    assert_eq!(store.summary_of_commit(scope, &ids[0].0).await.answered(), None);
}

pub async fn an_owner_has_no_commit_of_another(fixture: Fixture) {
    let (commits, sessions) = history(&fixture, "ab", &["s"]).await;
    link(&fixture, commits[0], &[(sessions[0], 0.6)]).await;
    fixture.put(tool_call("s", "a call", write("a.rs"), 10)).await;
    fixture.store.add_to_commit_graph(&fixture.scope, part("one", 0, 3)).await.answered();
    let (store, stranger) = (&fixture.store, fixture.stranger());
    assert!(store.known_commits(&stranger).await.answered().is_empty());
    assert!(store.commits_made(&stranger, (0, None), 99, 9).await.answered().is_empty());
    assert_eq!(store.commit_named(&stranger, "aaaa").await.answered(), None);
    assert!(store.sessions_behind(&stranger, vec![commits[0]]).await.answered().concat().is_empty());
    assert!(store.file_writes(&stranger, 0, 99).await.answered().is_empty());
    assert!(store.writes_of(&stranger, vec!["a.rs".into()], 99, 9).await.answered().is_empty());
    assert!(store.commit_graph(&stranger).await.answered().is_empty());
    // Another owner can't link, replace or summarise the commits, either.
    store.link_commits(&stranger, vec![(commits[0], Vec::new())]).await.answered();
    let replaced = vec![(commits[0], commits[1])];
    store.replace_commits(&stranger, commits.clone(), None, replaced).await.answered();
    assert_eq!(store.sessions_behind(&fixture.scope, vec![commits[0]]).await.answered().concat().len(), 1);
    assert!(fixture.stand_ins(&commits).await.is_empty());
    let derived = quarter("theirs", &[fixture.rows("s").await[0].id.clone()]);
    let saved = store.save(&stranger, vec![derived], 1).await.answered();
    assert_eq!(saved.count(Outcome::Forgotten), 1, "its source has another owner");
}
