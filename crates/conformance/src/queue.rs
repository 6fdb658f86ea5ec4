//! Promises about state that processes share: the queue of summaries, leases (measured by the store's clock), and
//! the cursors of imports.

use futures_util::future::join_all;
use std::sync::Arc;

use super::fixture::{Answered, Fixture, HOUR, name, wanted};
use tiro_base::memory::{Level, Millis};
use tiro_store::*;

const LEASE: Millis = 120_000;

/// Opens a session `s` of two messages.
async fn begin(fixture: &Fixture) {
    fixture.say("s", &["one", "two"]).await;
    fixture.store.clock().set(1);
}

async fn enqueue(fixture: &Fixture, wanted: Wanted, now: Millis) {
    fixture.store.enqueue(&fixture.scope, wanted, now, now).await.answered();
}

/// Takes the next entry, after setting the store's clock to `now`.
async fn take(fixture: &Fixture, holder: &str, now: Millis) -> Option<Queued> {
    fixture.store.clock().set(now);
    fixture.store.next_queued(&fixture.scope, holder, LEASE, now).await.answered()
}

async fn fail(fixture: &Fixture, entry: QueueKey, holder: &str, not_before: Millis, now: Millis) {
    fixture.store.fail(&fixture.scope, entry, holder, "no answer", not_before, now).await.answered();
}

async fn counts(fixture: &Fixture) -> QueueCounts {
    fixture.store.queue_counts(&fixture.scope).await.answered()
}

pub async fn requests_of_the_user_come_first_then_the_oldest(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::Program), 0).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    enqueue(&fixture, wanted(Level::Detailed, AskedBy::User), 0).await;
    let mut levels = Vec::new();
    while let Some(queued) = take(&fixture, "p1", 1).await {
        assert_eq!(queued.tries, 0);
        levels.push(queued.wanted.level);
    }
    assert_eq!(levels, [Level::Standard, Level::Detailed, Level::Brief]);
}

pub async fn an_entry_waits_for_its_date(fixture: Fixture) {
    begin(&fixture).await;
    let request = wanted(Level::Brief, AskedBy::Program);
    fixture.store.enqueue(&fixture.scope, request, 100, 0).await.answered();
    let is_due = async |now| fixture.store.is_queue_due(&fixture.scope, now).await.answered();
    assert!(!is_due(99).await && take(&fixture, "p1", 99).await.is_none());
    assert!(is_due(100).await && take(&fixture, "p1", 100).await.is_some());
    assert!(!is_due(100).await, "the only entry is taken");
}

pub async fn several_holders_take_several_entries(fixture: Fixture) {
    begin(&fixture).await;
    for level in [Level::Brief, Level::Standard, Level::Detailed] {
        enqueue(&fixture, wanted(level, AskedBy::Program), 0).await;
    }
    let handles: Vec<Arc<dyn Store>> = (0..4).map(|_| fixture.engine.open()).collect();
    let takers = handles.iter().enumerate().map(async |(number, handle)| {
        handle.clock().set(1);
        let holder = format!("p{number}");
        handle.next_queued(&fixture.scope, &holder, LEASE, 1).await.answered()
    });
    let taken = join_all(takers).await;
    let mut keys: Vec<QueueKey> = taken.into_iter().flatten().map(|queued| queued.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), counts(&fixture).await.processing), (3, 3));
    assert_eq!(take(&fixture, "p5", 1).await, None, "all are held");
}

pub async fn a_dead_holder_loses_its_entry(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    let first = take(&fixture, "p1", 1).await.expect("it is due");
    assert_eq!(take(&fixture, "p2", 2).await, None, "it is held");
    // Two minutes later its lease has ended.
    let again = take(&fixture, "p2", 200_000).await.expect("its lease is over");
    assert_eq!((again.key, again.tries), (first.key, 1));
}

