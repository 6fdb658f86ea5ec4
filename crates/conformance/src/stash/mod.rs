//! Promises about the stash.

use super::fixture::{Answered, Fixture, embedded, name, note};
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::{MemoryId, Millis};
use tiro_store::tuning::GRACE;
use tiro_store::*;

fn stashing(named: &[&MemoryId], given: Vec<PreparedMemory>) -> Stashing {
    Stashing {
        named: named.iter().map(|id| (*id).clone()).collect(),
        given,
        cause: StashCause::Call,
        expires_at: None,
        is_protected: None,
        topic: None,
    }
}

/// Returns the filter that admits only the stash.
fn only() -> Filter {
    Filter { stash: Some(Stash::Only), ..Filter::default() }
}

impl Fixture {
    async fn stash(&self, stashing: Stashing, now: Millis) -> StashReceipt {
        self.store.stash(&self.scope, stashing, now).await.answered()
    }

    /// Returns the ids of the stash, in the order of storing.
    async fn stashed_ids(&self) -> Vec<MemoryId> {
        let rows = self.store.list_stash(&self.scope, &Filter::default(), None, 100).await.answered();
        rows.into_iter().map(|row| row.id).collect()
    }

    /// Returns the numbers of the messages that contexts of the session leave out.
    async fn held(&self, session: &str) -> Vec<i64> {
        let held = self.parts(session, ContextQuery::default()).await.stashed.into_iter();
        held.filter(|place| place.is_held_out).filter_map(|place| place.ordinal).collect()
    }
}

pub async fn a_stashed_memory_is_in_the_stash(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    let receipt = fixture.stash(stashing(&[&said[1]], vec![note("larch")]), 7).await;
    assert_eq!(receipt.tokens, 2);
    let fixture = fixture.reopened();
    assert_eq!(
        fixture.stashed_ids().await,
        receipt.outcomes.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>()
    );
    let keys = vec![fixture.key(&said[0]).await, fixture.key(&said[1]).await];
    let rows = fixture.store.stashed(&fixture.scope, keys).await.answered();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].ordinal, rows[0].stashed_at, rows[0].is_given), (Some(1), 7, false));
}

pub async fn a_memory_is_stashed_once(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    assert_eq!(
        fixture.stash(stashing(&[&said[0], &said[0]], vec![]), 1).await.outcomes,
        [(said[0].clone(), true)]
    );
    assert_eq!(fixture.stash(stashing(&[&said[0]], vec![]), 2).await.outcomes, [(said[0].clone(), false)]);
    assert_eq!(fixture.stashed_ids().await, said);
}

pub async fn a_stash_is_whole_or_not_at_all(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let unknown = MemoryId::parse("m0000000000000").unwrap();
    let refused =
        fixture.store.stash(&fixture.scope, stashing(&[&said[0], &unknown], vec![note("larch")]), 1).await;
    assert!(refused.is_err());
    assert!(fixture.stashed_ids().await.is_empty());
    assert_eq!(fixture.listed(&Filter::default()).await, ["maple"]);
}

pub async fn a_stashed_message_is_held_out_until_it_is_brought_back(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow", "larch"]).await;
    fixture.stash(stashing(&[&said[0], &said[2]], vec![]), 1).await;
    assert_eq!(fixture.held("s").await, [0, 2]);
    let pruned = Stashing { cause: StashCause::Pruning, ..stashing(&[&said[1]], vec![]) };
    fixture.stash(pruned, 1).await;
    assert_eq!(fixture.held("s").await, [0, 2], "what had no room is not held out");
    fixture.store.unstash(&fixture.scope, &said[..1], true).await.answered();
    assert_eq!((fixture.held("s").await, fixture.stashed_ids().await.len()), (vec![2], 3));
}

pub async fn a_memory_brought_back_leaves_the_stash_unless_it_is_kept(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.stash(stashing(&[&said[0]], vec![]), 1).await;
    assert_eq!(fixture.store.unstash(&fixture.scope, &said, false).await.answered(), said[..1]);
    assert!(fixture.stashed_ids().await.is_empty());
    assert_eq!(fixture.listed(&Filter::default()).await, ["willow", "maple"], "the memories stay");
}

