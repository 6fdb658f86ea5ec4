//! Promises about forgetting, undoing and purging: which memories disappear from which answers, and which are
//! restored.

use super::fixture::{
    Answered, Fixture, HOUR, by_words, commit, embedded, fact, message, name, note, outcomes, quarter, wanted,
};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Level, MemoryId};
use tiro_store::*;

const NEAR: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

/// Reads in several ways, and returns how many of the reads return the message `maple` of the session `s`.
async fn answers(fixture: &Fixture, id: &MemoryId) -> usize {
    let (store, scope) = (&fixture.store, &fixture.scope);
    let all = Filter::default();
    let around = store.surroundings(scope, &name("s"), 0, 9, 9).await.answered();
    [
        fixture.living(id).await.is_some(),
        fixture.listed(&all).await.contains(&"maple".to_owned()),
        fixture.rows("s").await.iter().any(|row| row.id == *id),
        around.iter().any(|memory| memory.id == *id),
        store.sessions(scope, 0, 9).await.answered().iter().any(|row| row.memories == 2),
        fixture.found("maple").await > 0,
        fixture.near(scope, &all, NEAR, 9).await.contains(&"maple".to_owned()),
    ]
    .into_iter()
    .filter(|is_in| *is_in)
    .count()
}

/// Stores two messages of the session `s`, `maple` and another, and returns the id of `maple`.
async fn maple(fixture: &Fixture) -> MemoryId {
    let memories = vec![embedded(message("s", "maple"), NEAR), message("s", "willow")];
    fixture.save(memories).await.outcomes.remove(0).0
}

pub async fn a_forgotten_memory_leaves_every_answer(fixture: Fixture) {
    let id = maple(&fixture).await;
    assert_eq!(answers(&fixture, &id).await, 7);
    let key = fixture.key(&id).await;
    let forgotten = fixture.forget(&[&id], "f1").await;
    assert_eq!((forgotten.operation.as_str(), forgotten.ids, forgotten.tokens), ("f1", vec![id.clone()], 1));
    assert_eq!(answers(&fixture, &id).await, 0);
    assert!(fixture.texts(vec![key]).await.is_empty());
    assert!(fixture.store.memories(&fixture.scope, vec![key]).await.answered().is_empty());
    let fixture = fixture.reopened();
    assert_eq!(answers(&fixture, &id).await, 0);
}

pub async fn undoing_brings_back_every_answer(fixture: Fixture) {
    let id = maple(&fixture).await;
    fixture.forget(&[&id], "f1").await;
    let fixture = fixture.reopened();
    let undone = fixture.undo().await;
    assert_eq!((undone.operation.as_str(), undone.ids, undone.tokens), ("f1", vec![id.clone()], 1));
    assert_eq!(answers(&fixture, &id).await, 7);
    assert_eq!(fixture.rows("s").await[0].ordinal, 0, "a message comes back at its place");
}

pub async fn the_last_operation_is_undone_first(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    for (time, (id, operation)) in said.iter().zip(["f1", "f2"]).enumerate() {
        let selection = Selection::Ids(vec![id.clone()]);
        fixture.store.forget(&fixture.scope, &selection, operation, time as i64).await.answered();
    }
    assert_eq!(fixture.undo().await.ids, [said[1].clone()]);
    assert_eq!(fixture.undo().await.ids, [said[0].clone()]);
}

pub async fn an_operation_is_undone_once(fixture: Fixture) {
    assert!(fixture.store.undo(&fixture.scope, None, 6).await.is_err());
    let said = fixture.say("s", &["maple"]).await;
    fixture.forget(&[&said[0]], "f1").await;
    assert!(fixture.store.undo(&fixture.scope, Some("f2"), 6).await.is_err(), "no operation has this name");
    fixture.undo().await;
    assert!(fixture.store.undo(&fixture.scope, Some("f1"), 7).await.is_err());
    assert!(fixture.store.undo(&fixture.scope, None, 7).await.is_err());
}

pub async fn a_preview_of_undoing_changes_nothing(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    let forgotten = fixture.forget(&[&said[0], &said[1]], "f1").await;
    let would = fixture.store.undoable(&fixture.scope, None).await.answered();
    assert_eq!((&would, fixture.rows("s").await.len()), (&forgotten, 0));
    assert_eq!((fixture.undo().await, fixture.rows("s").await.len()), (would, 2));
}

