//! Promises about backups, restoring from them, and counts.

use super::fixture::{Answered, Fixture, NO_ANSWER, commit, embedded, fact, message, name, note, outcomes};
use tiro_base::filter::Filter;
use tiro_base::memory::MemoryId;
use tiro_store::*;

fn restored(memory: PreparedMemory, ordinal: Option<i64>) -> RestoredMemory {
    RestoredMemory {
        memory,
        ordinal,
        forgotten: None,
        is_marked: false,
        shas: Vec::new(),
        repeats: Vec::new(),
        links: Vec::new(),
        evidence: ForeignEvidence::default(),
        superseded_by: Vec::new(),
        stashed: None,
    }
}

pub async fn a_backup_is_a_store_of_that_moment(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.summarise("s", 0, 1).await;
    fixture.put(embedded(note("larch"), [1.0, 0.0, 0.0, 0.0])).await;
    fixture.forget(&[&fixture.put(note("oak")).await], "f1").await;
    let target = fixture.engine.folder().join("backup.db");
    fixture.store.back_up(&fixture.scope, &target).await.answered();
    fixture.put(note("late")).await;
    let store = fixture.engine.open_copy(&target);
    let copy = Fixture { store, ..fixture };
    assert_eq!(copy.listed(&Filter::default()).await, ["larch", "willow", "maple"]);
    assert_eq!(copy.rows("s").await.into_iter().map(|row| row.id).collect::<Vec<_>>(), said);
    assert_eq!((copy.found("larch").await, copy.summaries("s").await.len()), (1, 1));
    assert_eq!(copy.near(&copy.scope, &Filter::default(), [1.0, 0.0, 0.0, 0.0], 9).await, ["larch"]);
    assert_eq!(copy.undo().await.ids.len(), 1);
    let check = copy.store.check(&copy.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

pub async fn a_backup_holds_nothing_of_another_owner(fixture: Fixture) {
    fixture.put(note("maple")).await;
    fixture.store.save(&fixture.stranger(), vec![note("a qwzxv")], 1).await.answered();
    let target = fixture.engine.folder().join("backup.db");
    fixture.store.back_up(&fixture.scope, &target).await.answered();
    let bytes = std::fs::read(&target).unwrap();
    assert!(!bytes.windows(5).any(|window| window == b"qwzxv"));
    let store = fixture.engine.open_copy(&target);
    let copy = Fixture { store, ..fixture };
    assert_eq!(copy.listed(&Filter::default()).await, ["maple"]);
    assert!(copy.store.is_empty(&copy.stranger()).await.answered());
}

pub async fn a_backup_replaces_no_file(fixture: Fixture) {
    fixture.put(note("maple")).await;
    let target = fixture.engine.folder().join("backup.db");
    std::fs::write(&target, "theirs").unwrap();
    assert!(fixture.store.back_up(&fixture.scope, &target).await.is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
}

pub async fn a_message_is_restored_at_its_place(fixture: Fixture) {
    let memories = vec![restored(message("s", "maple"), Some(2)), restored(message("s", "willow"), Some(5))];
    let receipt = fixture.store.restore(&fixture.scope, memories, 1).await.answered();
    assert_eq!((outcomes(&receipt), receipt.pending), (vec![Outcome::Stored; 2], 2));
    assert_eq!(fixture.rows("s").await.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [2, 5]);
    // If a memory's former ordinal is taken, the memory gets another ordinal.
    let late = vec![restored(message("s", "larch"), Some(2))];
    fixture.store.restore(&fixture.scope, late, 1).await.answered();
    assert_eq!(fixture.rows("s").await.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [2, 5, 6]);
}

pub async fn marks_and_links_are_restored(fixture: Fixture) {
    fixture.say("s", &["maple"]).await;
    let known = RestoredMemory { is_marked: true, ..restored(message("s", "maple"), Some(0)) };
    let linked = RestoredMemory { links: vec![(name("s"), 0.7)], ..restored(commit('a', "one", 10), None) };
    let id = linked.memory.id.clone();
    let receipt = fixture.store.restore(&fixture.scope, vec![known, linked], 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::AlreadyStored, Outcome::Stored]);
    assert!(fixture.rows("s").await[0].marked);
    let behind =
        fixture.store.sessions_behind(&fixture.scope, vec![fixture.key(&id).await]).await.answered().concat();
    assert_eq!(behind, [(name("s"), 0.7)]);
}

pub async fn forgotten_memories_are_restored_as_forgotten(fixture: Fixture) {
    let forgotten = Some(("f1".to_owned(), 5));
    let source = message("s", "maple");
    let derived = fact("s", "of maple", &[&source.id]);
    let memories = [source, derived]
        .map(|memory| RestoredMemory { forgotten: forgotten.clone(), ..restored(memory, None) });
    let ids: Vec<MemoryId> = memories.iter().map(|each| each.memory.id.clone()).collect();
    let receipt = fixture.store.restore(&fixture.scope, memories.to_vec(), 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::Stored, Outcome::Stored]);
    assert!(fixture.listed(&Filter::default()).await.is_empty());
    assert_eq!(fixture.found("maple").await, 0);
    let undone = fixture.store.undo(&fixture.scope, Some("f1"), 6).await;
    assert_eq!(undone.expect("it was restored with its operation").ids, ids);
    assert_eq!(fixture.rows("s").await.len(), 1);
}

pub async fn purged_memories_are_not_restored(fixture: Fixture) {
    let kept = fixture.put(note("kept")).await;
    let gone = note("maple");
    let forgotten =
        ForeignForgotten { purged: vec![gone.id.clone(), kept.clone()], ..ForeignForgotten::default() };
    let added = fixture.store.restore_forgotten(&fixture.scope, forgotten).await.answered();
    assert_eq!(added, 1, "a living memory stays");
    assert!(fixture.living(&kept).await.is_some());
    let receipt = fixture.store.restore(&fixture.scope, vec![restored(gone, None)], 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::Forgotten]);
}

