//! Promises about forgetting, undoing and purging: which memories disappear from which answers, and which are
//! restored.

use super::place::{Answered, HOUR, Place, embedded, fact, message, name, note, outcomes, quarter, wanted};
use super::subject::Engine;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Level, MemoryId};
use tiro_store::*;

const NEAR: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

/// Reads in several ways, and returns how many of the reads return the message `maple` of the session `s`.
async fn answers<E: Engine>(place: &Place<E>, id: &MemoryId) -> usize {
    let (store, scope) = (&place.store, &place.scope);
    let all = Filter::default();
    let around = store.surroundings(scope, &name("s"), 0, 9, 9).await.answered();
    [
        place.living(id).await.is_some(),
        place.listed(&all).await.contains(&"maple".to_owned()),
        place.rows("s").await.iter().any(|row| row.id == *id),
        around.iter().any(|memory| memory.id == *id),
        store.sessions(scope, 0, 9).await.answered().iter().any(|row| row.memories == 2),
        place.found("maple").await > 0,
        place.near(scope, &all, NEAR, 9).await.contains(&"maple".to_owned()),
    ]
    .into_iter()
    .filter(|is_in| *is_in)
    .count()
}

/// Stores two messages of the session `s`, `maple` and another, and returns the id of `maple`.
async fn maple<E: Engine>(place: &Place<E>) -> MemoryId {
    let memories = vec![embedded(message("s", "maple"), NEAR), message("s", "willow")];
    place.save(memories).await.outcomes.remove(0).0
}

pub async fn a_forgotten_memory_leaves_every_answer<E: Engine>(place: Place<E>) {
    let id = maple(&place).await;
    assert_eq!(answers(&place, &id).await, 7);
    let key = place.key(&id).await;
    let forgotten = place.forget(&[&id], "f1").await;
    assert_eq!((forgotten.operation.as_str(), forgotten.ids, forgotten.tokens), ("f1", vec![id.clone()], 1));
    assert_eq!(answers(&place, &id).await, 0);
    assert!(place.texts(vec![key]).await.is_empty());
    assert!(place.store.memories(&place.scope, vec![key]).await.answered().is_empty());
    assert!(place.store.places(&place.scope, vec![key]).await.answered().is_empty());
    let place = place.reopened();
    assert_eq!(answers(&place, &id).await, 0);
}

pub async fn undoing_brings_back_every_answer<E: Engine>(place: Place<E>) {
    let id = maple(&place).await;
    place.forget(&[&id], "f1").await;
    let place = place.reopened();
    let undone = place.undo().await;
    assert_eq!((undone.operation.as_str(), undone.ids, undone.tokens), ("f1", vec![id.clone()], 1));
    assert_eq!(answers(&place, &id).await, 7);
    assert_eq!(place.rows("s").await[0].ordinal, 0, "a message comes back at its place");
}

pub async fn the_last_operation_is_undone_first<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    for (time, (id, operation)) in said.iter().zip(["f1", "f2"]).enumerate() {
        let selection = Selection::Ids(vec![id.clone()]);
        place.store.forget(&place.scope, &selection, operation, time as i64).await.answered();
    }
    assert_eq!(place.undo().await.ids, [said[1].clone()]);
    assert_eq!(place.undo().await.ids, [said[0].clone()]);
}

pub async fn an_operation_is_undone_once<E: Engine>(place: Place<E>) {
    assert!(place.store.undo(&place.scope, None, 6).await.is_err());
    let said = place.say("s", &["maple"]).await;
    place.forget(&[&said[0]], "f1").await;
    assert!(place.store.undo(&place.scope, Some("f2"), 6).await.is_err(), "no operation has this name");
    place.undo().await;
    assert!(place.store.undo(&place.scope, Some("f1"), 7).await.is_err());
    assert!(place.store.undo(&place.scope, None, 7).await.is_err());
}

pub async fn a_preview_of_undoing_changes_nothing<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    let forgotten = place.forget(&[&said[0], &said[1]], "f1").await;
    let would = place.store.undoable(&place.scope, None).await.answered();
    assert_eq!((&would, place.rows("s").await.len()), (&forgotten, 0));
    assert_eq!((place.undo().await, place.rows("s").await.len()), (would, 2));
}