pub async fn a_holder_that_lost_its_entry_ends_nothing(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    let first = take(&fixture, "p1", 1).await.expect("it is due");
    take(&fixture, "p2", 200_000).await.expect("its lease is over");
    fixture.store.finish(&fixture.scope, first.key, "p1", 200_001).await.answered();
    fail(&fixture, first.key, "p1", 0, 200_001).await;
    fixture.store.drop_queued(&fixture.scope, first.key, "p1").await.answered();
    assert_eq!(counts(&fixture).await, QueueCounts { processing: 1, ..QueueCounts::default() });
}

pub async fn a_failed_entry_waits_until_its_date(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::Program), 0).await;
    let entry = take(&fixture, "p1", 1).await.expect("it is due").key;
    fail(&fixture, entry, "p1", 300_000, 2).await;
    // While the failed entry waits, other entries are taken.
    let other = take(&fixture, "p1", 3).await.expect("it is due");
    assert_eq!(other.wanted.level, Level::Brief);
    fixture.store.finish(&fixture.scope, other.key, "p1", 4).await.answered();
    assert_eq!(take(&fixture, "p1", 250_000).await, None);
    let again = take(&fixture, "p1", 300_000).await.expect("it is due again");
    assert_eq!((again.key, again.tries), (entry, 1));
}

pub async fn an_entry_is_given_up_after_five_tries(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    let mut now = 1;
    while let Some(queued) = take(&fixture, "p2", now).await {
        assert!(queued.tries < 5 && queued.tries == now - 1, "{queued:?}");
        fail(&fixture, queued.key, "p2", now, now).await;
        now += 1;
    }
    assert_eq!(counts(&fixture).await, QueueCounts { failed: 1, ..QueueCounts::default() });
}

/// An entry also counts as failed if every process that takes it dies.
pub async fn an_entry_that_was_left_five_times_is_given_up(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    for tries in 0..5 {
        let queued = take(&fixture, "p1", 1 + tries * 200_000).await.expect("its lease is over");
        assert_eq!(queued.tries, tries);
    }
    assert_eq!(take(&fixture, "p1", 1_200_000).await, None);
    assert_eq!(counts(&fixture).await, QueueCounts { failed: 1, ..QueueCounts::default() });
}

pub async fn a_second_request_revives_an_entry_that_was_given_up(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 0).await;
    for now in 1..=5 {
        let queued = take(&fixture, "p1", now).await.expect("it is tried five times");
        fail(&fixture, queued.key, "p1", now, now).await;
    }
    assert_eq!(counts(&fixture).await.failed, 1);
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), 9).await;
    assert_eq!(take(&fixture, "p1", 9).await.map(|queued| queued.tries), Some(0));
    assert_eq!(counts(&fixture).await, QueueCounts { processing: 1, ..QueueCounts::default() });
}

pub async fn a_longer_range_takes_the_place_of_a_shorter(fixture: Fixture) {
    begin(&fixture).await;
    let short = |asked_by| Wanted { last: 0, ..wanted(Level::Brief, asked_by) };
    enqueue(&fixture, short(AskedBy::Program), 0).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::Program), 0).await;
    assert_eq!(counts(&fixture).await.pending, 1);
    // A request made by the user is kept.
    enqueue(&fixture, short(AskedBy::User), 0).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::Program), 0).await;
    assert_eq!(counts(&fixture).await.pending, 2);
}

pub async fn finished_and_dropped_entries_are_over(fixture: Fixture) {
    begin(&fixture).await;
    for level in [Level::Brief, Level::Standard] {
        enqueue(&fixture, wanted(level, AskedBy::Program), 0).await;
    }
    let first = take(&fixture, "p1", 1).await.expect("it is due").key;
    let second = take(&fixture, "p1", 1).await.expect("it is due").key;
    fixture.store.finish(&fixture.scope, first, "p1", 2).await.answered();
    fixture.store.drop_queued(&fixture.scope, second, "p1").await.answered();
    assert_eq!(counts(&fixture).await, QueueCounts { completed: 1, ..QueueCounts::default() });
    assert_eq!(take(&fixture, "p1", 900_000).await, None);
}