pub async fn stashing_frees_what_the_last_context_showed(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow", "larch"]).await;
    let mut lines = Vec::new();
    for (tokens, id) in (10..).zip(&said) {
        let memory = fixture.key(id).await;
        lines.push(ShownLine { memory, tokens, heading: i64::from(tokens == 12), heading_tokens: 5 });
    }
    fixture.store.record_assembly(&fixture.scope, &name("s"), [1; 32], lines).await.answered();
    assert_eq!(
        fixture.stash(stashing(&[&said[0]], vec![]), 1).await.freed,
        10,
        "its heading has another line"
    );
    assert_eq!(fixture.stash(stashing(&[&said[0]], vec![]), 1).await.freed, 0);
    assert_eq!(fixture.stash(stashing(&[&said[1], &said[2]], vec![]), 1).await.freed, 11 + 12 + 5 + 5);
}

pub async fn an_expired_text_is_removed_and_a_message_stays(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let expiring = Stashing { expires_at: Some(50), ..stashing(&[&said[0]], vec![note("larch")]) };
    fixture.stash(expiring.clone(), 1).await;
    let due = async |now| fixture.store.expiring_stash(&fixture.scope, now, Millis::MIN).await.answered();
    assert_eq!(due(49).await, StashExpired::default());
    let both = StashExpired { removed: 1, ended: 1, ..StashExpired::default() };
    assert_eq!(due(50).await, both);
    let expire = async |now, operation| {
        fixture.store.expire_stash(&fixture.scope, (now, Millis::MIN), operation, 10).await.answered()
    };
    // At first only the stash hides them, and contexts show the message again.
    assert_eq!(expire(49 + GRACE, "e0").await, StashExpired::default());
    assert_eq!((fixture.held("s").await, fixture.found("larch").await), (vec![], 1));
    assert_eq!(expire(50 + GRACE, "e1").await, both);
    assert!(fixture.stashed_ids().await.is_empty());
    assert_eq!(
        (fixture.listed(&Filter::default()).await, fixture.found("larch").await),
        (vec!["maple".into()], 0)
    );
    // The same text can be stashed again.
    assert!(fixture.stash(expiring, 60).await.outcomes.iter().all(|(_, is_new)| *is_new));
}

pub async fn a_clock_that_jumped_removes_nothing_for_good(fixture: Fixture) {
    let terms = Stashing { expires_at: Some(50), ..stashing(&[], vec![note("larch")]) };
    fixture.stash(terms, 1).await;
    let far = 10 * 365 * 24 * 60 * 60 * 1000;
    let expire = async |now, operation| {
        fixture.store.expire_stash(&fixture.scope, (now, now - 1_000), operation, 10).await.answered()
    };
    assert_eq!(expire(far, "e0").await, StashExpired { ahead: Some(far - 1), ..StashExpired::default() });
    assert_eq!(expire(-far, "e1").await, StashExpired::default());
    assert_eq!(fixture.stashed_ids().await.len(), 1);
    // If the wrong clock also stores something, it is believed; what it removed comes back with the right clock.
    fixture.store.save(&fixture.scope, vec![note("willow")], far).await.answered();
    assert_eq!(expire(far, "e2").await.removed, 1);
    assert!(fixture.stashed_ids().await.is_empty());
    assert_eq!(expire(2, "e3").await.returned, 1);
    assert_eq!((fixture.stashed_ids().await.len(), fixture.found("larch").await), (1, 1));
}

pub async fn an_undo_brings_back_what_expired(fixture: Fixture) {
    let terms = Stashing { expires_at: Some(50), ..stashing(&[], vec![note("larch")]) };
    fixture.stash(terms, 1).await;
    let expire = async |operation| {
        let times = (50 + GRACE, Millis::MIN);
        fixture.store.expire_stash(&fixture.scope, times, operation, 10).await.answered().removed
    };
    assert_eq!(expire("e1").await, 1);
    assert!(fixture.stashed_ids().await.is_empty());
    // Nobody asked for it, so an undo without a name leaves it.
    assert!(fixture.store.undo(&fixture.scope, None, 51 + GRACE).await.is_err());
    assert_eq!(fixture.store.undo(&fixture.scope, Some("e1"), 51 + GRACE).await.answered().ids.len(), 1);
    assert_eq!((fixture.stashed_ids().await.len(), fixture.found("larch").await), (1, 1));
    assert_eq!(expire("e2").await, 0, "it does not expire again");
}