pub async fn a_session_is_forgotten_whole(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.say("other", &["larch"]).await;
    assert_eq!(fixture.forget_session("s", "f1").await.ids, said);
    assert_eq!((fixture.rows("s").await.len(), fixture.rows("other").await.len()), (0, 1));
    assert_eq!(fixture.listed(&Filter::default()).await, ["larch"]);
}

pub async fn a_filter_selects_what_is_forgotten(fixture: Fixture) {
    fixture.put(note("maple")).await;
    let said = fixture.say("s", &["willow"]).await;
    let messages = Filter { kinds: Some(vec![Kind::Message]), ..Filter::default() };
    let selection = Selection::Matching(messages);
    let forgotten = fixture.store.forget(&fixture.scope, &selection, "f1", 5).await.answered();
    assert_eq!((forgotten.ids, fixture.listed(&Filter::default()).await), (said, vec!["maple".to_owned()]));
}

pub async fn a_scope_of_sessions_bounds_forgetting(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let others = fixture.say("other", &["willow"]).await;
    let ids = Selection::Ids(vec![said[0].clone(), others[0].clone()]);
    let forgotten = fixture.store.forget(&fixture.only(&["s"]), &ids, "f1", 5).await.answered();
    assert_eq!((forgotten.ids, fixture.rows("other").await.len()), (said, 1));
}

pub async fn a_memory_is_forgotten_once(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    fixture.forget(&[&said[0]], "f1").await;
    let again = fixture.forget(&[&said[0]], "f2").await;
    assert_eq!((again.operation.as_str(), again.ids.len(), again.tokens), ("", 0, 0));
    assert_eq!(fixture.store.operations(&fixture.scope, 9).await.answered().len(), 1);
}

pub async fn a_derived_memory_leaves_and_returns_with_its_source(fixture: Fixture) {
    let said = fixture.say("s", &["the durian smells", "two"]).await;
    let fact = |text: &str| fact("s", text, &[&said[0]]);
    let id = fixture.put(fact("durian: smells")).await;
    let forgotten = fixture.forget(&[&said[0]], "f1").await;
    assert_eq!(forgotten.ids, [said[0].clone(), id.clone()]);
    assert!(fixture.living(&id).await.is_none());
    // The caller is a process that read the message before it was forgotten.
    let late = fixture.save(vec![fact("durian: fruit")]).await;
    assert_eq!(late.count(Outcome::Forgotten), 1);
    fixture.undo().await;
    let fixture = fixture.reopened();
    assert!(fixture.living(&id).await.is_some());
}

/// A transaction forgets or restores only a limited number of memories. An operation with more memories still
/// forgets and restores all of them, and the memories derived from them.
pub async fn several_transactions_are_one_operation(fixture: Fixture) {
    let said = fixture.say("s", &["oak", "ash", "elm", "fir", "yew", "box", "bay", "may"]).await;
    let others = fixture.say("other", &["ivy"]).await;
    let trees = fixture.put(fact("s", "trees", &[&said[0], &said[7]])).await;
    let both = fixture.put(fact("s", "both", &[&said[1], &others[0]])).await;
    let forgotten = fixture.forget_session("s", "f1").await;
    assert_eq!(forgotten.ids.len(), 10);
    fixture.forget(&[&others[0]], "f2").await;
    assert_eq!(
        (fixture.rows("s").await.len(), fixture.found("fir").await, fixture.found("ivy").await),
        (0, 0, 0)
    );
    let fixture = fixture.reopened();
    // A memory that is also derived from the other session stays forgotten as long as that session is forgotten. A
    // second undo of the same operation is an error.
    let would = fixture.store.undoable(&fixture.scope, Some("f1")).await.answered();
    assert_eq!((would.ids.len(), fixture.rows("s").await.len()), (9, 0));
    assert_eq!(fixture.store.undo(&fixture.scope, Some("f1"), 6).await.answered(), would);
    let living = async |id| fixture.living(id).await.is_some();
    assert_eq!((fixture.rows("s").await.len(), living(&trees).await, living(&both).await), (8, true, false));
    assert!(fixture.found("fir").await > 0);
    assert!(fixture.store.undo(&fixture.scope, Some("f1"), 7).await.is_err());
}