pub async fn a_session_is_forgotten_whole<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    place.say("other", &["larch"]).await;
    assert_eq!(place.forget_session("s", "f1").await.ids, said);
    assert_eq!((place.rows("s").await.len(), place.rows("other").await.len()), (0, 1));
    assert_eq!(place.listed(&Filter::default()).await, ["larch"]);
}

pub async fn a_filter_selects_what_is_forgotten<E: Engine>(place: Place<E>) {
    place.put(note("maple")).await;
    let said = place.say("s", &["willow"]).await;
    let messages = Filter { kinds: Some(vec![Kind::Message]), ..Filter::default() };
    let selection = Selection::Matching(messages);
    let forgotten = place.store.forget(&place.scope, &selection, "f1", 5).await.answered();
    assert_eq!((forgotten.ids, place.listed(&Filter::default()).await), (said, vec!["maple".to_owned()]));
}

pub async fn a_scope_of_sessions_bounds_forgetting<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple"]).await;
    let others = place.say("other", &["willow"]).await;
    let ids = Selection::Ids(vec![said[0].clone(), others[0].clone()]);
    let forgotten = place.store.forget(&place.only(&["s"]), &ids, "f1", 5).await.answered();
    assert_eq!((forgotten.ids, place.rows("other").await.len()), (said, 1));
}

pub async fn a_memory_is_forgotten_once<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple"]).await;
    place.forget(&[&said[0]], "f1").await;
    let again = place.forget(&[&said[0]], "f2").await;
    assert_eq!((again.operation.as_str(), again.ids.len(), again.tokens), ("", 0, 0));
    assert_eq!(place.store.operations(&place.scope, 9).await.answered().len(), 1);
}

pub async fn a_derived_memory_leaves_and_returns_with_its_source<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["the durian smells", "two"]).await;
    let fact = |text: &str| fact("s", text, &[&said[0]]);
    let id = place.put(fact("durian: smells")).await;
    let forgotten = place.forget(&[&said[0]], "f1").await;
    assert_eq!(forgotten.ids, [said[0].clone(), id.clone()]);
    assert!(place.living(&id).await.is_none());
    // The caller is a process that read the message before it was forgotten.
    let late = place.save(vec![fact("durian: fruit")]).await;
    assert_eq!(late.count(Outcome::Forgotten), 1);
    place.undo().await;
    let place = place.reopened();
    assert!(place.living(&id).await.is_some());
}

/// A transaction forgets or restores only a limited number of memories. An operation with more memories still
/// forgets and restores all of them, and the memories derived from them.
pub async fn several_transactions_are_one_operation<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["oak", "ash", "elm", "fir", "yew", "box", "bay", "may"]).await;
    let others = place.say("other", &["ivy"]).await;
    let trees = place.put(fact("s", "trees", &[&said[0], &said[7]])).await;
    let both = place.put(fact("s", "both", &[&said[1], &others[0]])).await;
    let forgotten = place.forget_session("s", "f1").await;
    assert_eq!(forgotten.ids.len(), 10);
    place.forget(&[&others[0]], "f2").await;
    assert_eq!((place.rows("s").await.len(), place.found("fir").await, place.found("ivy").await), (0, 0, 0));
    let place = place.reopened();
    // A memory that is also derived from the other session stays forgotten as long as that session is forgotten. A
    // second undo of the same operation is an error.
    let would = place.store.undoable(&place.scope, Some("f1")).await.answered();
    assert_eq!((would.ids.len(), place.rows("s").await.len()), (9, 0));
    assert_eq!(place.store.undo(&place.scope, Some("f1"), 6).await.answered(), would);
    let living = async |id| place.living(id).await.is_some();
    assert_eq!((place.rows("s").await.len(), living(&trees).await, living(&both).await), (8, true, false));
    assert!(place.found("fir").await > 0);
    assert!(place.store.undo(&place.scope, Some("f1"), 7).await.is_err());
}

