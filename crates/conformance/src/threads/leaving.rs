//! Promises about lists of threads and turns, resetting, forgetting, space, and scopes.

use super::super::fixture::{Answered, Fixture, name};
use super::{block, copy, entry, hash, read, record, refused, texts, thread, turn, with_file};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::thread::{BlockText, ContentHash, FilePlace, LedgerEntry, Part, Spent, ThreadName};
use tiro_store::*;

pub async fn a_repeated_call_finds_its_turn(fixture: Fixture) {
    let ada = thread("s", "ada");
    let by_call = async |call: &str| fixture.store.turn_by_call(&fixture.scope, &ada, call).await.answered();
    assert_eq!(by_call("call 1").await, None);
    let (first, mut second) = (turn(&ada, 1), turn(&ada, 2));
    second.receipt = "x".repeat(TurnRecord::LONGEST_RECEIPT + 1);
    record(&fixture, &ada, first.clone()).await;
    record(&fixture, &ada, second).await;
    let fixture = fixture.reopened();
    let by_call = async |call: &str| fixture.store.turn_by_call(&fixture.scope, &ada, call).await.answered();
    let row = by_call("call 1").await.expect("it was recorded");
    assert_eq!((row.number, row.epoch, row.time, row.call_id.as_str()), (1, 1, 10, "call 1"));
    assert_eq!((row.question, row.answer), (Some(first.question), Some(first.answer)));
    assert_eq!((row.answer_text.as_deref(), row.model.as_str()), (Some("ada says 1"), "o3"));
    assert_eq!((row.spent, row.receipt), (first.spent, Some(first.receipt)));
    let row = by_call("call 2").await.expect("it was recorded");
    assert_eq!((row.answer_text.as_deref(), row.receipt), (Some("ada says 2"), None), "it is too long");
    assert_eq!(by_call("call 3").await, None);
    let other = fixture.store.turn_by_call(&fixture.scope, &thread("s", "bob"), "call 1").await.answered();
    assert_eq!(other, None, "a call is of one thread");
}

/// Records three turns of a thread.
async fn three_turns(fixture: &Fixture) -> ThreadName {
    let ada = thread("s", "ada");
    for number in 1..=3 {
        record(fixture, &ada, turn(&ada, number)).await;
    }
    ada
}

async fn numbers(fixture: &Fixture, thread: &ThreadName, limit: usize) -> Vec<u32> {
    let turns = fixture.store.turns(&fixture.scope, thread, limit).await.answered();
    turns.into_iter().map(|turn| turn.number).collect()
}

pub async fn turns_come_latest_first(fixture: Fixture) {
    let ada = three_turns(&fixture).await;
    assert_eq!(numbers(&fixture, &ada, 9).await, [3, 2, 1]);
    assert!(numbers(&fixture, &thread("s", "bob"), 9).await.is_empty());
}

pub async fn turns_are_as_many_as_asked_for(fixture: Fixture) {
    let ada = three_turns(&fixture).await;
    assert_eq!(numbers(&fixture, &ada, 2).await, [3, 2]);
    assert!(numbers(&fixture, &ada, 0).await.is_empty());
}

