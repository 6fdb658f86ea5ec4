//! A backup of a database holds what a backup of a file of SQLite holds.

use std::path::Path;
use std::sync::Arc;

use crate::tests::engine::Postgres;
use tiro_base::memory::{FileWrite, MemoryId, MemoryKey, Millis, Work};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_conformance::fixture::{
    Answered, Fixture, commit, conversation, embedded, fact, message, name, note, quarter, sha, tool_call,
};
use tiro_conformance::subject::project;
use tiro_sqlite::{SqliteBackup, SqliteStore};
use tiro_store::{
    Flavour, ForeignDepth, ForeignMemory, ForeignPart, Origin, PreparedMemory, Saved, Selection, StashCause,
    Stashing, source_hash,
};

fn private(mut memory: PreparedMemory) -> PreparedMemory {
    memory.draft.visibility = Some(Visibility::Private);
    memory
}

/// Stores memories of every kind, with what belongs to them.
async fn fill(fixture: &Fixture) {
    let (store, scope) = (&fixture.store, &fixture.scope);
    let origin = Origin {
        client: Some("a client".into()),
        worktree: Some("/w".into()),
        title: Some("A title".into()),
        aliases: vec!["5f3c".into(), "6a".into()],
        ..Origin::default()
    };
    store.describe_session(scope, &name("s"), origin.clone()).await.answered();
    let origin = Origin { visibility: Some(Visibility::Private), aliases: vec!["p".into()], ..origin };
    store.describe_session(scope, &name("own"), origin).await.answered();
    let said = fixture.say("s", &["maple", "willow", "larch", "oak"]).await;
    fixture
        .save(vec![private(message("own", "quince")), private(note("medlar")), message("t", "damson")])
        .await;
    let work = Work {
        writes: vec![
            FileWrite { path: "b.rs".into(), worktree: Some("/w".into()), lines: vec![7, 9] },
            FileWrite { path: "a.rs".into(), ..FileWrite::default() },
        ],
        commits: Some(vec!["aaaaaaa".into()]),
        ended: Some(9),
        worktree: Some("/w".into()),
    };
    fixture.put(tool_call("s", "a call", work, 5)).await;
    let mut output = message("t", "an output");
    for occurrence in ["one", "two"] {
        output.draft.occurrence = Some(occurrence.into());
        fixture.save(vec![output.clone()]).await;
    }
    let mut made = embedded(commit('a', "a commit\n\nof two files", 10), [0.25, -1.0, 0.5, 3.0]);
    made.draft.indexed = Some("a commit".into());
    if let Some(commit) = &mut made.draft.commit {
        commit.files = vec!["b.rs".into(), "a.rs".into()];
        commit.parents = vec![sha('c'), sha('b')];
    }
    let made = fixture.put(made).await;
    let links = [("own", 0.9), ("s", 0.6)];
    let mut found = Vec::new();
    for (session, confidence) in links {
        found.push((fixture.session_key(session).await, confidence));
    }
    store.link_commits(scope, vec![(fixture.key(&made).await, found)]).await.answered();
    let older = fixture.put(note("an old decision")).await;
    let mut newer = note("a new decision");
    newer.draft.supersedes = vec![older.clone()];
    newer.draft.path = Some("src/lib.rs".into());
    newer.draft.files = vec!["src/a.rs".into()];
    newer.draft.topic = Some("trees".into());
    newer.draft.importance = Some(0.5);
    fixture.put(newer).await;
    store.mark(scope, &[older, said[0].clone()], true, Some(0.75)).await.answered();
    fixture.put(fact("s", "a fact of maple", &[&said[0]])).await;
    make(fixture, &said).await;
    leave(fixture).await;
}

/// Makes summaries of the session `s`.
async fn make(fixture: &Fixture, said: &[MemoryId]) {
    let (store, scope) = (&fixture.store, &fixture.scope);
    fixture.close_segments("s", &[(0, 0, 1), (1, 2, 3)]).await;
    fixture.summarise("s", 0, 1).await;
    let draft = fixture.draft("s", 0, 1).await;
    let again = tiro_store::Summary { text: "another text".into(), segment: Some(0), ..draft };
    let saved = store.save_version(scope, again, Millis::MAX, 3).await.answered();
    assert!(matches!(saved, Saved::Made(_)), "{saved:?}");
    let mut whole = conversation("s", "of trees");
    whole.draft.references = said[..2].to_vec();
    let hash = source_hash(&said[..2]);
    store.save_conversation(scope, whole.clone(), 1, hash, 7).await.answered();
    store.postpone_conversation(scope, &name("s"), 50).await.answered();
    fixture.summarise("own", 0, 0).await;
    let id = fixture.summarise_session("own", "of quinces", 0).await;
    let Saved::Made(id) = id else { panic!("{id:?}") };
    store.save_quarter(scope, quarter("a quarter", &[whole.id, id]), 8).await.answered();
}

