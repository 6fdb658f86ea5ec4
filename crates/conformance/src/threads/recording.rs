//! Promises about recording turns and reading a thread.

use super::super::fixture::{Answered, Fixture};
use super::{block, copy, entry, hash, read, record, refused, said, texts, thread, turn, with_file};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::memory::{Kind, MemoryId, Role};
use tiro_base::thread::{BlockText, FilePlace, LedgerEntry, Part, Stat, Thread};
use tiro_store::*;

pub async fn a_turn_is_read_as_it_was_recorded(fixture: Fixture) {
    let ada = thread("s", "ada");
    assert_eq!(fixture.store.thread(&fixture.scope, &ada).await.answered(), None);
    let mut first = with_file(turn(&ada, 1), "src/b.rs", "fn b() {}\n");
    let opening = BlockText::Blob(hash("others said"), Some("others said".into()));
    first.blocks.insert(0, block(1, Part::Opening, None, opening));
    first.ledger[0].stat = Some(Stat { size: u64::MAX, mtime_ns: -5, ctime_ns: i64::MAX, inode: u64::MAX });
    first.ledger[0].raw = hash("with a secret");
    first.ledger.insert(0, entry("src/a.rs", "long", FilePlace::Overflow));
    (first.is_fixed, first.context) = (true, vec!["src".into(), "ü \"x\"\n".into()]);
    let second = turn(&ada, 2);
    let expected = Thread {
        epoch: 1,
        turns: 2,
        is_fixed: false,
        window: 1000,
        rules: 3,
        context: vec!["src".into()],
        blocks: [first.blocks.clone(), second.blocks.clone()].concat(),
        ledger: first.ledger.clone(),
        updated: Some(20),
    };
    let other = fixture.engine.open();
    let recorded = record(&fixture, &ada, first.clone()).await;
    assert_eq!((recorded.turn, recorded.receipt.outcomes.len(), recorded.evicted), (1, 3, 0));
    let read_first = other.thread(&fixture.scope, &ada).await.answered().expect("it is recorded");
    assert_eq!((&read_first.blocks, &read_first.context), (&first.blocks, &first.context));
    assert!(read_first.is_fixed);
    assert_eq!(record(&fixture, &ada, second).await.turn, 2);
    assert_eq!(other.thread(&fixture.scope, &ada).await.answered().as_ref(), Some(&expected));
    let fixture = fixture.reopened();
    assert_eq!(read(&fixture, &ada).await, expected);
    assert_eq!(
        (fixture.rows("s").await.len(), fixture.found("asks").await),
        (4, 4),
        "a message is found with the next"
    );
}

pub async fn the_ledger_comes_in_order_of_paths(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut first = turn(&ada, 1);
    first.ledger = ["b", "a/b", "c", "a"].map(|path| entry(path, "x", FilePlace::Overflow)).to_vec();
    record(&fixture, &ada, first).await;
    let paths: Vec<String> = read(&fixture, &ada).await.ledger.into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["a", "a/b", "b", "c"]);
}

pub async fn the_ledger_changes_with_its_turn(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut first = with_file(with_file(turn(&ada, 1), "a", "a one"), "b", "b one");
    first.ledger.push(entry("c", "c one", FilePlace::Overflow));
    record(&fixture, &ada, first.clone()).await;
    assert_eq!(read(&fixture, &ada).await.ledger.len(), 3);
    // Only the changes of `a` are sent, so its copy is none of the blocks.
    let mut second = turn(&ada, 2);
    let diff = BlockText::Blob(hash("+two"), Some("+two".into()));
    second.blocks.insert(0, block(2, Part::Change, Some("a"), diff));
    second.blobs = vec![(hash("a two"), "a two".into()), (hash("nobody's"), "nobody's".into())];
    second.ledger = vec![entry("a", "a two", FilePlace::Inline)];
    second.ledger.push(LedgerEntry { is_removed: true, ..entry("b", "b one", FilePlace::Inline) });
    second.ledger_removed = vec!["c".into()];
    record(&fixture, &ada, second.clone()).await;
    assert_eq!(read(&fixture, &ada).await.ledger, second.ledger);
    let fixture = fixture.reopened();
    assert_eq!(read(&fixture, &ada).await.ledger, second.ledger);
    assert_eq!(copy(&fixture, &ada, "a").await.as_deref(), Some("a two"));
    assert_eq!((copy(&fixture, &ada, "b").await, copy(&fixture, &ada, "c").await), (None, None));
}

pub async fn the_ledger_is_never_ahead_of_the_blocks(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut ahead = turn(&ada, 1);
    ahead.ledger = vec![entry("a", "text", FilePlace::Inline)];
    assert_eq!(refused(&fixture, &ada, ahead).await, ErrorKind::BadInput);
    record(&fixture, &ada, with_file(turn(&ada, 1), "a", "text")).await;
    // The next epoch has no block of the file, but the ledger still has it.
    let rebased = TurnRecord { epoch: 2, ..turn(&ada, 2) };
    assert_eq!(refused(&fixture, &ada, rebased.clone()).await, ErrorKind::BadInput);
    assert_eq!(read(&fixture, &ada).await.epoch, 1);
    record(&fixture, &ada, TurnRecord { ledger_removed: vec!["a".into()], ..rebased }).await;
}