pub async fn threads_come_latest_first_with_their_counts(fixture: Fixture) {
    let [ada, bob, other] = [("s", "ada"), ("s", "bob"), ("t", "ada")].map(|(s, a)| thread(s, a));
    record(&fixture, &bob, turn(&bob, 1)).await;
    record(&fixture, &ada, turn(&ada, 1)).await;
    let mut second = with_file(with_file(turn(&ada, 2), "a", "a one"), "b", "b one");
    second.ledger[1].is_removed = true;
    second.ledger.push(entry("c", "c one", FilePlace::Overflow));
    second.is_fixed = true;
    record(&fixture, &ada, second).await;
    let mut elsewhere = turn(&other, 1);
    (elsewhere.time, elsewhere.window) = (30, 9);
    record(&fixture, &other, elsewhere).await;
    let listed = fixture.store.threads(&fixture.scope, None).await.answered();
    let names: Vec<_> = listed.iter().map(|row| row.name.clone()).collect();
    assert_eq!(names, [other.clone(), ada.clone(), bob.clone()]);
    let expected = ThreadRow {
        name: ada,
        epoch: 1,
        turns: 2,
        is_fixed: true,
        window: 1000,
        files_inline: 1,
        files_overflow: 1,
        tokens: 18,
        first: 10,
        last: 20,
        spent: Spent { prompt: 14, appended: 10, whole: 12, input: 16, cached: 4, output: 2, micros: 18 },
    };
    assert_eq!(listed[1], expected);
    assert_eq!((listed[0].window, listed[0].tokens, listed[0].first), (9, 6, 30));
    let of_one = fixture.store.threads(&fixture.scope, Some(&name("s"))).await.answered();
    assert_eq!(of_one, listed[1..]);
    assert!(fixture.store.threads(&fixture.scope, Some(&name("u"))).await.answered().is_empty());
}

/// Records turns of three assistants in turn; returns the thread with `ada`.
async fn three_assistants(fixture: &Fixture) -> ThreadName {
    for number in 1..=2 {
        for (assistant, place_in_time) in [("ada", 0), ("bob", 1), ("eve", 2)] {
            let name = thread("s", assistant);
            let mut turn = turn(&name, number);
            turn.time += place_in_time;
            record(fixture, &name, turn).await;
        }
    }
    thread("s", "ada")
}

/// Returns the answers of others than `assistant` since its last turn.
async fn others(fixture: &Fixture, assistant: &str, limit: usize) -> Vec<String> {
    let name = thread("s", assistant);
    let found = fixture.store.other_exchanges(&fixture.scope, &name, limit).await.answered();
    assert!(found.iter().all(|one| one.answer.replace("says", "asks") == one.question));
    assert!(found.iter().all(|one| one.answer.starts_with(&one.assistant)));
    found.into_iter().map(|one| one.answer).collect()
}

pub async fn exchanges_with_others_come_earliest_first(fixture: Fixture) {
    three_assistants(&fixture).await;
    let all = ["ada says 1", "bob says 1", "eve says 1", "ada says 2", "bob says 2", "eve says 2"];
    assert_eq!(others(&fixture, "max", 9).await, all);
    assert_eq!(others(&fixture, "max", 5).await, all[1..]);
    let answer = turn(&thread("s", "bob"), 2).answer;
    fixture.forget(&[&answer], "f1").await;
    assert_eq!(others(&fixture, "max", 9).await, [all[0], all[1], all[2], all[3], all[5]]);
}

pub async fn the_exchanges_since_the_last_turn_are_shown(fixture: Fixture) {
    three_assistants(&fixture).await;
    assert_eq!(others(&fixture, "ada", 9).await, ["bob says 2", "eve says 2"]);
    assert_eq!(others(&fixture, "ada", 1).await, ["eve says 2"]);
    assert!(others(&fixture, "eve", 9).await.is_empty());
    // A process whose clock is ten years ahead, and another whose clock is as far behind, hide nothing of what follows.
    for (assistant, number, years) in [("ada", 3, 10), ("bob", 3, -10), ("eve", 3, 0)] {
        let name = thread("s", assistant);
        let mut turn = turn(&name, number);
        turn.time += years * 365 * 24 * 60 * 60 * 1000;
        record(&fixture, &name, turn).await;
    }
    assert_eq!(others(&fixture, "ada", 9).await, ["bob says 3", "eve says 3"]);
    assert_eq!(others(&fixture, "bob", 9).await, ["eve says 3"]);
}