pub async fn sessions_are_restored_where_nothing_is_known(fixture: Fixture) {
    let origin = Origin {
        client: Some("a client".into()),
        title: Some("A title".into()),
        aliases: vec!["5f3c".into()],
        ..Origin::default()
    };
    let session = ForeignSession {
        session: name("s"),
        origin,
        branch: Some("main".into()),
        head_sha: None,
        segments: Vec::new(),
        summaries: Vec::new(),
        conversation: None,
    };
    fixture.store.restore_sessions(&fixture.scope, vec![session]).await.answered();
    fixture.say("s", &["maple"]).await;
    let about = fixture.store.about_sessions(&fixture.scope, vec![name("s")]).await.answered().remove(0);
    assert_eq!((about.title.as_deref(), about.client.as_deref()), (Some("A title"), Some("a client")));
    let stands = fixture.store.session_stands(&fixture.scope, &name("s")).await.answered();
    assert_eq!((stands.0.as_deref(), fixture.rows("5f3c").await.len()), (Some("main"), 1));
}

pub async fn counts_are_of_living_memories(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.save(vec![note("larch"), embedded(commit('a', "one", 10), [0.5; 4])]).await;
    fixture.forget(&[&said[0]], "f1").await;
    let sizes = fixture.store.sizes(&fixture.scope).await.answered();
    assert_eq!(sizes, Sizes { commits: 1, messages: 1, notes: 1, sessions: 1, stashed: 0 });
    let stats = fixture.store.stats(&fixture.scope, 1).await.answered();
    let kinds: Vec<_> =
        stats.kinds.iter().map(|row| (row.kind.as_str(), row.memories, row.bytes, row.tokens)).collect();
    assert_eq!(kinds, [("commit", 1, 3, 1), ("decision", 1, 5, 1), ("message", 1, 6, 1)]);
    assert_eq!((stats.sessions, stats.embedded, stats.tombstoned, stats.stored_lately), (1, 1, 1, 3));
    fixture.forget_session("s", "f2").await;
    assert_eq!(fixture.store.sizes(&fixture.scope).await.answered().sessions, 0);
}

pub async fn a_store_is_empty_without_living_memories(fixture: Fixture) {
    let is_empty = async || fixture.store.is_empty(&fixture.scope).await.answered();
    assert!(is_empty().await);
    let id = fixture.put(note("maple")).await;
    assert!(!is_empty().await);
    fixture.forget(&[&id], "f1").await;
    assert!(is_empty().await);
}

pub async fn measurements_and_savings_add_up(fixture: Fixture) {
    let other = fixture.engine.open();
    let savings = Savings { answers: 1, whole: 1000, sent: 100 };
    let measured = |name: &str, micros| vec![Measurement::of(name, micros)];
    fixture.store.measure(&fixture.scope, measured("search", 1000), savings).await.answered();
    other.measure(&fixture.scope, measured("search", 1000), savings).await.answered();
    other.measure(&fixture.scope, measured("find", 9), Savings::default()).await.answered();
    let fixture = fixture.reopened();
    let found = fixture.store.measurements(&fixture.scope).await.answered();
    assert_eq!(
        found.iter().map(|row| (row.name.as_str(), row.count)).collect::<Vec<_>>(),
        [("find", 1), ("search", 2)]
    );
    let total = fixture.store.savings(&fixture.scope).await.answered();
    assert_eq!(total, Savings { answers: 2, whole: 2000, sent: 200 });
    assert!(fixture.store.measurements(&fixture.stranger()).await.expect(NO_ANSWER).is_empty());
}

pub async fn superseded_memories_are_restored_as_superseded(fixture: Fixture) {
    let (old, mut new, newest) = (note("maple"), note("willow"), note("larch"));
    new.draft.supersedes = vec![old.id.clone()];
    // The newest memory comes before the one that it replaces, as after a memory was stored twice.
    let newer = RestoredMemory { superseded_by: vec![newest.id.clone()], ..restored(new, None) };
    let old_id = old.id.clone();
    let memories = vec![restored(newest.clone(), None), restored(old, None), newer];
    fixture.store.restore(&fixture.scope, memories, 10).await.answered();
    let keys = vec![fixture.key(&old_id).await];
    let found = fixture.superseded(keys).await;
    assert_eq!(found.iter().map(|superseded| &superseded.by).collect::<Vec<_>>(), [&newest.id]);
}