pub async fn a_selection_is_shown_without_a_change(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    let derived = fixture.put(fact("s", "a maple", &[&said[0]])).await;
    let selection = Selection::Ids(vec![said[0].clone()]);
    let shown = fixture.store.selected(&fixture.scope, &selection, Reach::Living).await.answered();
    assert_eq!((shown.operation.as_str(), &shown.ids), ("", &vec![said[0].clone(), derived.clone()]));
    assert_eq!(fixture.rows("s").await.len(), 2);
    let forgotten = fixture.forget(&[&said[0]], "f1").await;
    assert_eq!((forgotten.ids, forgotten.tokens), (shown.ids, shown.tokens));
    let reached =
        async |reach| fixture.store.selected(&fixture.scope, &selection, reach).await.answered().ids;
    assert_eq!((reached(Reach::Living).await, reached(Reach::Forgotten).await.len()), (Vec::new(), 2));
}

pub async fn forgotten_memories_are_found_by_their_words(fixture: Fixture) {
    let said = fixture.say("s", &["a red maple", "a red oak", "a blue maple"]).await;
    let with = async |words: &[&str], most| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let (found, others) = fixture.store.forgotten_with(&fixture.scope, words, most).await.answered();
        (found.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), others)
    };
    assert_eq!(with(&["maple"], 9).await, (Vec::new(), 0), "only forgotten memories are found");
    fixture.forget_session("s", "f1").await;
    assert_eq!(with(&["maple"], 9).await, (vec![said[0].clone(), said[2].clone()], 0));
    assert_eq!(with(&["maple", "red"], 9).await, (vec![said[0].clone()], 0));
    assert_eq!(with(&["maple"], 1).await, (vec![said[0].clone()], 1));
}

pub async fn a_forgotten_message_is_found_by_its_place(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.forget(&[&said[1]], "f1").await;
    let at = async |ordinal| fixture.store.forgotten_at(&fixture.scope, &name("s"), ordinal).await.answered();
    assert_eq!((at(0).await, at(1).await, at(2).await), (None, Some(said[1].clone()), None));
}