pub async fn files_are_reset_without_the_exchanges(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut first = with_file(turn(&ada, 1), "a", "a one");
    let text = |text: &str| BlockText::Blob(hash(text), Some(text.into()));
    first.blocks.insert(0, block(1, Part::Opening, None, text("others said")));
    first.blocks.push(block(1, Part::Note, None, text("search b")));
    first.blocks.push(block(1, Part::Removal, Some("c"), text("c is gone")));
    first.ledger.push(entry("b", "b one", FilePlace::Overflow));
    first.ledger.push(LedgerEntry { is_removed: true, ..entry("c", "c", FilePlace::Inline) });
    first.is_fixed = true;
    record(&fixture, &ada, first).await;
    let done = fixture.store.reset_thread(&fixture.scope, &ada, Reset::Files).await.answered();
    assert_eq!((done.files, done.blocks, done.turns), (3, 3, 0));
    let fixture = fixture.reopened();
    let after = read(&fixture, &ada).await;
    assert_eq!((after.epoch, after.turns, after.is_fixed, after.ledger.len()), (2, 1, false, 0));
    assert_eq!(after.context, turn(&ada, 1).context);
    assert_eq!(texts(&fixture, &ada).await, ["others said", "ada asks 1", "ada says 1"]);
    assert_eq!(copy(&fixture, &ada, "a").await, None);
    let again = TurnRecord { epoch: 2, ..with_file(turn(&ada, 2), "a", "a one") };
    record(&fixture, &ada, again).await;
    assert_eq!(texts(&fixture, &ada).await[3..], ["a one", "ada asks 2", "ada says 2"]);
}

pub async fn messages_outlive_their_thread(fixture: Fixture) {
    let (ada, bob) = (thread("s", "ada"), thread("s", "bob"));
    record(&fixture, &ada, with_file(turn(&ada, 1), "a", "a one")).await;
    record(&fixture, &bob, with_file(turn(&bob, 1), "a", "a one")).await;
    let done = fixture.store.reset_thread(&fixture.scope, &ada, Reset::Thread).await.answered();
    assert_eq!((done.files, done.blocks, done.turns), (1, 3, 1));
    assert_eq!(fixture.store.thread(&fixture.scope, &ada).await.answered(), None);
    assert_eq!(fixture.store.turn_by_call(&fixture.scope, &ada, "call 1").await.answered(), None);
    assert!(fixture.store.reset_thread(&fixture.scope, &ada, Reset::Thread).await.is_err(), "there is none");
    assert_eq!((fixture.rows("s").await.len(), fixture.found("asks").await), (4, 4));
    assert_eq!(texts(&fixture, &bob).await[0], "a one", "another thread needs the text");
    let mut anew = turn(&ada, 1);
    anew.call_id = "call 1".into();
    assert_eq!(record(&fixture, &ada, anew).await.turn, 1);
}

pub async fn a_forgotten_message_has_no_text_in_its_thread(fixture: Fixture) {
    let (ada, bob) = (thread("s", "ada"), thread("s", "bob"));
    let first = turn(&ada, 1);
    record(&fixture, &ada, first.clone()).await;
    // Another assistant was told of it.
    let mut told = turn(&bob, 1);
    let text = BlockText::Blob(hash("ada was asked"), Some("ada was asked".into()));
    told.blocks.insert(0, block(1, Part::Opening, None, text));
    record(&fixture, &bob, told).await;
    let by_call = async |fixture: &Fixture| {
        let row = fixture.store.turn_by_call(&fixture.scope, &ada, "call 1").await.answered();
        row.expect("it was recorded")
    };
    let before = by_call(&fixture).await;
    // The memory that is derived from both messages is forgotten with them.
    assert_eq!(fixture.forget(&[&first.question], "f1").await.ids.len(), 2);
    let row = by_call(&fixture).await;
    assert_eq!((row.question, row.receipt), (None, None), "the receipt may quote the question");
    assert_eq!(texts(&fixture, &bob).await, ["bob asks 1", "bob says 1"], "the note quotes the question");
    assert_eq!(row.answer_text.as_deref(), Some("ada says 1"));
    fixture.forget(&[&first.answer], "f2").await;
    let fixture = fixture.reopened();
    assert_eq!(texts(&fixture, &ada).await, ["-", "-"]);
    assert_eq!(by_call(&fixture).await.answer_text, None);
    fixture.undo().await;
    fixture.undo().await;
    assert_eq!(texts(&fixture, &ada).await, ["ada asks 1", "ada says 1"]);
    assert_eq!(by_call(&fixture).await, before);
}