pub async fn a_request_names_a_session_of_the_scope(fixture: Fixture) {
    begin(&fixture).await;
    let unknown = Wanted { session: name("unknown"), ..wanted(Level::Brief, AskedBy::User) };
    assert!(fixture.store.enqueue(&fixture.scope, unknown, 0, 0).await.is_err());
    let request = wanted(Level::Brief, AskedBy::User);
    assert!(fixture.store.enqueue(&fixture.stranger(), request, 0, 0).await.is_err());
}

pub async fn a_scope_of_sessions_takes_its_own_entries(fixture: Fixture) {
    begin(&fixture).await;
    fixture.say("other", &["one", "two"]).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::User), 0).await;
    let scope = fixture.only(&["other"]);
    assert_eq!(fixture.store.next_queued(&scope, "p1", LEASE, 1).await.answered(), None);
    let other = Wanted { session: name("other"), ..wanted(Level::Brief, AskedBy::Program) };
    enqueue(&fixture, other.clone(), 0).await;
    let taken = fixture.store.next_queued(&scope, "p1", LEASE, 1).await.answered();
    assert_eq!(taken.map(|queued| queued.wanted), Some(other));
}

pub async fn an_owner_takes_no_entry_of_another(fixture: Fixture) {
    begin(&fixture).await;
    enqueue(&fixture, wanted(Level::Brief, AskedBy::User), 0).await;
    let (store, stranger) = (&fixture.store, fixture.stranger());
    assert!(!store.is_queue_due(&stranger, 1).await.answered());
    assert_eq!(store.next_queued(&stranger, "p1", LEASE, 1).await.answered(), None);
    assert_eq!(store.queue_counts(&stranger).await.answered(), QueueCounts::default());
    let entry = take(&fixture, "p1", 1).await.expect("it is due").key;
    store.drop_queued(&stranger, entry, "p1").await.answered();
    assert_eq!(counts(&fixture).await.processing, 1);
}

/// No caller postpones an entry by more than a day, so a later date was written with a wrong clock.
pub async fn a_clock_that_is_set_back_holds_up_no_entry(fixture: Fixture) {
    begin(&fixture).await;
    let year = 365 * 24 * HOUR;
    enqueue(&fixture, wanted(Level::Standard, AskedBy::User), year).await;
    let first = take(&fixture, "p1", year).await.expect("it is due");
    enqueue(&fixture, wanted(Level::Detailed, AskedBy::User), year).await;
    let mut levels = Vec::new();
    while let Some(queued) = take(&fixture, "p2", 5).await {
        levels.push(queued.wanted.level);
    }
    assert_eq!(levels, [Level::Standard, Level::Detailed], "neither waits for the wrong date");
    fixture.store.finish(&fixture.scope, first.key, "p1", 6).await.answered();
    assert_eq!(counts(&fixture).await.completed, 0);
}

const MINUTE: Millis = 60_000;
const BEGAN: Millis = 1_000_000;

/// Sets the store's clock to `now` and asks for the lease `work` for a minute.
async fn lease(fixture: &Fixture, holder: &str, now: Millis) -> bool {
    fixture.store.clock().set(now);
    fixture.store.lease(&fixture.scope, "work", holder, MINUTE).await.answered()
}

pub async fn a_lease_has_one_holder(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    assert!(!lease(&fixture, "p2", BEGAN).await);
    let other = fixture.engine.open();
    other.clock().set(BEGAN);
    assert!(!other.lease(&fixture.scope, "work", "p2", MINUTE).await.answered(), "other handles see it");
    assert!(lease(&fixture, "p1", BEGAN).await, "a holder may renew its lease");
}

pub async fn of_several_that_ask_at_once_one_gets_the_lease(fixture: Fixture) {
    let handles: Vec<Arc<dyn Store>> = (0..6).map(|_| fixture.engine.open()).collect();
    let asked = handles.iter().enumerate().map(async |(number, handle)| {
        handle.clock().set(BEGAN);
        handle.lease(&fixture.scope, "work", &format!("p{number}"), MINUTE).await.answered()
    });
    let granted = join_all(asked).await;
    assert_eq!(granted.iter().filter(|is_granted| **is_granted).count(), 1, "{granted:?}");
}

