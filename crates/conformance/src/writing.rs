//! Promises about storing memories: who sees a write and when, the order of writes, and the effect of writing the
//! same memory again.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::fixture::{Answered, Fixture, fact, message, message_at, name, note, outcomes, prepared};
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Kind, MemoryId, MemoryKey, Provenance};
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::*;

pub async fn a_write_is_read_by_its_writer(fixture: Fixture) {
    let id = fixture.put(note("maple")).await;
    assert_eq!(fixture.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!(fixture.listed(&Filter::default()).await, ["maple"]);
    assert_eq!(fixture.found("maple").await, 1);
}

pub async fn another_handle_sees_an_acknowledged_write(fixture: Fixture) {
    let other = fixture.engine.open();
    let id = fixture.put(message("s", "maple")).await;
    let seen = other.memory(&fixture.scope, &id).await.answered();
    assert_eq!(seen.map(|memory| memory.text), Some("maple".into()));
    let rows = other.session_messages(&fixture.scope, &name("s"), 0).await.answered();
    assert_eq!(rows.len(), 1);
}

pub async fn a_write_is_there_after_reopening(fixture: Fixture) {
    let id = fixture.put(note("maple")).await;
    let fixture = fixture.reopened();
    assert_eq!(fixture.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!(fixture.found("maple").await, 1);
}

pub async fn a_write_that_fails_stores_nothing(fixture: Fixture) {
    let mut wrong = note("willow");
    wrong.chunks[0].end = 1000;
    let memories = vec![note("maple"), wrong];
    assert!(fixture.store.save(&fixture.scope, memories, 1).await.is_err(), "a chunk ends beyond its text");
    assert_eq!((fixture.listed(&Filter::default()).await, fixture.found("maple").await), (Vec::new(), 0));
}

pub async fn a_batch_is_seen_whole_or_not_at_all(fixture: Fixture) {
    let other = fixture.engine.open();
    let batch: Vec<String> = (0..40).map(|number| format!("maple {number}")).collect();
    let batch = batch.iter().map(|text| message("s", text)).collect();
    let is_saved = Cell::new(false);
    let save = async {
        fixture.save(batch).await;
        is_saved.set(true);
    };
    let look = async {
        loop {
            let is_last = is_saved.get();
            let seen = other.session_messages(&fixture.scope, &name("s"), 0).await.answered().len();
            assert!(seen == 40 || seen == 0 && !is_last, "{seen} of 40 are seen");
            if is_last {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::join!(save, look);
}

pub async fn a_receipt_names_each_memory_in_order(fixture: Fixture) {
    fixture.put(note("willow")).await;
    let memories = vec![note("maple"), note("willow"), note("larch")];
    let ids: Vec<_> = memories.iter().map(|memory| memory.id.clone()).collect();
    let receipt = fixture.save(memories).await;
    let expected = [Outcome::Stored, Outcome::AlreadyStored, Outcome::Stored];
    assert_eq!(receipt.outcomes, ids.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!((receipt.pending, receipt.count(Outcome::Stored)), (2, 2));
}

pub async fn a_memory_is_stored_once(fixture: Fixture) {
    fixture.say("s", &["maple"]).await;
    let again = fixture.save(vec![message("s", "maple")]).await;
    assert_eq!(outcomes(&again), [Outcome::AlreadyStored]);
    assert_eq!((fixture.rows("s").await.len(), fixture.found("maple").await), (1, 1));
}

pub async fn another_text_under_an_id_conflicts_and_the_first_stays(fixture: Fixture) {
    let id = fixture.put(note("maple")).await;
    let mut other = note("willow");
    other.id = id.clone();
    assert_eq!(outcomes(&fixture.save(vec![other]).await), [Outcome::Conflict]);
    assert_eq!(fixture.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!((fixture.found("maple").await, fixture.found("willow").await), (1, 0));
}

pub async fn of_writers_of_one_memory_one_stores_it(fixture: Fixture) {
    let handles: Vec<Arc<dyn Store>> = (0..4).map(|_| fixture.engine.open()).collect();
    let texts = ["maple", "willow", "larch"];
    for text in texts {
        let saved = handles.iter().map(|handle| handle.save(&fixture.scope, vec![message("s", text)], 1));
        let mut met: Vec<Outcome> = Vec::new();
        for receipt in join_all(saved).await {
            met.extend(outcomes(&receipt.answered()));
        }
        assert_eq!(met.iter().filter(|met| **met == Outcome::Stored).count(), 1, "{met:?}");
        assert_eq!(met.iter().filter(|met| **met == Outcome::AlreadyStored).count(), 3, "{met:?}");
        // By now all handles have finished this round.
        fixture.say("s", &[text]).await;
    }
    assert_eq!(fixture.rows("s").await.len(), texts.len());
}

pub async fn messages_are_numbered_in_the_order_given(fixture: Fixture) {
    fixture.say("s", &["maple", "willow"]).await;
    fixture.say("s", &["larch"]).await;
    let rows = fixture.rows("s").await;
    assert_eq!(rows.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [0, 1, 2]);
    let texts = fixture.texts(rows.iter().map(|row| row.key).collect()).await;
    assert_eq!(texts, ["maple", "willow", "larch"]);
}

/// Writes to one session through several handles at once. Returns the session's messages in order, each with its
/// ordinal and text.
async fn written_at_once(fixture: &Fixture) -> Vec<(i64, String)> {
    let handles: Vec<Arc<dyn Store>> = (0..4).map(|_| fixture.engine.open()).collect();
    let writers = handles.iter().enumerate().map(async |(writer, handle)| {
        for batch in 0..3 {
            let texts = (0..3).map(|number| format!("{writer} {batch} {number}"));
            let batch = texts.map(|text| message("s", &text)).collect();
            handle.save(&fixture.scope, batch, 1).await.answered();
        }
    });
    join_all(writers).await;
    let rows = fixture.rows("s").await;
    let texts = fixture.texts(rows.iter().map(|row| row.key).collect()).await;
    rows.iter().map(|row| row.ordinal).zip(texts).collect()
}

pub async fn concurrent_writers_share_a_session_without_gaps(fixture: Fixture) {
    let written = written_at_once(&fixture).await;
    let ordinals: Vec<i64> = written.iter().map(|(ordinal, _)| *ordinal).collect();
    assert_eq!(ordinals, (0..36).collect::<Vec<i64>>());
}

pub async fn each_concurrent_writer_keeps_its_order(fixture: Fixture) {
    let written = written_at_once(&fixture).await;
    for writer in ["0 ", "1 ", "2 ", "3 "] {
        let own: Vec<&String> =
            written.iter().map(|(_, text)| text).filter(|text| text.starts_with(writer)).collect();
        assert!(own.is_sorted() && own.len() == 9, "{own:?}");
    }
    // A batch is stored in one step, so its memories are not mixed with those of another handle.
    for batch in written.chunks(3) {
        assert_eq!(batch[0].1[..3], batch[2].1[..3], "{batch:?}");
    }
}

pub async fn the_last_stored_is_listed_first(fixture: Fixture) {
    // Memories are ordered by the time at which they were stored, not by their dates.
    fixture.put(message_at("s", "maple", 90)).await;
    fixture.put(message_at("s", "willow", 10)).await;
    fixture.put(message_at("s", "larch", 50)).await;
    assert_eq!(fixture.listed(&Filter::default()).await, ["larch", "willow", "maple"]);
    let found = fixture.store.list(&fixture.scope, &Filter::default(), None, 9).await.answered();
    assert!(found.is_sorted_by(|a, b| a.key > b.key), "keys are ordered by when memories were stored");
}

pub async fn an_occurrence_is_counted_and_not_stored(fixture: Fixture) {
    let occurrence = |key: &str| {
        let mut output = message("s", "maple");
        output.draft.occurrence = Some(key.into());
        vec![output]
    };
    let mut met = Vec::new();
    for key in ["first", "second", "second"] {
        met.extend(outcomes(&fixture.save(occurrence(key)).await));
    }
    assert_eq!(met, [Outcome::Stored, Outcome::Repeated, Outcome::AlreadyStored]);
    assert_eq!(fixture.rows("s").await.len(), 1);
    assert_eq!(fixture.store.stats(&fixture.scope, 1).await.answered().repeats, 1);
}

pub async fn a_derived_memory_needs_its_sources(fixture: Fixture) {
    let said = fixture.say("s", &["maple", "willow"]).await;
    fixture.forget(&[&said[0]], "f1").await;
    let memories = vec![fact("s", "of both", &[&said[0], &said[1]]), fact("s", "of one", &[&said[1]])];
    assert_eq!(outcomes(&fixture.save(memories).await), [Outcome::Forgotten, Outcome::Stored]);
    assert_eq!(fixture.listed(&Filter::default()).await, ["of one", "willow"]);
}

pub async fn the_fields_of_a_memory_are_kept(fixture: Fixture) {
    let text = " näme\t«ß» 🌲\r\n\n";
    let mut draft = Draft::new(Kind::Message, Provenance::ModelSaid, text, 77);
    let field = |name: &str| Some(name.to_owned());
    draft.session = Some(name("s"));
    (draft.speaker, draft.title, draft.topic) = (field("Ada"), field("A title"), field("a topic"));
    (draft.source_id, draft.path, draft.branch) = (field("id 1"), field("src/a.rs"), field("main"));
    (draft.head_sha, draft.importance) = (field("abc"), Some(0.75));
    let id = fixture.put(prepared(draft, "key")).await;
    let stored = fixture.living(&id).await.expect("it is stored");
    assert_eq!(
        (stored.text.as_str(), stored.kind, stored.provenance),
        (text, Kind::Message, Provenance::ModelSaid)
    );
    assert_eq!((stored.session, stored.ordinal, stored.time), (Some(name("s")), Some(0), 77));
    assert_eq!(
        (stored.speaker, stored.title, stored.topic),
        (field("Ada"), field("A title"), field("a topic"))
    );
    assert_eq!(
        (stored.source_id, stored.path, stored.branch),
        (field("id 1"), field("src/a.rs"), field("main"))
    );
    assert_eq!((stored.head_sha, stored.importance, stored.marked), (field("abc"), Some(0.75), false));
    assert_eq!((stored.id, stored.tokens), (id, 1));
}

pub async fn a_store_admits_its_own_project_only(fixture: Fixture) {
    let id = fixture.put(note("maple")).await;
    let elsewhere = Scope { project: ProjectId::from_random([8; 8]), ..fixture.scope.clone() };
    assert!(fixture.store.memory(&elsewhere, &id).await.is_err());
    assert!(fixture.store.save(&elsewhere, vec![note("willow")], 1).await.is_err());
    assert_eq!(fixture.listed(&Filter::default()).await, ["maple"]);
}

/// A new message must not get an ordinal within a range that was already summarised.
pub async fn the_number_of_a_purged_message_is_not_given_again(fixture: Fixture) {
    let said = fixture.say("s", &["one", "two"]).await;
    fixture.forget(&[&said[1]], "f1").await;
    fixture.summarise("s", 0, 1).await;
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    let fixture = fixture.reopened();
    fixture.say("s", &["three"]).await;
    let ordinals: Vec<i64> = fixture.rows("s").await.iter().map(|row| row.ordinal).collect();
    assert_eq!(ordinals, [0, 2]);
    assert_eq!(fixture.summaries("s").await[0].summary.text, "one");
}

/// Returns a decision that replaces the memories `older`.
fn instead(text: &str, older: &[&MemoryId]) -> PreparedMemory {
    let mut memory = note(text);
    memory.draft.supersedes = older.iter().map(|id| (*id).clone()).collect();
    memory
}

/// Returns the texts of the memories that replaced each of `ids`; a dash for those that were not replaced.
async fn replaced(fixture: &Fixture, ids: &[&MemoryId]) -> Vec<String> {
    let mut texts = Vec::new();
    for id in ids {
        let key = fixture.key(id).await;
        let found = fixture.superseded(vec![key]).await;
        let by = found.first().map(|superseded| superseded.by_key);
        texts.push(match by {
            Some(by) => fixture.texts(vec![by]).await.concat(),
            None => "-".into(),
        });
    }
    texts
}

/// Returns the texts of the memories that `id` replaced.
async fn earlier(fixture: &Fixture, id: &MemoryId) -> Vec<String> {
    let key = fixture.key(id).await;
    fixture.texts(fixture.store.supersedes(&fixture.scope, key).await.answered()).await
}

pub async fn a_superseded_memory_names_the_one_that_holds(fixture: Fixture) {
    let (old, other) = (fixture.put(note("maple")).await, fixture.put(note("larch")).await);
    let new = fixture.put(instead("willow", &[&old])).await;
    assert_eq!(replaced(&fixture, &[&old, &other, &new]).await, ["willow", "-", "-"]);
    // Storing the memory again changes nothing, and adds what it replaces.
    fixture.save(vec![instead("willow", &[&old, &other])]).await;
    let fixture = fixture.reopened();
    assert_eq!(replaced(&fixture, &[&old, &other, &new]).await, ["willow", "willow", "-"]);
}

pub async fn a_memory_holds_again_once_its_successor_is_forgotten(fixture: Fixture) {
    let old = fixture.put(message("s", "maple")).await;
    let version = fixture.version(&["s"]).await;
    let new = fixture.put(instead("willow", &[&old])).await;
    let superseded = fixture.version(&["s"]).await;
    fixture.forget(&[&new], "f1").await;
    assert_eq!(replaced(&fixture, &[&old]).await, ["-"]);
    let holds = fixture.version(&["s"]).await;
    assert!(version != superseded && superseded != holds, "answers about the session are out of date");
    fixture.undo().await;
    assert_eq!(replaced(&fixture, &[&old]).await, ["willow"]);
    assert_ne!(fixture.version(&["s"]).await, holds);
}

pub async fn a_chain_of_successors_leads_to_the_last_living_one(fixture: Fixture) {
    let a = fixture.put(note("maple")).await;
    let b = fixture.put(instead("willow", &[&a])).await;
    let c = fixture.put(instead("larch", &[&b])).await;
    assert_eq!(replaced(&fixture, &[&a, &b, &c]).await, ["larch", "larch", "-"]);
    assert_eq!(earlier(&fixture, &c).await, ["maple", "willow"]);
    fixture.forget(&[&b], "f1").await;
    assert_eq!(replaced(&fixture, &[&a]).await, ["larch"]);
    assert_eq!(earlier(&fixture, &c).await, ["maple"]);
    fixture.store.purge(&fixture.scope, "f1", 7).await.answered();
    assert_eq!(replaced(&fixture, &[&a]).await, ["larch"]);
    fixture.forget(&[&c], "f2").await;
    assert_eq!(replaced(&fixture, &[&a]).await, ["-"]);
}

pub async fn a_memory_supersedes_neither_itself_nor_its_successors(fixture: Fixture) {
    let a = fixture.put(note("maple")).await;
    let b = fixture.put(instead("willow", &[&a])).await;
    let c = fixture.put(instead("larch", &[&b])).await;
    let gone = fixture.put(note("oak")).await;
    fixture.forget(&[&gone], "f1").await;
    let unknown = MemoryId::derive(Kind::Fact, None, "unknown");
    let wrong = [
        instead("maple", &[&a]),
        instead("maple", &[&c]),
        instead("elm", &[&unknown]),
        instead("elm", &[&gone]),
        instead("elm", &[&a, &unknown]),
    ];
    for memory in wrong {
        let memories = vec![note("birch"), memory];
        assert!(fixture.store.save(&fixture.scope, memories, 1).await.is_err());
        assert_eq!(fixture.found("birch").await + fixture.found("elm").await, 0, "nothing is stored");
    }
    let stranger = fixture.store.save(&fixture.stranger(), vec![instead("elm", &[&a])], 1).await;
    assert!(stranger.is_err(), "a memory of another owner");
    assert_eq!(replaced(&fixture, &[&a, &b, &c]).await, ["larch", "larch", "-"]);
}

/// Returns a statement that is the whole text of the memory.
fn statement(memory: MemoryKey, value: &str, time: i64) -> Statement {
    let (voice, words) = ("user".to_owned(), "quota call".to_owned());
    Statement {
        memory,
        number: 0,
        start: 0,
        end: value.len(),
        voice,
        value: value.into(),
        words,
        time,
        subject: None,
    }
}

pub async fn the_latest_living_statement_of_a_subject_holds(fixture: Fixture) {
    let texts: Vec<String> = (0..200).map(|number| format!("{} calls", 1000 + number)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let said = fixture.say("s", &texts).await;
    let rows = fixture.rows("s").await;
    let mut statements: Vec<NewStatement> = Vec::new();
    for (row, text) in rows.iter().zip(&texts) {
        let same_as = statements.last().map(|before| (before.statement.memory, 0));
        statements.push(NewStatement { statement: statement(row.key, text, 10), same_as });
    }
    let version = fixture.version(&["s"]).await;
    fixture.store.add_statements(&fixture.scope, statements, Some((name("s"), 199))).await.answered();
    assert_ne!(fixture.version(&["s"]).await, version);
    let keys: Vec<MemoryKey> = rows.iter().map(|row| row.key).collect();
    let found = fixture.superseded(keys.clone()).await;
    assert_eq!(found.len(), 199);
    assert!(found.iter().all(|superseded| superseded.by == said[199]));
    assert_eq!((found[0].statement, found[0].by_ordinal), (Some((0, 10)), Some(199)));
    fixture.forget(&[&said[199]], "f1").await;
    let found = fixture.superseded(keys).await;
    assert_eq!((found.len(), &found[0].by), (198, &said[198]));
}

pub async fn a_fact_is_superseded_with_the_statement_that_it_repeats(fixture: Fixture) {
    let said = fixture.say("s", &["100 calls", "200 calls"]).await;
    let fact_id = fixture.put(fact("s", "100 calls", &[&said[0]])).await;
    let (old, new) = (fixture.key(&said[0]).await, fixture.key(&said[1]).await);
    let statements = vec![
        NewStatement { statement: statement(old, "100 calls", 10), same_as: None },
        NewStatement { statement: statement(new, "200 calls", 20), same_as: Some((old, 0)) },
    ];
    fixture.store.add_statements(&fixture.scope, statements, Some((name("s"), 1))).await.answered();
    assert_eq!(replaced(&fixture, &[&said[0], &fact_id, &said[1]]).await, ["200 calls", "200 calls", "-"]);
}

pub async fn statements_in_memories_come_in_order_of_their_keys(fixture: Fixture) {
    let said = fixture.say("s", &["100 calls", "200 calls", "300 calls"]).await;
    let rows = fixture.rows("s").await;
    let new = |place: usize| NewStatement {
        statement: statement(rows[place].key, &format!("{}00 calls", place + 1), 10),
        same_as: None,
    };
    let all = vec![new(0), new(1), new(2)];
    fixture.store.add_statements(&fixture.scope, all, Some((name("s"), 2))).await.answered();
    fixture.forget(&[&said[1]], "f1").await;
    let keys = vec![rows[2].key, rows[1].key, rows[0].key];
    let texts = keys.clone();
    let query =
        ReplacementQuery { memories: keys, with_statements: true, texts, ..ReplacementQuery::default() };
    let found = fixture.store.replacements(&fixture.scope, query.clone()).await.answered();
    assert_eq!(found.statements, [new(2).statement, new(0).statement]);
    assert_eq!(found.texts, [(rows[2].key, "300 calls".to_owned()), (rows[0].key, "100 calls".to_owned())]);
    let elsewhere = fixture.store.replacements(&fixture.only(&["t"]), query.clone()).await.answered();
    assert!(elsewhere.statements.is_empty() && elsewhere.texts.is_empty());
    let without = ReplacementQuery { with_statements: false, ..query };
    assert!(fixture.store.replacements(&fixture.scope, without).await.answered().statements.is_empty());
}

/// Returns the statements in the memories.
async fn statements_in(fixture: &Fixture, scope: &Scope, keys: &[MemoryKey]) -> Vec<Statement> {
    let query =
        ReplacementQuery { memories: keys.to_vec(), with_statements: true, ..ReplacementQuery::default() };
    fixture.store.replacements(scope, query).await.answered().statements
}

pub async fn a_statement_is_stored_once(fixture: Fixture) {
    let said = fixture.say("s", &["100 calls", "200 calls"]).await;
    let rows = fixture.rows("s").await;
    let new = |key| vec![NewStatement { statement: statement(key, "100 calls", 10), same_as: None }];
    for noted in [0, 1, 0] {
        let until = Some((name("s"), noted));
        fixture.store.add_statements(&fixture.scope, new(rows[0].key), until).await.answered();
    }
    fixture.forget(&[&said[1]], "f1").await;
    fixture.store.add_statements(&fixture.scope, new(rows[1].key), Some((name("s"), 0))).await.answered();
    let keys: Vec<MemoryKey> = rows.iter().map(|row| row.key).collect();
    assert_eq!(statements_in(&fixture, &fixture.scope, &keys).await.len(), 1);
    assert_eq!(fixture.store.noted(&fixture.scope, &name("s")).await.answered(), 1);
    assert_eq!(fixture.store.noted(&fixture.scope, &name("t")).await.answered(), -1);
}

pub async fn an_owner_sees_no_statement_of_another(fixture: Fixture) {
    fixture.say("s", &["100 calls"]).await;
    let key = fixture.rows("s").await[0].key;
    let new = vec![NewStatement { statement: statement(key, "100 calls", 10), same_as: None }];
    fixture.store.add_statements(&fixture.stranger(), new.clone(), None).await.answered();
    assert!(statements_in(&fixture, &fixture.scope, &[key]).await.is_empty());
    fixture.store.add_statements(&fixture.scope, new, Some((name("s"), 1))).await.answered();
    assert!(statements_in(&fixture, &fixture.stranger(), &[key]).await.is_empty());
    assert_eq!(statements_in(&fixture, &fixture.scope, &[key]).await.len(), 1);
}