pub async fn a_purged_message_leaves_its_thread(fixture: Fixture) {
    let ada = thread("s", "ada");
    let mut first = turn(&ada, 1);
    first.receipt = "{\"quoted\": \"qwzxv\"}".into();
    record(&fixture, &ada, first.clone()).await;
    record(&fixture, &ada, turn(&ada, 2)).await;
    assert!(fixture.engine.holds("qwzxv"));
    fixture.forget(&[&first.question], "f1").await;
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    let fixture = fixture.reopened();
    assert!(!fixture.engine.holds("qwzxv"));
    assert_eq!(texts(&fixture, &ada).await, ["ada says 1", "ada asks 2", "ada says 2"]);
    let turns = fixture.store.turns(&fixture.scope, &ada, 9).await.answered();
    assert_eq!((turns[1].question.as_ref(), turns[1].answer.as_ref()), (None, Some(&first.answer)));
    assert_eq!((turns[1].receipt.as_ref(), turns[1].spent), (None, first.spent));
    assert!(turns[0].receipt.is_some());
    // A prompt that was made before the purge leaves the message out.
    let mut late = TurnRecord { epoch: 2, ..turn(&ada, 3) };
    late.blocks.splice(0..0, first.blocks);
    record(&fixture, &ada, late).await;
    assert_eq!(texts(&fixture, &ada).await, ["ada says 1", "ada asks 3", "ada says 3"]);
}

pub async fn a_purged_session_takes_its_threads(fixture: Fixture) {
    let [ada, other] = [thread("s", "ada"), thread("t", "ada")];
    let mut first = with_file(turn(&ada, 1), "src/qwzxv.rs", "fn a() {}");
    first.context = vec!["a qwzxv".into()];
    record(&fixture, &ada, first).await;
    let mut elsewhere = with_file(turn(&other, 1), "a", "fn a() {}");
    elsewhere.memories.iter_mut().for_each(|memory| memory.draft.session = Some(name("t")));
    record(&fixture, &other, elsewhere).await;
    let selection = Selection::Session(name("s"));
    fixture.store.forget_for_good(&fixture.scope, &selection, "p1", 6).await.answered();
    let fixture = fixture.reopened();
    assert_eq!(fixture.store.thread(&fixture.scope, &ada).await.answered(), None);
    assert!(!fixture.engine.holds("qwzxv"));
    assert_eq!(texts(&fixture, &other).await[0], "fn a() {}");
    // Forgetting and purging in two steps has the same effect.
    fixture.forget_session("t", "f1").await;
    assert_eq!(texts(&fixture, &other).await[1..], ["-", "-"]);
    fixture.store.purge(&fixture.scope, "f1", 6).await.answered();
    assert_eq!(fixture.store.thread(&fixture.scope, &other).await.answered(), None);
}

/// Returns a text of about 3 kB that can't be compressed to less than 1.5 kB.
fn random(seed: u8) -> String {
    let mut bytes = [0; 1500];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub async fn texts_of_threads_used_longest_ago_make_room(fixture: Fixture) {
    let room = async |fixture: &Fixture, thread: &ThreadName, number, file: &str, time, max_blob_bytes| {
        let turn = with_file(turn(thread, number), file, &random(file.as_bytes()[0]));
        record(fixture, thread, TurnRecord { time, max_blob_bytes, ..turn }).await
    };
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|assistant| thread("s", assistant));
    assert_eq!(room(&fixture, &ada, 1, "a", 10, 6000).await.evicted, 0);
    assert_eq!(room(&fixture, &bob, 1, "b", 20, 6000).await.evicted, 0);
    assert_eq!(room(&fixture, &ada, 2, "c", 30, 6000).await.evicted, 0);
    // The thread with `bob` was used longest ago.
    let recorded = room(&fixture, &eve, 1, "d", 40, 6000).await;
    assert_eq!(recorded.evicted, 1);
    assert!((1500..3000).contains(&recorded.evicted_bytes), "{recorded:?}");
    let fixture = fixture.reopened();
    assert_eq!(texts(&fixture, &bob).await, ["-", "bob asks 1", "bob says 1"]);
    assert_eq!(copy(&fixture, &bob, "b").await, None);
    assert!(!texts(&fixture, &ada).await.contains(&"-".into()));
    // A text that is sent again is kept again. The present thread loses its texts last.
    let recorded = room(&fixture, &bob, 2, "b", 5, 2000).await;
    assert_eq!(recorded.evicted, 3);
    assert_eq!(copy(&fixture, &bob, "b").await, Some(random(b'b')));
    assert_eq!(texts(&fixture, &bob).await[0], random(b'b'));
    assert_eq!(copy(&fixture, &ada, "a").await, None);
    assert_eq!(room(&fixture, &eve, 2, "e", 50, 100).await.evicted, 2, "also its own");
}

