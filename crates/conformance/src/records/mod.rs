//! Promises about what is recorded beside the memories: attempts, leases that are seen, cursors, authors, and what a
//! write reports on the way.

use super::fixture::{Answered, Fixture, HOUR, by_words, commit, message_at, name, note, prepared, sha};
use super::subject::OWNER;
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Kind, Level, Millis, Provenance};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_store::*;

pub async fn a_write_reports_how_many_memories_are_durable(fixture: Fixture) {
    let mut reported = Vec::new();
    let memories = (0..3).map(|number| note(&format!("n{number}"))).collect();
    let mut report = |count| reported.push(count);
    fixture.store.save_reporting(&fixture.scope, memories, 1, &mut report).await.answered();
    assert_eq!(reported.last(), Some(&3), "{reported:?}");
}

pub async fn a_sound_text_is_read_as_sound_and_in_order(fixture: Fixture) {
    fixture.say("s", &["oak", "ash", "elm"]).await;
    let keys: Vec<_> = fixture.rows("s").await.into_iter().map(|row| row.key).rev().collect();
    let read = fixture.store.checked_texts(&fixture.scope, keys.clone()).await.answered();
    let text = |(key, text): (_, &str)| (key, text.to_owned(), false);
    assert_eq!(read, keys.into_iter().zip(["elm", "ash", "oak"]).map(text).collect::<Vec<_>>());
}

pub async fn a_small_store_is_searched_with_the_weights_of_another(fixture: Fixture) {
    let filter = Filter::default();
    fixture.save(vec![note("oak ash"), note("oak elm")]).await;
    let query = by_words(&filter, &["oak", "elm"], 9);
    let own = fixture.store.candidates(&fixture.scope, query.clone()).await.answered();
    let (candidates, weights) = own.words.answered();
    let query = CandidateQuery { weights: Some(weights.clone()), ..query };
    let as_other = fixture.store.candidates(&fixture.scope, query).await.answered();
    let (as_other, used) = as_other.words.answered();
    assert_eq!(used, weights);
    let keys = |found: &[LexicalCandidate]| found.iter().map(|each| each.chunk).collect::<Vec<_>>();
    assert_eq!((as_other.len(), keys(&as_other)), (2, keys(&candidates)), "its own weights change nothing");
}

pub async fn an_author_gets_another_name_and_is_found_by_it(fixture: Fixture) {
    let mut memory = commit('a', "prune the quince", 5);
    memory.draft.speaker = Some("ana".into());
    fixture.save(vec![memory, commit('b', "water the maple", 6)]).await;
    let rows = fixture.store.commit_authors(&fixture.scope, None, 9).await.answered();
    let authors: Vec<_> = rows.iter().map(|row| (row.sha.clone(), row.author.as_deref())).collect();
    assert_eq!(authors, [(sha('b'), None), (sha('a'), Some("ana"))], "those stored last come first");
    let (key, before) = (rows[1].key, Some(rows[0].key));
    let older = fixture.store.commit_authors(&fixture.scope, before, 9).await.answered();
    assert!(older.iter().any(|row| row.key == key), "{older:?}");
    let chunks = fixture.store.chunks_of(&fixture.scope, vec![key]).await.answered();
    assert_eq!((chunks.len(), chunks[0].0, chunks[0].1.start, chunks[0].1.tokens), (1, key, 0, 1));
    let renamed = Renamed {
        key,
        author: Some("ines".into()),
        indexed: Some("ines prune the quince".into()),
        tokens: vec![(chunks[0].1.key, 7)],
    };
    fixture.store.rename_authors(&fixture.scope, vec![renamed]).await.answered();
    let rows = fixture.store.commit_authors(&fixture.scope, None, 9).await.answered();
    assert_eq!(rows[1].author.as_deref(), Some("ines"));
    let chunks = fixture.store.chunks_of(&fixture.scope, vec![key]).await.answered();
    assert_eq!(chunks[0].1.tokens, 7);
    assert_eq!(fixture.candidates(&fixture.scope, &Filter::default(), "ines").await.len(), 1);
}

pub async fn what_is_only_forgotten_is_left_when_purges_are_finished(fixture: Fixture) {
    fixture.say("s", &["oak", "ash"]).await;
    let rows = fixture.rows("s").await;
    fixture.forget(&[&rows[0].id], "f1").await;
    fixture.forget(&[&rows[1].id], "f2").await;
    fixture.store.purge(&fixture.scope, "f2", 6).await.answered();
    let finished = fixture.store.finish_purges(&fixture.scope, Millis::MAX).await.answered();
    assert!(finished.ids.is_empty(), "no purge was interrupted: {finished:?}");
    let undone = fixture.store.undo(&fixture.scope, Some("f1"), 7).await;
    assert!(undone.is_ok(), "it was not purged: {undone:?}");
    assert_eq!(fixture.rows("s").await.len(), 1, "it comes back");
}

pub async fn a_version_is_foreseen_and_not_stored(fixture: Fixture) {
    fixture.say("s", &["oak", "ash"]).await;
    let draft = fixture.draft("s", 0, 1).await;
    let Saved::Made(foreseen) =
        fixture.store.foresee_version(&fixture.scope, draft.clone(), 1).await.answered()
    else {
        panic!("its messages are the same");
    };
    assert!(fixture.store.summary(&fixture.scope, &foreseen).await.answered().is_none(), "nothing is stored");
    let stored = fixture.store.save_version(&fixture.scope, draft, 1, 2).await.answered();
    assert_eq!(stored, Saved::Made(foreseen));
}

