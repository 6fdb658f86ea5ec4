//! Promises about backups, restoring from them, and counts.

use super::place::{Answered, NO_ANSWER, Place, commit, embedded, fact, message, name, note, outcomes};
use super::subject::Engine;
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

pub async fn a_backup_is_a_store_of_that_moment<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    place.summarise("s", 0, 1).await;
    place.put(embedded(note("larch"), [1.0, 0.0, 0.0, 0.0])).await;
    place.forget(&[&place.put(note("oak")).await], "f1").await;
    let target = place.engine.folder().join("backup.db");
    place.store.back_up(&place.scope, &target).await.answered();
    place.put(note("late")).await;
    let store = place.engine.open_copy(&target);
    let copy = Place { store, ..place };
    assert_eq!(copy.listed(&Filter::default()).await, ["larch", "willow", "maple"]);
    assert_eq!(copy.rows("s").await.into_iter().map(|row| row.id).collect::<Vec<_>>(), said);
    assert_eq!((copy.found("larch").await, copy.summaries("s").await.len()), (1, 1));
    assert_eq!(copy.near(&copy.scope, &Filter::default(), [1.0, 0.0, 0.0, 0.0], 9).await, ["larch"]);
    assert_eq!(copy.undo().await.ids.len(), 1);
    let check = copy.store.check(&copy.scope).await.answered();
    assert!(check.is_sound(), "{check:?}");
}

pub async fn a_backup_holds_nothing_of_another_owner<E: Engine>(place: Place<E>) {
    place.put(note("maple")).await;
    place.store.save(&place.stranger(), vec![note("a qwzxv")], 1).await.answered();
    let target = place.engine.folder().join("backup.db");
    place.store.back_up(&place.scope, &target).await.answered();
    let bytes = std::fs::read(&target).unwrap();
    assert!(!bytes.windows(5).any(|window| window == b"qwzxv"));
    let store = place.engine.open_copy(&target);
    let copy = Place { store, ..place };
    assert_eq!(copy.listed(&Filter::default()).await, ["maple"]);
    assert!(copy.store.is_empty(&copy.stranger()).await.answered());
}

pub async fn a_backup_replaces_no_file<E: Engine>(place: Place<E>) {
    place.put(note("maple")).await;
    let target = place.engine.folder().join("backup.db");
    std::fs::write(&target, "theirs").unwrap();
    assert!(place.store.back_up(&place.scope, &target).await.is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
}

pub async fn a_message_is_restored_at_its_place<E: Engine>(place: Place<E>) {
    let memories = vec![restored(message("s", "maple"), Some(2)), restored(message("s", "willow"), Some(5))];
    let receipt = place.store.restore(&place.scope, memories, 1).await.answered();
    assert_eq!((outcomes(&receipt), receipt.pending), (vec![Outcome::Stored; 2], 2));
    assert_eq!(place.rows("s").await.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [2, 5]);
    // If a memory's former ordinal is taken, the memory gets another ordinal.
    let late = vec![restored(message("s", "larch"), Some(2))];
    place.store.restore(&place.scope, late, 1).await.answered();
    assert_eq!(place.rows("s").await.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [2, 5, 6]);
}

pub async fn marks_and_links_are_restored<E: Engine>(place: Place<E>) {
    place.say("s", &["maple"]).await;
    let known = RestoredMemory { is_marked: true, ..restored(message("s", "maple"), Some(0)) };
    let linked = RestoredMemory { links: vec![(name("s"), 0.7)], ..restored(commit('a', "one", 10), None) };
    let id = linked.memory.id.clone();
    let receipt = place.store.restore(&place.scope, vec![known, linked], 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::AlreadyStored, Outcome::Stored]);
    assert!(place.rows("s").await[0].marked);
    let behind = place.store.sessions_behind(&place.scope, place.key(&id).await).await.answered();
    assert_eq!(behind, [(name("s"), 0.7)]);
}

pub async fn forgotten_memories_are_restored_as_forgotten<E: Engine>(place: Place<E>) {
    let forgotten = Some(("f1".to_owned(), 5));
    let source = message("s", "maple");
    let derived = fact("s", "of maple", &[&source.id]);
    let memories = [source, derived]
        .map(|memory| RestoredMemory { forgotten: forgotten.clone(), ..restored(memory, None) });
    let ids: Vec<MemoryId> = memories.iter().map(|each| each.memory.id.clone()).collect();
    let receipt = place.store.restore(&place.scope, memories.to_vec(), 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::Stored, Outcome::Stored]);
    assert!(place.listed(&Filter::default()).await.is_empty());
    assert_eq!(place.found("maple").await, 0);
    let undone = place.store.undo(&place.scope, Some("f1"), 6).await;
    assert_eq!(undone.expect("it was restored with its operation").ids, ids);
    assert_eq!(place.rows("s").await.len(), 1);
}