pub async fn a_protected_segment_does_not_expire(fixture: Fixture) {
    let terms =
        Stashing { expires_at: Some(5), is_protected: Some(true), ..stashing(&[], vec![note("larch")]) };
    fixture.stash(terms, 1).await;
    fixture.store.expire_stash(&fixture.scope, (9 + GRACE, 9 + GRACE), "e1", 10).await.answered();
    assert_eq!(fixture.stashed_ids().await.len(), 1);
}

pub async fn an_owner_sees_no_stash_of_another(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    fixture.stash(stashing(&[&said[0]], vec![]), 1).await;
    let stranger = fixture.stranger();
    let listed = fixture.store.list_stash(&stranger, &Filter::default(), None, 9).await.answered();
    assert!(listed.is_empty());
    assert!(fixture.store.stash(&stranger, stashing(&[&said[0]], vec![]), 1).await.is_err());
    assert!(fixture.store.unstash(&stranger, &said, false).await.answered().is_empty());
    assert_eq!(fixture.stashed_ids().await, said);
}

pub async fn the_stash_is_listed_by_topic_and_session(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    let valve = Stashing { topic: Some("valve".into()), ..stashing(&[&said[0]], vec![note("larch")]) };
    fixture.stash(valve, 1).await;
    fixture.stash(stashing(&[&said[1]], vec![]), 9).await;
    let contents = async |filter| {
        let page = StashPage { filter, offset: 0, groups: 9, ids: 9 };
        fixture.store.stash_contents(&fixture.scope, page).await.answered()
    };
    let all = contents(Filter::default()).await;
    let groups: Vec<_> = all
        .page
        .iter()
        .map(|group| (group.topic.as_deref(), group.session.is_some(), group.memories))
        .collect();
    assert_eq!(groups, [(None, true, 1), (Some("valve"), false, 1), (Some("valve"), true, 1)]);
    assert_eq!((all.memories, all.groups), (3, 3));
    let valve = contents(Filter { topic: Some("valve".into()), ..Filter::default() }).await;
    assert_eq!(valve.memories, 2);
}

pub async fn a_search_of_the_stash_finds_nothing_else(fixture: Fixture) {
    let near = [1.0, 0.0, 0.0, 0.0];
    fixture.put(embedded(note("larch one"), near)).await;
    let larch = fixture.put(embedded(note("larch two"), near)).await;
    assert!(fixture.near(&fixture.scope, &only(), near, 9).await.is_empty());
    fixture.stash(stashing(&[&larch], vec![]), 1).await;
    assert_eq!(fixture.near(&fixture.scope, &only(), near, 9).await, ["larch two"]);
    assert_eq!(fixture.candidates(&fixture.scope, &only(), "larch").await.len(), 1);
    let without = Filter { stash: Some(Stash::Without), ..Filter::default() };
    assert_eq!(fixture.near(&fixture.scope, &without, near, 9).await, ["larch one"]);
    // Another handle changes the stash.
    let other = fixture.engine.open();
    other.unstash(&fixture.scope, &[larch], false).await.answered();
    assert!(fixture.near(&fixture.scope, &only(), near, 9).await.is_empty());
}

pub async fn a_version_changes_with_what_is_held_out(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let scope = fixture.only(&["s"]);
    let version = async || fixture.store.source_state(&scope).await.answered();
    let first = version().await;
    fixture.stash(stashing(&[&said[0]], vec![]), 1).await;
    let second = version().await;
    assert!(first != second);
    fixture.store.unstash(&fixture.scope, &said, true).await.answered();
    assert!(version().await != second);
}
