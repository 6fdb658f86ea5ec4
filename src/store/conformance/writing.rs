//! Promises about storing memories: who sees a write and when, the order of writes, and the effect of writing the
//! same memory again.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::join_all;

use super::place::{Answered, Place, fact, message, message_at, name, note, outcomes, prepared};
use super::subject::{Engine, Subject};
use crate::filter::Filter;
use crate::memory::{Draft, Kind, Provenance};
use crate::scope::{ProjectId, Scope};
use crate::store::Outcome;

pub async fn a_write_is_read_by_its_writer<E: Engine>(place: Place<E>) {
    let id = place.put(note("maple")).await;
    assert_eq!(place.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!(place.listed(&Filter::default()).await, ["maple"]);
    assert_eq!(place.found("maple").await, 1);
}

pub async fn another_handle_sees_an_acknowledged_write<E: Engine>(place: Place<E>) {
    let other = place.engine.open();
    let id = place.put(message("s", "maple")).await;
    let seen = other.memory(&place.scope, &id).await.answered();
    assert_eq!(seen.map(|memory| memory.text), Some("maple".into()));
    let rows = other.session_messages(&place.scope, &name("s"), 0).await.answered();
    assert_eq!(rows.len(), 1);
}

pub async fn a_write_is_there_after_reopening<E: Engine>(place: Place<E>) {
    let id = place.put(note("maple")).await;
    let place = place.reopened();
    assert_eq!(place.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!(place.found("maple").await, 1);
}

pub async fn a_write_that_fails_stores_nothing<E: Engine>(place: Place<E>) {
    let mut wrong = note("willow");
    wrong.chunks[0].end = 1000;
    let memories = vec![note("maple"), wrong];
    assert!(place.store.save(&place.scope, memories, 1).await.is_err(), "a chunk ends beyond its text");
    assert_eq!((place.listed(&Filter::default()).await, place.found("maple").await), (Vec::new(), 0));
}

pub async fn a_batch_is_seen_whole_or_not_at_all<E: Engine>(place: Place<E>) {
    let other = place.engine.open();
    let batch: Vec<String> = (0..40).map(|number| format!("maple {number}")).collect();
    let batch = batch.iter().map(|text| message("s", text)).collect();
    let is_saved = Cell::new(false);
    let save = async {
        place.save(batch).await;
        is_saved.set(true);
    };
    let look = async {
        loop {
            let is_last = is_saved.get();
            let seen = other.session_messages(&place.scope, &name("s"), 0).await.answered().len();
            assert!(seen == 40 || seen == 0 && !is_last, "{seen} of 40 are seen");
            if is_last {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::join!(save, look);
}

pub async fn a_receipt_names_each_memory_in_order<E: Engine>(place: Place<E>) {
    place.put(note("willow")).await;
    let memories = vec![note("maple"), note("willow"), note("larch")];
    let ids: Vec<_> = memories.iter().map(|memory| memory.id.clone()).collect();
    let receipt = place.save(memories).await;
    let expected = [Outcome::Stored, Outcome::AlreadyStored, Outcome::Stored];
    assert_eq!(receipt.outcomes, ids.into_iter().zip(expected).collect::<Vec<_>>());
    assert_eq!((receipt.pending, receipt.count(Outcome::Stored)), (2, 2));
}

pub async fn a_memory_is_stored_once<E: Engine>(place: Place<E>) {
    place.say("s", &["maple"]).await;
    let again = place.save(vec![message("s", "maple")]).await;
    assert_eq!(outcomes(&again), [Outcome::AlreadyStored]);
    assert_eq!((place.rows("s").await.len(), place.found("maple").await), (1, 1));
}

pub async fn another_text_under_an_id_conflicts_and_the_first_stays<E: Engine>(place: Place<E>) {
    let id = place.put(note("maple")).await;
    let mut other = note("willow");
    other.id = id.clone();
    assert_eq!(outcomes(&place.save(vec![other]).await), [Outcome::Conflict]);
    assert_eq!(place.living(&id).await.map(|memory| memory.text), Some("maple".into()));
    assert_eq!((place.found("maple").await, place.found("willow").await), (1, 0));
}

pub async fn of_writers_of_one_memory_one_stores_it<E: Engine>(place: Place<E>) {
    let handles: Vec<E::Store> = (0..4).map(|_| place.engine.open()).collect();
    let texts = ["maple", "willow", "larch"];
    for text in texts {
        let saved = handles.iter().map(|handle| handle.save(&place.scope, vec![message("s", text)], 1));
        let mut met: Vec<Outcome> = Vec::new();
        for receipt in join_all(saved).await {
            met.extend(outcomes(&receipt.answered()));
        }
        assert_eq!(met.iter().filter(|met| **met == Outcome::Stored).count(), 1, "{met:?}");
        assert_eq!(met.iter().filter(|met| **met == Outcome::AlreadyStored).count(), 3, "{met:?}");
        // By now all handles have finished this round.
        place.say("s", &[text]).await;
    }
    assert_eq!(place.rows("s").await.len(), texts.len());
}

pub async fn messages_are_numbered_in_the_order_given<E: Engine>(place: Place<E>) {
    place.say("s", &["maple", "willow"]).await;
    place.say("s", &["larch"]).await;
    let rows = place.rows("s").await;
    assert_eq!(rows.iter().map(|row| row.ordinal).collect::<Vec<_>>(), [0, 1, 2]);
    let texts = place.texts(rows.iter().map(|row| row.key).collect()).await;
    assert_eq!(texts, ["maple", "willow", "larch"]);
}

/// Writes to one session through several handles at once. Returns the session's messages in order, each with its
/// ordinal and text.
async fn written_at_once<E: Engine>(place: &Place<E>) -> Vec<(i64, String)> {
    let handles: Vec<E::Store> = (0..4).map(|_| place.engine.open()).collect();
    let writers = handles.iter().enumerate().map(async |(writer, handle)| {
        for batch in 0..3 {
            let texts = (0..3).map(|number| format!("{writer} {batch} {number}"));
            let batch = texts.map(|text| message("s", &text)).collect();
            handle.save(&place.scope, batch, 1).await.answered();
        }
    });
    join_all(writers).await;
    let rows = place.rows("s").await;
    let texts = place.texts(rows.iter().map(|row| row.key).collect()).await;
    rows.iter().map(|row| row.ordinal).zip(texts).collect()
}

pub async fn concurrent_writers_share_a_session_without_gaps<E: Engine>(place: Place<E>) {
    let written = written_at_once(&place).await;
    let ordinals: Vec<i64> = written.iter().map(|(ordinal, _)| *ordinal).collect();
    assert_eq!(ordinals, (0..36).collect::<Vec<i64>>());
}

pub async fn each_concurrent_writer_keeps_its_order<E: Engine>(place: Place<E>) {
    let written = written_at_once(&place).await;
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

pub async fn the_last_stored_is_listed_first<E: Engine>(place: Place<E>) {
    // Memories are ordered by the time at which they were stored, not by their dates.
    place.put(message_at("s", "maple", 90)).await;
    place.put(message_at("s", "willow", 10)).await;
    place.put(message_at("s", "larch", 50)).await;
    assert_eq!(place.listed(&Filter::default()).await, ["larch", "willow", "maple"]);
    let found = place.store.list(&place.scope, &Filter::default(), None, 9).await.answered();
    assert!(found.is_sorted_by(|a, b| a.key > b.key), "keys are ordered by when memories were stored");
}

pub async fn an_occurrence_is_counted_and_not_stored<E: Engine>(place: Place<E>) {
    let occurrence = |key: &str| {
        let mut output = message("s", "maple");
        output.draft.occurrence = Some(key.into());
        vec![output]
    };
    let mut met = Vec::new();
    for key in ["first", "second", "second"] {
        met.extend(outcomes(&place.save(occurrence(key)).await));
    }
    assert_eq!(met, [Outcome::Stored, Outcome::Repeated, Outcome::AlreadyStored]);
    assert_eq!(place.rows("s").await.len(), 1);
    assert_eq!(place.store.stats(&place.scope, 1).await.answered().repeats, 1);
}

pub async fn a_derived_memory_needs_its_sources<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["maple", "willow"]).await;
    place.forget(&[&said[0]], "f1").await;
    let memories = vec![fact("s", "of both", &[&said[0], &said[1]]), fact("s", "of one", &[&said[1]])];
    assert_eq!(outcomes(&place.save(memories).await), [Outcome::Forgotten, Outcome::Stored]);
    assert_eq!(place.listed(&Filter::default()).await, ["of one", "willow"]);
}

pub async fn the_fields_of_a_memory_are_kept<E: Engine>(place: Place<E>) {
    let text = " näme\t«ß» 🌲\r\n\n";
    let mut draft = Draft::new(Kind::Message, Provenance::ModelSaid, text, 77);
    let field = |name: &str| Some(name.to_owned());
    draft.session = Some(name("s"));
    (draft.speaker, draft.title, draft.topic) = (field("Ada"), field("A title"), field("a topic"));
    (draft.source_id, draft.path, draft.branch) = (field("id 1"), field("src/a.rs"), field("main"));
    (draft.head_sha, draft.importance) = (field("abc"), Some(0.75));
    let id = place.put(prepared(draft, "key")).await;
    let stored = place.living(&id).await.expect("it is stored");
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

pub async fn a_store_admits_its_own_project_only<E: Engine>(place: Place<E>) {
    let id = place.put(note("maple")).await;
    let elsewhere = Scope { project: ProjectId::from_random([8; 8]), ..place.scope.clone() };
    assert!(place.store.memory(&elsewhere, &id).await.is_err());
    assert!(place.store.save(&elsewhere, vec![note("willow")], 1).await.is_err());
    assert_eq!(place.listed(&Filter::default()).await, ["maple"]);
}

/// A new message must not get an ordinal within a range that was already summarised.
pub async fn the_number_of_a_purged_message_is_not_given_again<E: Engine>(place: Place<E>) {
    let said = place.say("s", &["one", "two"]).await;
    place.forget(&[&said[1]], "f1").await;
    place.summarise("s", 0, 1).await;
    place.store.purge(&place.scope, "f1", 6).await.answered();
    let place = place.reopened();
    place.say("s", &["three"]).await;
    let ordinals: Vec<i64> = place.rows("s").await.iter().map(|row| row.ordinal).collect();
    assert_eq!(ordinals, [0, 2]);
    assert_eq!(place.summaries("s").await[0].summary.text, "one");
}
