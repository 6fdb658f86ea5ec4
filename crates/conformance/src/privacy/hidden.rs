//! Promises about readers who don't see what a tenant shares, and about those who may forget what others share.

use super::reads::{Asked, reads};
use super::{PRIVATE, authors, keep_everything, private, shared};
use crate::fixture::*;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId, MemoryKey};
use tiro_base::scope::{Forgets, Scope, Visibility};
use tiro_store::*;

/// Returns what is asked before anything is stored but the commit.
fn unknown(commit: MemoryKey) -> Asked {
    let unknown = MemoryId::derive(Kind::Message, None, "unknown");
    Asked {
        id: unknown.clone(),
        key: MemoryKey::NOT_STORED,
        chunk: ChunkKey::default(),
        summary: unknown.clone(),
        purged: unknown,
        commit,
    }
}

pub async fn what_is_shared_is_hidden_from_those_who_do_not_see_it(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    let hidden = petra.hidden();
    fixture.scope = jonas.clone();
    let commit = fixture.put(commit('a', "a shared commit", 100)).await;
    let commit = fixture.key(&commit).await;
    fixture.scope = hidden.clone();
    fixture.put(note("what petra knows")).await;
    let before = reads(&fixture, &hidden, &unknown(commit)).await;
    assert!(before.values().all(|read| !read.contains("a shared commit")), "{before:?}");
    fixture.scope = jonas;
    let asked = keep_everything(&fixture, commit, Visibility::Project).await;
    let seen = reads(&fixture, &petra, &asked).await;
    let now = reads(&fixture, &hidden, &asked).await;
    for (name, read) in &now {
        assert_eq!(read, &before[name], "`{name}` shows what is hidden");
    }
    let differ = seen.iter().filter(|(name, read)| before[*name] != **read).count();
    assert!(differ > 30, "without the rule, {differ} reads show it");
    let fixture = fixture.reopened();
    assert_eq!(reads(&fixture, &hidden, &asked).await, before);
}

pub async fn who_does_not_see_what_is_shared_changes_nothing_of_it(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    let commit = fixture.put(commit('a', "a shared commit", 100)).await;
    let commit = fixture.key(&commit).await;
    fixture.scope = petra.clone();
    let asked = keep_everything(&fixture, commit, Visibility::Project).await;
    let own = fixture.put(shared(note("petra shared this"))).await;
    let before = reads(&fixture, &jonas, &asked).await;
    fixture.scope = petra.hidden();
    let (store, scope) = (&fixture.store, &fixture.scope);
    let known = [asked.id.clone(), own];
    assert!(store.mark(scope, &known, false, Some(0.1)).await.answered().is_empty());
    assert!(store.unstash(scope, &known, false).await.answered().is_empty());
    let ids = Selection::Ids(known.to_vec());
    for (number, selection) in [ids, Selection::Session(name(PRIVATE))].iter().enumerate() {
        let forgotten = store.forget(scope, selection, &format!("h{number}"), 5).await.answered();
        assert_eq!(forgotten, Forgotten::default());
        let purged = store.forget_for_good(scope, selection, &format!("h{number}p"), 5).await.answered();
        assert_eq!(purged, Forgotten::default());
    }
    let retired = store.retire(scope, &name(PRIVATE), "h9", 5).await;
    assert!(retired.is_err() || retired.answered() == Forgotten::default());
    let origin = Origin { title: Some("Hers".into()), ..Origin::default() };
    store.describe_session(scope, &name(PRIVATE), origin).await.answered();
    fixture.put(shared(message(PRIVATE, "said in a session of the same name"))).await;
    for (name, read) in reads(&fixture, &jonas, &asked).await {
        // How much a word weighs depends on all texts of the store.
        assert!(name.contains("words") || read == before[name], "`{name}` changed: {read}");
    }
}

pub async fn what_is_saved_by_those_who_do_not_see_what_is_shared_is_private(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.hidden();
    let ids = fixture.save(vec![shared(note("quince")), message(PRIVATE, "medlar")]).await.outcomes;
    let all = async |scope: &Scope| fixture.store.list(scope, &Filter::default(), None, 9).await.answered();
    for scope in [&fixture.scope, &petra] {
        let found = all(scope).await;
        assert_eq!(found.len(), 2);
        for memory in found {
            assert_eq!((memory.visibility, memory.author.as_str()), (Visibility::Private, "petra"));
        }
    }
    assert!(all(&jonas).await.is_empty() && all(&jonas.hidden()).await.is_empty());
    // What is forgotten with one scope is restored with the other.
    assert_eq!(fixture.forget(&[&ids[0].0], "p1").await.ids, [ids[0].0.clone()]);
    assert_eq!(all(&petra).await.len(), 1);
    assert_eq!(fixture.store.undo(&petra, None, 6).await.answered().ids, [ids[0].0.clone()]);
}

pub async fn some_may_forget_what_others_share(mut fixture: Fixture) {
    let [petra, jonas] = authors(&fixture);
    fixture.scope = petra.clone();
    let said = fixture.say("open", &["quince"]).await.remove(0);
    let note = fixture.put(private(note("medlar"))).await;
    fixture.scope = Scope { forgets: Forgets::Everyones, ..jonas.clone() };
    let ids = Selection::Ids(vec![said.clone(), note.clone()]);
    let (store, scope) = (&fixture.store, &fixture.scope);
    assert_eq!(store.forget(scope, &ids, "j1", 5).await.answered().ids, std::slice::from_ref(&said));
    assert!(store.memory(&petra, &said).await.answered().is_none());
    assert!(store.memory(&petra, &note).await.answered().is_some(), "it is private");
    assert_eq!(fixture.undo().await.ids, std::slice::from_ref(&said));
    assert!(fixture.store.memory(&petra, &said).await.answered().is_some());
}