pub async fn a_selection_is_shown_without_a_change<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    let derived = place.put(fact("s", "a maple", &[&said[0]])).await;
    let selection = Selection::Ids(vec![said[0].clone()]);
    let shown = place.store.selected(&place.scope, &selection, Reach::Living).await.answered();
    assert_eq!((shown.operation.as_str(), &shown.ids), ("", &vec![said[0].clone(), derived.clone()]));
    assert_eq!(place.rows("s").await.len(), 2);
    let forgotten = place.forget(&[&said[0]], "f1").await;
    assert_eq!((forgotten.ids, forgotten.tokens), (shown.ids, shown.tokens));
    let reached = async |reach| place.store.selected(&place.scope, &selection, reach).await.answered().ids;
    assert_eq!((reached(Reach::Living).await, reached(Reach::Forgotten).await.len()), (Vec::new(), 2));
}

pub async fn forgotten_memories_are_found_by_their_words<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["a red maple", "a red oak", "a blue maple"]).await;
    let with = async |words: &[&str], most| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let (found, others) = place.store.forgotten_with(&place.scope, words, most).await.answered();
        (found.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), others)
    };
    assert_eq!(with(&["maple"], 9).await, (Vec::new(), 0), "only forgotten memories are found");
    place.forget_session("s", "f1").await;
    assert_eq!(with(&["maple"], 9).await, (vec![said[0].clone(), said[2].clone()], 0));
    assert_eq!(with(&["maple", "red"], 9).await, (vec![said[0].clone()], 0));
    assert_eq!(with(&["maple"], 1).await, (vec![said[0].clone()], 1));
}

pub async fn a_forgotten_message_is_found_by_its_place<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    place.forget(&[&said[1]], "f1").await;
    let at = async |ordinal| place.store.forgotten_at(&place.scope, &name("s"), ordinal).await.answered();
    assert_eq!((at(0).await, at(1).await, at(2).await), (None, Some(said[1].clone()), None));
}

pub async fn operations_are_listed_newest_first<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow", "larch"]).await;
    for (time, id) in said.iter().enumerate() {
        let (selection, operation) = (Selection::Ids(vec![id.clone()]), format!("f{time}"));
        place.store.forget(&place.scope, &selection, &operation, time as i64).await.answered();
    }
    place.store.purge(&place.scope, "f0", 9).await.answered();
    place.store.undo(&place.scope, Some("f1"), 10).await.answered();
    let listed = async |limit| {
        let operations = place.store.operations(&place.scope, limit).await.answered();
        operations
            .into_iter()
            .map(|one| (one.id, one.kind, one.at, one.memories, one.undone))
            .collect::<Vec<_>>()
    };
    let row = |id: &str, kind: &str, at, memories, undone| (id.into(), kind.into(), at, memories, undone);
    let expected =
        [row("f0", "purge", 9, 0, false), row("f2", "forget", 2, 1, false), row("f1", "forget", 1, 1, true)];
    assert_eq!((listed(9).await, listed(1).await), (expected.to_vec(), expected[..1].to_vec()));
}

pub async fn a_purged_memory_is_in_no_file<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["a qwzxv maple", "willow"]).await;
    assert!(place.engine.holds("qwzxv"));
    place.forget(&[&said[0]], "f1").await;
    let purged = place.store.purge(&place.scope, "f1", 6).await.answered();
    assert_eq!(purged.ids, [said[0].clone()]);
    let place = place.reopened();
    assert!(!place.engine.holds("qwzxv"));
    assert_eq!((place.found("qwzxv").await, place.rows("s").await.len()), (0, 1));
}

pub async fn a_purged_memory_does_not_come_back<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple"]).await;
    place.forget(&[&said[0]], "f1").await;
    place.store.purge(&place.scope, "f1", 6).await.answered();
    assert!(place.store.undo(&place.scope, Some("f1"), 7).await.is_err());
    assert!(place.store.is_purged(&place.scope, &said[0]).await.answered());
    assert_eq!(outcomes(&place.save(vec![message("s", "maple")]).await), [Outcome::Forgotten]);
    let place = place.reopened();
    assert_eq!((place.rows("s").await.len(), place.found("maple").await), (0, 0));
    let selection = Selection::Ids(said);
    let reached = place.store.selected(&place.scope, &selection, Reach::Forgotten).await.answered();
    assert!(reached.ids.is_empty());
}