/// Stashes, forgets and purges.
async fn leave(fixture: &Fixture) {
    let (store, scope) = (&fixture.store, &fixture.scope);
    let stashing = Stashing {
        named: vec![fixture.put(note("stashed")).await],
        given: vec![message("t", "given")],
        cause: StashCause::Call,
        expires_at: Some(2_000),
        is_protected: None,
        topic: Some("later".into()),
    };
    store.stash(scope, stashing, 70).await.answered();
    let [gone, purged, back] = ["gone", "purged", "back"].map(|text| message("u", text));
    for memory in [gone.clone(), purged.clone(), back.clone()] {
        fixture.put(memory).await;
    }
    fixture.put(fact("u", "of what is gone", &[&gone.id])).await;
    fixture.forget(&[&back.id], "f1").await;
    fixture.undo().await;
    fixture.forget(&[&gone.id], "f2").await;
    store.forget_for_good(scope, &Selection::Ids(vec![purged.id]), "f3", 5).await.answered();
    fixture.put(message("u", "last")).await;
}

/// Returns a memory without what differs from store to store.
fn comparable(mut memory: ForeignMemory) -> String {
    memory.memory.key = MemoryKey::NOT_STORED;
    format!("{memory:#?}")
}

/// Returns everything that is read from a backup.
async fn content(scope: &Scope, file: &Path) -> Vec<String> {
    let mut backup = SqliteBackup::open(scope, file).await.answered();
    let mut content = vec![format!("{} memories", backup.all)];
    for depth in [ForeignDepth::Origin, ForeignDepth::Made] {
        while let Some(sessions) = backup.next_sessions(depth).await.answered() {
            for mut session in sessions {
                let conversation = session.conversation.take();
                content.push(format!("{session:#?}"));
                content.extend(conversation.map(|it| {
                    format!("{} {} {:?} {}", it.last, it.made_at, it.source_hash, comparable(it.memory))
                }));
            }
        }
    }
    for part in [ForeignPart::Original, ForeignPart::Derived] {
        while let Some(page) = backup.next(part).await.answered() {
            assert_eq!((page.too_long, page.malformed, page.damaged), (0, 0, 0));
            content.extend(page.memories.into_iter().map(comparable));
        }
    }
    let mut forgotten = backup.forgotten().await.answered();
    forgotten.operations.sort();
    content.push(format!("{forgotten:#?}"));
    content
}

/// Fills a store, and returns what a backup of it holds.
async fn backed_up(fixture: &Fixture, folder: &Path) -> Vec<String> {
    fill(fixture).await;
    let target = folder.join("backup.db");
    let damage = fixture.store.back_up(&fixture.scope, &target).await.answered();
    assert!(damage.memories.is_empty(), "{damage:?}");
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
    content(&fixture.scope, &target).await
}

async fn compare(reader: Option<&str>) {
    let Some(engine) = Postgres::new() else { return };
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut fixture = Fixture::new(Box::new(engine));
    if let Some(reader) = reader {
        fixture.scope = fixture.scope.read_by(AuthorId::new(reader));
    }
    let found = backed_up(&fixture, folders[0].path()).await;
    let store = SqliteStore::open(&folders[1].path().join("tiro.db"), Flavour::Project, project()).unwrap();
    let fixture = Fixture { store: Arc::new(store), ..fixture };
    let expected = backed_up(&fixture, folders[1].path()).await;
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
    for text in ["a quarter", "another text", "of quinces", "what is gone", "given", "\"aaaaaaa\""] {
        assert!(found.iter().any(|found| found.contains(text)), "{text}");
    }
}

#[tokio::test]
async fn a_backup_of_ones_own_holds_what_a_file_holds() {
    compare(None).await;
}

#[tokio::test]
async fn a_backup_of_an_author_holds_what_a_file_holds() {
    compare(Some("petra")).await;
}