pub async fn purged_memories_are_not_restored<E: Engine>(place: Place<E>) {
    let kept = place.put(note("kept")).await;
    let gone = note("maple");
    let forgotten =
        ForeignForgotten { purged: vec![gone.id.clone(), kept.clone()], ..ForeignForgotten::default() };
    let added = place.store.restore_forgotten(&place.scope, forgotten).await.answered();
    assert_eq!(added, 1, "a living memory stays");
    assert!(place.living(&kept).await.is_some());
    let receipt = place.store.restore(&place.scope, vec![restored(gone, None)], 1).await.answered();
    assert_eq!(outcomes(&receipt), [Outcome::Forgotten]);
}

pub async fn sessions_are_restored_where_nothing_is_known<E: Engine>(place: Place<E>) {
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
    place.store.restore_sessions(&place.scope, vec![session]).await.answered();
    place.say("s", &["maple"]).await;
    let about = place.store.about_sessions(&place.scope, vec![name("s")]).await.answered().remove(0);
    assert_eq!((about.title.as_deref(), about.client.as_deref()), (Some("A title"), Some("a client")));
    let stands = place.store.session_stands(&place.scope, &name("s")).await.answered();
    assert_eq!((stands.0.as_deref(), place.rows("5f3c").await.len()), (Some("main"), 1));
}

pub async fn counts_are_of_living_memories<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    place.save(vec![note("larch"), embedded(commit('a', "one", 10), [0.5; 4])]).await;
    place.forget(&[&said[0]], "f1").await;
    let sizes = place.store.sizes(&place.scope).await.answered();
    assert_eq!(sizes, Sizes { commits: 1, messages: 1, notes: 1, sessions: 1, stashed: 0 });
    let stats = place.store.stats(&place.scope, 1).await.answered();
    let kinds: Vec<_> =
        stats.kinds.iter().map(|row| (row.kind.as_str(), row.memories, row.bytes, row.tokens)).collect();
    assert_eq!(kinds, [("commit", 1, 3, 1), ("decision", 1, 5, 1), ("message", 1, 6, 1)]);
    assert_eq!((stats.sessions, stats.embedded, stats.tombstoned, stats.stored_lately), (1, 1, 1, 3));
    place.forget_session("s", "f2").await;
    assert_eq!(place.store.sizes(&place.scope).await.answered().sessions, 0);
}

pub async fn a_store_is_empty_without_living_memories<E: Engine>(place: Place<E>) {
    let is_empty = async || place.store.is_empty(&place.scope).await.answered();
    assert!(is_empty().await);
    let id = place.put(note("maple")).await;
    assert!(!is_empty().await);
    place.forget(&[&id], "f1").await;
    assert!(is_empty().await);
}

pub async fn measurements_and_savings_add_up<E: Engine>(place: Place<E>) {
    let other = place.engine.open();
    let savings = Savings { answers: 1, whole: 1000, sent: 100 };
    let measured = |name: &str, micros| vec![Measurement::of(name, micros)];
    place.store.measure(&place.scope, measured("search", 1000), savings).await.answered();
    other.measure(&place.scope, measured("search", 1000), savings).await.answered();
    other.measure(&place.scope, measured("find", 9), Savings::default()).await.answered();
    let place = place.reopened();
    let found = place.store.measurements(&place.scope).await.answered();
    assert_eq!(
        found.iter().map(|row| (row.name.as_str(), row.count)).collect::<Vec<_>>(),
        [("find", 1), ("search", 2)]
    );
    let total = place.store.savings(&place.scope).await.answered();
    assert_eq!(total, Savings { answers: 2, whole: 2000, sent: 200 });
    assert!(place.store.measurements(&place.stranger()).await.expect(NO_ANSWER).is_empty());
}

pub async fn superseded_memories_are_restored_as_superseded<E: Engine>(place: Place<E>) {
    let (old, mut new, newest) = (note("maple"), note("willow"), note("larch"));
    new.draft.supersedes = vec![old.id.clone()];
    // The newest memory comes before the one that it replaces, as after a memory was stored twice.
    let newer = RestoredMemory { superseded_by: vec![newest.id.clone()], ..restored(new, None) };
    let old_id = old.id.clone();
    let memories = vec![restored(newest.clone(), None), restored(old, None), newer];
    place.store.restore(&place.scope, memories, 10).await.answered();
    let keys = vec![place.key(&old_id).await];
    let found = place.store.superseded(&place.scope, keys).await.answered();
    assert_eq!(found.iter().map(|superseded| &superseded.by).collect::<Vec<_>>(), [&newest.id]);
}