pub async fn a_lease_ends_by_the_clock_of_the_store(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    assert!(!lease(&fixture, "p2", BEGAN + MINUTE - 1).await);
    assert!(lease(&fixture, "p2", BEGAN + MINUTE).await);
    assert!(!lease(&fixture, "p1", BEGAN + MINUTE).await, "another holder has it now");
}

pub async fn a_renewal_lasts_from_its_own_time(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    assert!(lease(&fixture, "p1", BEGAN + MINUTE / 2).await);
    assert!(!lease(&fixture, "p2", BEGAN + MINUTE).await, "it was renewed");
    assert!(lease(&fixture, "p2", BEGAN + MINUTE + MINUTE / 2).await);
}

pub async fn a_released_lease_is_free(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    fixture.store.release(&fixture.scope, "work", "p1").await.answered();
    assert!(lease(&fixture, "p2", BEGAN).await);
}

pub async fn a_lease_is_released_by_its_holder_only(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    fixture.store.release(&fixture.scope, "work", "p2").await.answered();
    assert!(!lease(&fixture, "p2", BEGAN).await);
}

pub async fn leases_of_two_names_are_two(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    assert!(fixture.store.lease(&fixture.scope, "other work", "p2", MINUTE).await.answered());
    fixture.store.release(&fixture.scope, "other work", "p2").await.answered();
    assert!(!lease(&fixture, "p2", BEGAN).await);
}

pub async fn leases_of_two_owners_are_two(fixture: Fixture) {
    assert!(lease(&fixture, "p1", BEGAN).await);
    let stranger = fixture.stranger();
    assert!(fixture.store.lease(&stranger, "work", "p2", MINUTE).await.answered());
    fixture.store.release(&stranger, "work", "p1").await.answered();
    assert!(!lease(&fixture, "p2", BEGAN).await);
}

/// If a lease ends later than any valid lease can, it was written with a wrong clock.
pub async fn a_clock_that_is_set_back_holds_up_no_lease(fixture: Fixture) {
    let year = 365 * 24 * 60 * MINUTE;
    assert!(lease(&fixture, "p1", year).await);
    assert!(!lease(&fixture, "p2", year - MINUTE).await, "a minute earlier it is still held");
    assert!(lease(&fixture, "p2", 5).await);
}

async fn cursor(fixture: &Fixture, source: &str) -> Option<String> {
    fixture.store.import_cursor(&fixture.scope, source).await.answered()
}

pub async fn a_cursor_stands_where_it_was_set_last(fixture: Fixture) {
    assert_eq!(cursor(&fixture, "git").await, None);
    for at in ["first", "second"] {
        fixture.store.set_import_cursor(&fixture.scope, "git", at, 1).await.answered();
    }
    assert_eq!(cursor(&fixture, "git").await.as_deref(), Some("second"));
    let fixture = fixture.reopened();
    assert_eq!(cursor(&fixture, "git").await.as_deref(), Some("second"));
}

pub async fn each_source_has_its_own_cursor(fixture: Fixture) {
    fixture.store.set_import_cursor(&fixture.scope, "git", "first", 1).await.answered();
    fixture.store.set_import_cursor(&fixture.scope, "sessions", "second", 1).await.answered();
    assert_eq!(cursor(&fixture, "git").await.as_deref(), Some("first"));
    assert_eq!(cursor(&fixture, "sessions").await.as_deref(), Some("second"));
}

pub async fn each_owner_has_its_own_cursor(fixture: Fixture) {
    fixture.store.set_import_cursor(&fixture.scope, "git", "first", 1).await.answered();
    assert_eq!(fixture.store.import_cursor(&fixture.stranger(), "git").await.answered(), None);
    fixture.store.set_import_cursor(&fixture.stranger(), "git", "second", 1).await.answered();
    assert_eq!(cursor(&fixture, "git").await.as_deref(), Some("first"));
}