pub async fn forgotten_memories_are_purged_too<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["a qwzxv maple", "a qwzxv willow", "larch"]).await;
    place.forget(&[&said[0]], "f1").await;
    let selection = Selection::Ids(said[..2].to_vec());
    let purged = place.store.forget_for_good(&place.scope, &selection, "p1", 6).await.answered();
    assert_eq!(purged.ids, said[..2]);
    assert!(!place.engine.holds("qwzxv"));
    assert!(place.store.undo(&place.scope, Some("f1"), 7).await.is_err(), "nothing is left to bring back");
    assert_eq!(place.rows("s").await.len(), 1);
}

pub async fn a_purge_takes_derived_memories_too<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["the durian smells", "two"]).await;
    place.put(fact("s", "durian: smells", &[&said[0]])).await;
    // The message is forgotten and restored once before it is forgotten and purged.
    place.forget(&[&said[0]], "f1").await;
    place.undo().await;
    place.forget(&[&said[0]], "f2").await;
    place.store.purge(&place.scope, "f2", 7).await.answered();
    assert!(!place.engine.holds("durian"));
}

pub async fn a_purge_takes_summaries_answers_and_requests<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["the qwzxv rings", "two"]).await;
    place.summarise("s", 0, 1).await;
    place.summarise_session("s", "a qwzxv in short", 1).await;
    place.store.cache(&place.scope, [1; 32], "a qwzxv again".into(), 1, HOUR, 1000).await.answered();
    let request = wanted(Level::Brief, AskedBy::User);
    place.store.enqueue(&place.scope, request, 1, 1).await.answered();
    let forgotten = place.forget_session("s", "f1").await;
    assert_eq!(forgotten.ids, said, "the session's summary isn't counted");
    place.store.purge(&place.scope, "f1", 6).await.answered();
    assert_eq!(place.store.queue_counts(&place.scope).await.answered(), QueueCounts::default());
    assert_eq!(place.store.cached(&place.scope, [1; 32], 2).await.answered(), None);
    let place = place.reopened();
    assert!(!place.engine.holds("qwzxv"));
}

/// The name of a session can contain text from the session.
pub async fn a_purged_session_loses_its_name<E: Engine>(place: Place<E>) {
    place.say("the qwzxv session", &["maple"]).await;
    place.forget_session("the qwzxv session", "f1").await;
    place.store.purge(&place.scope, "f1", 6).await.answered();
    assert!(place.store.sessions(&place.scope, 0, 9).await.answered().is_empty());
    let place = place.reopened();
    assert!(!place.engine.holds("qwzxv"));
}

pub async fn another_owner_undoes_and_purges_nothing<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple"]).await;
    let stranger = place.stranger();
    let selection = Selection::Ids(said.clone());
    let forgotten = place.store.forget(&stranger, &selection, "f0", 5).await.answered();
    assert!(forgotten.ids.is_empty() && place.rows("s").await.len() == 1);
    place.forget(&[&said[0]], "f1").await;
    assert!(place.store.undo(&stranger, Some("f1"), 6).await.is_err());
    assert!(place.store.operations(&stranger, 9).await.answered().is_empty());
    assert!(place.store.purge(&stranger, "f1", 6).await.answered().ids.is_empty());
    assert_eq!(place.undo().await.ids, said);
}

/// The summary of a quarter replaces old conversations. It is kept when the conversations are forgotten because of
/// their age, and removed when the user forgets them.
pub async fn a_summary_of_a_quarter_outlives_retired_sessions<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple"]).await;
    let Saved::Made(conversation) = place.summarise_session("s", "willow", 0).await else {
        panic!("it is made")
    };
    place.store.save_quarter(&place.scope, quarter("larch", &[conversation]), 1).await.answered();
    let is_retired =
        async || place.store.quarter_is_retired(&place.scope, "quarter 2024-Q1").await.answered();
    assert!(!is_retired().await);
    let retired = place.store.retire(&place.scope, &name("s"), "f1", 5).await.answered();
    assert_eq!((retired.ids, place.rows("s").await.len()), (said, 0));
    assert_eq!((place.found("willow").await, place.found("larch").await), (0, 1));
    assert!(is_retired().await);
    place.forget_session("s", "f2").await;
    assert_eq!((place.found("larch").await, is_retired().await), (0, false));
}