/// A turn of which any part can't be stored leaves nothing behind, as a turn whose process is killed before the
/// transaction ends.
pub async fn a_turn_that_fails_stores_nothing(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut failing = with_file(turn(&ada, 1), "a", "a one");
    failing.ledger.push(entry("b", "b one", FilePlace::Inline));
    assert_eq!(refused(&fixture, &ada, failing.clone()).await, ErrorKind::BadInput);
    let mut unknown = turn(&ada, 1);
    unknown.answer = MemoryId::derive(Kind::Message, None, "unknown");
    assert_eq!(refused(&fixture, &ada, unknown).await, ErrorKind::NotFound);
    let mut wrong = turn(&ada, 1);
    wrong.blobs = vec![(hash("one"), "another".into())];
    assert_eq!(refused(&fixture, &ada, wrong).await, ErrorKind::Store);
    fixture.say("t", &["taken"]).await;
    let mut taken = turn(&ada, 1);
    taken.memories[1].id = fixture.rows("t").await[0].id.clone();
    taken.answer = taken.memories[1].id.clone();
    assert_eq!(refused(&fixture, &ada, taken).await, ErrorKind::BadInput);
    let fixture = fixture.reopened();
    assert_eq!((fixture.rows("s").await.len(), fixture.found("asks").await), (0, 0));
    assert_eq!(fixture.store.thread(&fixture.scope, &ada).await.answered(), None);
    assert!(fixture.store.threads(&fixture.scope, None).await.answered().is_empty());
    failing.ledger.pop();
    record(&fixture, &ada, failing).await;
    // The same holds for a later turn.
    let before = read(&fixture, &ada).await;
    let mut failing = with_file(turn(&ada, 2), "a", "a two");
    failing.ledger.push(entry("b", "b one", FilePlace::Inline));
    refused(&fixture, &ada, failing).await;
    assert_eq!((read(&fixture, &ada).await, fixture.rows("s").await.len()), (before, 2));
    assert_eq!(copy(&fixture, &ada, "a").await.as_deref(), Some("a one"));
}

pub async fn a_turn_continues_the_thread_of_its_prompt(fixture: Fixture) {
    let ada = thread("s", "ada");
    for epoch in [0, 2] {
        assert_eq!(refused(&fixture, &ada, TurnRecord { epoch, ..turn(&ada, 1) }).await, ErrorKind::Busy);
    }
    assert_eq!(refused(&fixture, &ada, turn(&ada, 2)).await, ErrorKind::Busy, "there is no first turn");
    record(&fixture, &ada, turn(&ada, 1)).await;
    assert_eq!(refused(&fixture, &ada, turn(&ada, 1)).await, ErrorKind::Busy);
    for epoch in [0, 3] {
        assert_eq!(refused(&fixture, &ada, TurnRecord { epoch, ..turn(&ada, 2) }).await, ErrorKind::Busy);
    }
    let repeated = TurnRecord { call_id: "call 1".into(), ..turn(&ada, 2) };
    assert_eq!(refused(&fixture, &ada, repeated).await, ErrorKind::BadInput);
    fixture.store.reset_thread(&fixture.scope, &ada, Reset::Files).await.answered();
    assert_eq!(refused(&fixture, &ada, turn(&ada, 2)).await, ErrorKind::Busy, "its files were removed");
    record(&fixture, &ada, TurnRecord { epoch: 2, ..turn(&ada, 2) }).await;
    fixture.store.reset_thread(&fixture.scope, &ada, Reset::Thread).await.answered();
    assert_eq!(refused(&fixture, &ada, TurnRecord { epoch: 2, ..turn(&ada, 3) }).await, ErrorKind::Busy);
}

pub async fn of_two_that_record_a_turn_one_does(fixture: Fixture) {
    let ada = thread("s", "ada");
    let other = fixture.engine.open();
    for number in 1..=4 {
        let mut second = turn(&ada, number);
        let question = said("s", &format!("another question {number}"), Role::User);
        (second.question, second.memories) = (question.id.clone(), vec![question, second.memories.remove(1)]);
        second.blocks.remove(0);
        second.call_id += " of another";
        let both = tokio::join!(
            fixture.store.record_turn(&fixture.scope, &ada, turn(&ada, number)),
            other.record_turn(&fixture.scope, &ada, second),
        );
        let [first, second] = [both.0, both.1].map(|recorded| recorded.map_err(|error| error.kind()).err());
        assert!(matches!((first, second), (None, Some(ErrorKind::Busy)) | (Some(ErrorKind::Busy), None)));
        assert_eq!(fixture.rows("s").await.len(), 2 * number as usize, "the other's question is not stored");
    }
    assert_eq!(read(&fixture, &ada).await.turns, 4);
}

pub async fn a_new_epoch_replaces_the_blocks_of_the_last(fixture: Fixture) {
    let ada = thread("s", "ada");
    record(&fixture, &ada, with_file(with_file(turn(&ada, 1), "a", "a one"), "b", "b one")).await;
    assert_eq!(read(&fixture, &ada).await.blocks.len(), 4);
    let mut rebased = turn(&ada, 2);
    rebased.epoch = 2;
    // The texts of the file and of the first answer are not sent again by the caller: they are stored.
    rebased.blocks.insert(0, turn(&ada, 1).blocks.remove(1));
    rebased.blocks.insert(0, block(2, Part::File, Some("b"), BlockText::Blob(hash("b one"), None)));
    rebased.ledger_removed = vec!["a".into()];
    record(&fixture, &ada, rebased).await;
    assert_eq!(texts(&fixture, &ada).await, ["b one", "ada says 1", "ada asks 2", "ada says 2"]);
    assert_eq!((read(&fixture, &ada).await.epoch, read(&fixture, &ada).await.ledger.len()), (2, 1));
    assert_eq!(copy(&fixture, &ada, "b").await.as_deref(), Some("b one"));
    let turns = fixture.store.turns(&fixture.scope, &ada, 9).await.answered();
    assert_eq!(turns.iter().map(|turn| turn.epoch).collect::<Vec<_>>(), [2, 1]);
}