pub async fn a_copy_stays_as_long_as_a_thread_needs_it(fixture: Fixture) {
    let (ada, bob) = (thread("s", "ada"), thread("s", "bob"));
    record(&fixture, &ada, with_file(turn(&ada, 1), "a", "a one")).await;
    // The text is stored already, so the caller need not pass it.
    let mut same = with_file(turn(&bob, 1), "other/a", "a one");
    same.blocks[0].text = BlockText::Blob(hash("a one"), None);
    record(&fixture, &bob, same).await;
    assert_eq!(copy(&fixture, &bob, "other/a").await.as_deref(), Some("a one"));
    fixture.store.reset_thread(&fixture.scope, &ada, Reset::Thread).await.answered();
    assert_eq!(copy(&fixture, &bob, "other/a").await.as_deref(), Some("a one"));
    fixture.store.reset_thread(&fixture.scope, &bob, Reset::Files).await.answered();
    // No thread needs the text any more, so it is gone.
    let mut again = with_file(TurnRecord { epoch: 2, ..turn(&bob, 2) }, "a", "a one");
    again.blocks[0].text = BlockText::Blob(hash("a one"), None);
    record(&fixture, &bob, again).await;
    assert_eq!(texts(&fixture, &bob).await[2], "-");
}

/// Returns different hashes with different counts.
fn counts(from: u32, until: u32) -> Vec<(ContentHash, u32)> {
    (from..until).map(|number| (hash(&number.to_string()), number)).collect()
}

pub async fn a_noted_count_of_tokens_is_known(fixture: Fixture) {
    fixture.store.note_token_counts(&fixture.scope, &counts(1, 4)).await.answered();
    fixture.store.note_token_counts(&fixture.scope, &[(hash("2"), 9)]).await.answered();
    let fixture = fixture.reopened();
    let hashes = ["1", "2", "7"].map(hash);
    let known = fixture.store.token_counts(&fixture.scope, &hashes).await.answered();
    assert_eq!(known, [(hash("1"), 1), (hash("2"), 9)].into());
}

pub async fn new_counts_of_tokens_replace_the_oldest(fixture: Fixture) {
    // In tests, a thousand counts are kept.
    for from in [0, 600] {
        fixture.store.note_token_counts(&fixture.scope, &counts(from, from + 600)).await.answered();
    }
    let hashes: Vec<ContentHash> = counts(0, 1200).into_iter().map(|(hash, _)| hash).collect();
    let known = fixture.store.token_counts(&fixture.scope, &hashes).await.answered();
    assert_eq!(known, counts(200, 1200).into_iter().collect());
}