pub async fn operations_are_listed_newest_first(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow", "larch"]).await;
    for (time, id) in said.iter().enumerate() {
        let (selection, operation) = (Selection::Ids(vec![id.clone()]), format!("f{time}"));
        fixture.store.forget(&fixture.scope, &selection, &operation, time as i64).await.answered();
    }
    fixture.store.purge(&fixture.scope, "f0", 9).await.answered();
    fixture.store.undo(&fixture.scope, Some("f1"), 10).await.answered();
    let listed = async |limit| {
        let operations = fixture.store.operations(&fixture.scope, limit).await.answered();
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

pub async fn a_purged_memory_is_in_no_file(fixture: Fixture) {
    let said = fixture.say("s", &["a qwzxv maple", "willow"]).await;
    assert!(fixture.engine.holds("qwzxv"));
    fixture.forget(&[&said[0]], "f1").await;
    let purged = fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert_eq!(purged.ids, [said[0].clone()]);
    let fixture = fixture.reopened();
    assert!(!fixture.engine.holds("qwzxv"));
    assert_eq!((fixture.found("qwzxv").await, fixture.rows("s").await.len()), (0, 1));
}

pub async fn a_purged_memory_does_not_come_back(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    fixture.forget(&[&said[0]], "f1").await;
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert!(fixture.store.undo(&fixture.scope, Some("f1"), 7).await.is_err());
    assert!(fixture.store.is_purged(&fixture.scope, &said[0]).await.answered());
    assert_eq!(outcomes(&fixture.save(vec![message("s", "maple")]).await), [Outcome::Forgotten]);
    let fixture = fixture.reopened();
    assert_eq!((fixture.rows("s").await.len(), fixture.found("maple").await), (0, 0));
    let selection = Selection::Ids(said);
    let reached = fixture.store.selected(&fixture.scope, &selection, Reach::Forgotten).await.answered();
    assert!(reached.ids.is_empty());
}

pub async fn forgotten_memories_are_purged_too(fixture: Fixture) {
    let said = fixture.say("s", &["a qwzxv maple", "a qwzxv willow", "larch"]).await;
    fixture.forget(&[&said[0]], "f1").await;
    let selection = Selection::Ids(said[..2].to_vec());
    let purged = fixture.store.forget_for_good(&fixture.scope, &selection, "p1", 6).await.answered();
    assert_eq!(purged.ids, said[..2]);
    assert!(!fixture.engine.holds("qwzxv"));
    assert!(
        fixture.store.undo(&fixture.scope, Some("f1"), 7).await.is_err(),
        "nothing is left to bring back"
    );
    assert_eq!(fixture.rows("s").await.len(), 1);
}

pub async fn a_purge_takes_derived_memories_too(fixture: Fixture) {
    let said = fixture.say("s", &["the durian smells", "two"]).await;
    fixture.put(fact("s", "durian: smells", &[&said[0]])).await;
    // The message is forgotten and restored once before it is forgotten and purged.
    fixture.forget(&[&said[0]], "f1").await;
    fixture.undo().await;
    fixture.forget(&[&said[0]], "f2").await;
    fixture.store.purge(&fixture.scope, "f2", 7).await.answered();
    assert!(!fixture.engine.holds("durian"));
}

pub async fn a_purge_takes_summaries_answers_and_requests(fixture: Fixture) {
    let said = fixture.say("s", &["the qwzxv rings", "two"]).await;
    fixture.summarise("s", 0, 1).await;
    fixture.summarise_session("s", "a qwzxv in short", 1).await;
    fixture.store.cache(&fixture.scope, [1; 32], "a qwzxv again".into(), 1, HOUR, 1000).await.answered();
    let request = wanted(Level::Brief, AskedBy::User);
    fixture.store.enqueue(&fixture.scope, request, 1, 1).await.answered();
    let forgotten = fixture.forget_session("s", "f1").await;
    assert_eq!(forgotten.ids, said, "the session's summary isn't counted");
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert_eq!(fixture.store.queue_counts(&fixture.scope).await.answered(), QueueCounts::default());
    assert_eq!(fixture.store.cached(&fixture.scope, [1; 32], 2).await.answered(), None);
    let fixture = fixture.reopened();
    assert!(!fixture.engine.holds("qwzxv"));
}

/// The name of a session can contain text from the session.
pub async fn a_purged_session_loses_its_name(fixture: Fixture) {
    fixture.say("the qwzxv session", &["maple"]).await;
    fixture.forget_session("the qwzxv session", "f1").await;
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert!(fixture.store.sessions(&fixture.scope, 0, 9).await.answered().is_empty());
    let fixture = fixture.reopened();
    assert!(!fixture.engine.holds("qwzxv"));
}

pub async fn another_owner_undoes_and_purges_nothing(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let stranger = fixture.stranger();
    let selection = Selection::Ids(said.clone());
    let forgotten = fixture.store.forget(&stranger, &selection, "f0", 5).await.answered();
    assert!(forgotten.ids.is_empty() && fixture.rows("s").await.len() == 1);
    fixture.forget(&[&said[0]], "f1").await;
    assert!(fixture.store.undo(&stranger, Some("f1"), 6).await.is_err());
    assert!(fixture.store.operations(&stranger, 9).await.answered().is_empty());
    assert!(fixture.store.purge(&stranger, "f1", 6).await.answered().ids.is_empty());
    assert_eq!(fixture.undo().await.ids, said);
}

/// The summary of a quarter replaces old conversations. It is kept when the conversations are forgotten because of
/// their age, and removed when the user forgets them.
pub async fn a_summary_of_a_quarter_outlives_retired_sessions(fixture: Fixture) {
    let said = fixture.say("s", &["maple"]).await;
    let Saved::Made(conversation) = fixture.summarise_session("s", "willow", 0).await else {
        panic!("it is made")
    };
    fixture.store.save_quarter(&fixture.scope, quarter("larch", &[conversation]), 1).await.answered();
    let is_retired =
        async || fixture.store.quarter_is_retired(&fixture.scope, "quarter 2024-Q1").await.answered();
    assert!(!is_retired().await);
    let retired = fixture.store.retire(&fixture.scope, &name("s"), "f1", 5).await.answered();
    assert_eq!((retired.ids, fixture.rows("s").await.len()), (said, 0));
    assert_eq!((fixture.found("willow").await, fixture.found("larch").await), (0, 1));
    assert!(is_retired().await);
    fixture.forget_session("s", "f2").await;
    assert_eq!((fixture.found("larch").await, is_retired().await), (0, false));
}

pub async fn extracted_facts_are_removed_unless_they_are_marked(fixture: Fixture) {
    let said = fixture.say("s", &["a message"]).await;
    let facts = ["maple", "willow", "larch"].map(|text| fact("s", text, &[&said[0]]));
    let saved = fixture.save(facts.to_vec()).await;
    fixture.put(note("oak")).await;
    let marked = &saved.outcomes[1].0;
    fixture.store.mark(&fixture.scope, std::slice::from_ref(marked), true, None).await.answered();
    fixture
        .store
        .forget(&fixture.scope, &Selection::Ids(vec![saved.outcomes[2].0.clone()]), "f1", 5)
        .await
        .answered();
    assert_eq!(fixture.store.remove_extracts(&fixture.scope, &name("s"), 9).await.answered(), 1);
    let mut left = fixture.listed(&Filter::default()).await;
    left.sort_unstable();
    assert_eq!(left, ["a message", "oak", "willow"]);
    assert_eq!(fixture.undo().await.ids.len(), 1, "a forgotten fact is not removed for good");
}

pub async fn a_forgotten_memory_counts_in_no_word(fixture: Fixture) {
    let said = ["maple one", "maple two", "oak three"].map(|text| message("s", text));
    let mut all: Vec<MemoryId> = said.iter().map(|memory| memory.id.clone()).collect();
    fixture.save(said.to_vec()).await;
    for memory in [note("maple willow"), commit('a', "maple", 10)] {
        all.push(fixture.put(memory).await);
    }
    let words = async || {
        let query = by_words(&Filter::default(), &["maple", "willow", "oak"], 9);
        let found = fixture.store.candidates(&fixture.scope, query).await.answered();
        let (found, vocabulary) = found.words.answered();
        let found: Vec<(ChunkKey, f64)> = found.into_iter().map(|found| (found.chunk, found.score)).collect();
        (found, vocabulary.documents, vocabulary.counts)
    };
    // A message has the words of its neighbours, too.
    let before = words().await;
    assert_eq!((before.1, &before.2), (5, &vec![5, 1, 3]));
    let forgotten: Vec<&MemoryId> =
        all.iter().enumerate().filter(|(place, _)| *place != 2).map(|(_, id)| id).collect();
    fixture.forget(&forgotten, "f1").await;
    let (found, documents, counts) = words().await;
    assert_eq!((found.len(), documents, counts), (1, 1, vec![0, 0, 1]));
    fixture.undo().await;
    assert_eq!(words().await, before);
}

pub async fn a_new_message_is_a_neighbour_past_forgotten_ones(fixture: Fixture) {
    let said = ["birch", "cedar", "elm", "fir"].map(|text| message("s", text));
    let between: Vec<MemoryId> = said[1..].iter().map(|memory| memory.id.clone()).collect();
    fixture.save(said.to_vec()).await;
    fixture.forget(&between.iter().collect::<Vec<_>>(), "f1").await;
    fixture.put(message("s", "maple")).await;
    // Each of the two living ones has the words of the other.
    assert_eq!((fixture.found("maple").await, fixture.found("birch").await), (2, 2));
}

pub async fn nearer_ones_that_are_not_admitted_take_no_place(fixture: Fixture) {
    let nearer = (0..40).map(|number| embedded(message("away", &format!("maple said {number}")), NEAR));
    fixture.save(nearer.collect()).await;
    let gone = (0..40).map(|number| embedded(note(&format!("maple noted {number}")), NEAR));
    let gone = fixture.save(gone.collect()).await.outcomes.into_iter().map(|(id, _)| id).collect();
    fixture.store.forget(&fixture.scope, &Selection::Ids(gone), "o1", 5).await.answered();
    let next = [0.8, 0.6, 0.0, 0.0];
    for text in ["one", "two", "three"] {
        fixture.put(embedded(note(text), next)).await;
        fixture.put(embedded(message("here", &format!("said {text}")), next)).await;
    }
    let without = Filter { without: Some(name("away")), ..Filter::default() };
    let mut near = fixture.near(&fixture.scope, &without, NEAR, 2).await;
    near.sort();
    assert_eq!(near, ["one", "said one", "said two", "two"]);
}