pub async fn attempts_of_a_model_are_listed_newest_first(fixture: Fixture) {
    fixture.say("s", &["oak", "ash"]).await;
    for (took_ms, model) in [(30, "m"), (20, "other"), (10, "m")] {
        let attempt = Attempt {
            session: name("s"),
            level: Level::Brief,
            first: 0,
            last: 1,
            provider: "lab".into(),
            model: model.into(),
            input_tokens: 5,
            output_tokens: 2,
            cost_micros: 0,
            took_ms,
            quality: None,
            error: None,
            at: 100 - took_ms,
        };
        fixture.store.attempt(&fixture.scope, attempt).await.answered();
    }
    let paces =
        async |most| fixture.store.paces(&fixture.scope, "lab".into(), "m".into(), most).await.answered();
    let pace = |took| Pace { input: 5, output: 2, took };
    assert_eq!(paces(9).await, [pace(10), pace(30)]);
    assert_eq!(paces(1).await, [pace(10)]);
}

pub async fn a_lease_is_seen_as_long_as_it_is_held(fixture: Fixture) {
    fixture.store.clock().set(HOUR);
    let is_leased = async || fixture.store.is_leased(&fixture.scope, "work").await.answered();
    assert!(!is_leased().await);
    fixture.store.lease(&fixture.scope, "work", "p1", 50).await.answered();
    assert!(is_leased().await);
    fixture.store.clock().set(HOUR + 50);
    assert!(!is_leased().await, "it ended");
}

pub async fn the_newest_time_is_that_of_what_was_stored_last(fixture: Fixture) {
    let newest = async || fixture.store.newest(&fixture.scope).await.answered();
    assert_eq!(newest().await, None);
    fixture.store.save(&fixture.scope, vec![note("oak")], 40).await.answered();
    fixture.store.save(&fixture.scope, vec![message_at("s", "elm", 3)], 90).await.answered();
    assert_eq!(newest().await, Some(90), "it is the time of storing");
}

pub async fn a_cursor_is_found_by_the_end_of_its_source(fixture: Fixture) {
    fixture.store.set_import_cursor(&fixture.scope, "claude /home/ines/a.jsonl", "7", 1).await.answered();
    let has = async |end: &str| fixture.store.has_import_cursor(&fixture.scope, end).await.answered();
    assert!(has("/a.jsonl").await);
    assert!(!has("/b.jsonl").await);
    let stranger = fixture.stranger();
    assert!(!fixture.store.has_import_cursor(&stranger, "/a.jsonl").await.answered());
}

pub async fn growth_is_counted_by_day_and_kind(fixture: Fixture) {
    const DAY: Millis = 24 * HOUR;
    fixture
        .save(vec![message_at("s", "oak", -1), message_at("s", "elm", DAY), commit('a', "fir", DAY)])
        .await;
    let late = fixture.put(message_at("t", "ash", 2 * DAY)).await;
    let growth = async |scope| fixture.store.growth(scope).await.answered();
    let count = |day, kind: Kind| DayCount { day, kind: kind.as_str().to_owned(), memories: 1, tokens: 1 };
    let mut memories = vec![count(-1, Kind::Message), count(1, Kind::Commit), count(1, Kind::Message)];
    let before = Growth { memories: memories.clone(), sessions: vec![(-1, 1)] };
    memories.push(count(2, Kind::Message));
    let all = Growth { memories, sessions: vec![(-1, 1), (2, 1)] };
    assert_eq!(growth(&fixture.scope).await, all);
    fixture.forget(&[&late], "f1").await;
    assert_eq!(growth(&fixture.scope).await, before, "what is forgotten doesn't count");
    fixture.store.undo(&fixture.scope, None, 6).await.answered();
    assert_eq!(growth(&fixture.scope).await, all);
    assert_eq!(growth(&fixture.stranger()).await, Growth::default());
}

/// Returns a fact of the owner in the project.
fn of_project(id: &ProjectId) -> (Scope, PreparedMemory) {
    let draft = Draft::new(Kind::Fact, Provenance::UserSaid, "the quince is mine", 3);
    (Scope::own(TenantId::new(OWNER), id.clone()), prepared(draft, "quince"))
}

pub async fn a_store_is_found_by_its_project(fixture: Fixture) {
    let (registry, id) = (fixture.engine.registry(), ProjectId::from_random([1; 8]));
    registry.record(&id, "maple", "/a", 1).await.answered();
    assert!(registry.existing_store(&id).await.answered().is_none(), "nothing is stored yet");
    let (scope, memory) = of_project(&id);
    registry.store(&id).await.answered().save(&scope, vec![memory], 1).await.answered();
    let other = fixture.engine.registry().existing_store(&id).await.answered();
    assert!(!other.expect("it was made").is_empty(&scope).await.answered());
}

pub async fn a_project_that_left_the_registry_is_a_stray(fixture: Fixture) {
    let registry = fixture.engine.registry();
    let ids = [1, 2].map(|number| ProjectId::from_random([number; 8]));
    for (id, seen) in ids.iter().zip(["/a", "/b"]) {
        registry.record(id, "maple", seen, 1).await.answered();
        let (scope, memory) = of_project(id);
        registry.store(id).await.answered().save(&scope, vec![memory], 1).await.answered();
    }
    assert!(registry.strays().await.answered().is_empty());
    registry.absorb(&ids[0], &ids[1]).await.answered();
    let strays = fixture.engine.registry().strays().await.answered();
    assert_eq!(strays.iter().map(|row| &row.id).collect::<Vec<_>>(), [&ids[0]]);
    let store = registry.existing_store(&ids[0]).await.answered().expect("it stays");
    assert!(!store.is_empty(&of_project(&ids[0]).0).await.answered());
}