pub async fn an_owner_has_no_thread_of_another(fixture: Fixture) {
    let ada = thread("s", "ada");
    record(&fixture, &ada, with_file(turn(&ada, 1), "a", "a one")).await;
    fixture.store.note_token_counts(&fixture.scope, &counts(1, 2)).await.answered();
    let (store, stranger) = (&fixture.store, fixture.stranger());
    assert_eq!(store.thread(&stranger, &ada).await.answered(), None);
    assert_eq!(store.turn_by_call(&stranger, &ada, "call 1").await.answered(), None);
    assert!(store.turns(&stranger, &ada, 9).await.answered().is_empty());
    assert!(store.threads(&stranger, None).await.answered().is_empty());
    assert!(store.other_exchanges(&stranger, &thread("s", "bob"), 9).await.answered().is_empty());
    assert!(store.copies(&stranger, &ada, vec!["a".into()]).await.is_err());
    assert!(store.reset_thread(&stranger, &ada, Reset::Thread).await.is_err());
    assert!(store.token_counts(&stranger, &[hash("1")]).await.answered().is_empty());
    // The other owner has a thread of the same name, but no text of the first.
    let mut same = with_file(turn(&ada, 1), "a", "a one");
    same.blocks[0].text = BlockText::Blob(hash("a one"), None);
    store.record_turn(&stranger, &ada, same).await.answered();
    assert!(store.copies(&stranger, &ada, vec!["a".into()]).await.answered().is_empty());
    store.reset_thread(&stranger, &ada, Reset::Thread).await.answered();
    assert_eq!(texts(&fixture, &ada).await[0], "a one");
}

pub async fn a_thread_is_reached_by_an_alias_of_its_session(fixture: Fixture) {
    let (ada, by_alias) = (thread("s", "ada"), thread("uuid", "ada"));
    record(&fixture, &ada, with_file(turn(&ada, 1), "a", "a one")).await;
    let origin = Origin { aliases: vec!["uuid".into()], ..Origin::default() };
    fixture.store.describe_session(&fixture.scope, &name("s"), origin).await.answered();
    assert_eq!(
        fixture.store.thread(&fixture.scope, &by_alias).await.answered(),
        Some(read(&fixture, &ada).await)
    );
    // The messages of a turn are stored under the session's name, also where the scope has only the alias.
    fixture.store.record_turn(&fixture.only(&["uuid"]), &by_alias, turn(&by_alias, 2)).await.answered();
    assert_eq!((fixture.rows("s").await.len(), read(&fixture, &ada).await.turns), (4, 2));
    assert_eq!(fixture.store.sessions(&fixture.scope, 0, 9).await.answered().len(), 1);
    let listed = fixture.store.threads(&fixture.scope, Some(&name("uuid"))).await.answered();
    assert_eq!(listed.iter().map(|row| &row.name).collect::<Vec<_>>(), [&ada]);
    let found = fixture.store.other_exchanges(&fixture.scope, &thread("uuid", "bob"), 9).await.answered();
    assert_eq!(found.len(), 2);
    fixture.store.reset_thread(&fixture.scope, &by_alias, Reset::Thread).await.answered();
    assert_eq!(fixture.store.thread(&fixture.scope, &ada).await.answered(), None);
}

pub async fn a_thread_is_in_the_scope_of_its_session(fixture: Fixture) {
    let [ada, other] = [thread("s", "ada"), thread("t", "ada")];
    record(&fixture, &ada, turn(&ada, 1)).await;
    let (store, narrow) = (&fixture.store, fixture.only(&["t"]));
    assert_eq!(store.thread(&narrow, &ada).await.answered(), None);
    assert!(store.threads(&narrow, None).await.answered().is_empty());
    assert!(store.reset_thread(&narrow, &ada, Reset::Files).await.is_err());
    let outside = store.record_turn(&narrow, &thread("u", "ada"), turn(&thread("u", "ada"), 1)).await;
    assert_eq!(outside.expect_err("the scope doesn't have it").kind(), ErrorKind::NotFound);
    let mut elsewhere = turn(&other, 1);
    elsewhere.time = 70;
    store.record_turn(&narrow, &other, elsewhere).await.answered();
    let names = async |scope| {
        let listed = store.threads(scope, None).await.answered();
        listed.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&narrow).await, std::slice::from_ref(&other));
    assert_eq!(names(&fixture.scope).await, [other, ada.clone()]);
    assert_eq!(refused(&fixture, &ada, turn(&ada, 1)).await, ErrorKind::Busy);
}
