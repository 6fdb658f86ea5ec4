//! Promises about state that processes share: the queue of summaries, leases (measured by the store's clock), and
//! the cursors of imports.

use futures_util::future::join_all;

use super::place::{Answered, HOUR, Place, name, wanted};
use super::subject::Engine;
use tiro_base::memory::{Level, Millis};
use tiro_store::*;

const LEASE: Millis = 120_000;

/// Opens a session `s` of two messages.
async fn begin<E: Engine>(place: &Place<E>) {
    place.say("s", &["one", "two"]).await;
    place.store.clock().set(1);
}

async fn enqueue<E: Engine>(place: &Place<E>, wanted: Wanted, now: Millis) {
    place.store.enqueue(&place.scope, wanted, now, now).await.answered();
}

/// Takes the next entry, after setting the store's clock to `now`.
async fn take<E: Engine>(place: &Place<E>, holder: &str, now: Millis) -> Option<Queued> {
    place.store.clock().set(now);
    place.store.next_queued(&place.scope, holder, LEASE, now).await.answered()
}

async fn fail<E: Engine>(place: &Place<E>, entry: QueueKey, holder: &str, not_before: Millis, now: Millis) {
    place.store.fail(&place.scope, entry, holder, "no answer", not_before, now).await.answered();
}

async fn counts<E: Engine>(place: &Place<E>) -> QueueCounts {
    place.store.queue_counts(&place.scope).await.answered()
}

pub async fn requests_of_the_user_come_first_then_the_oldest<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::Program), 0).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    enqueue(&place, wanted(Level::Detailed, AskedBy::User), 0).await;
    let mut levels = Vec::new();
    while let Some(queued) = take(&place, "p1", 1).await {
        assert_eq!(queued.tries, 0);
        levels.push(queued.wanted.level);
    }
    assert_eq!(levels, [Level::Standard, Level::Detailed, Level::Brief]);
}

pub async fn an_entry_waits_for_its_date<E: Engine>(place: Place<E>) {
    begin(&place).await;
    let request = wanted(Level::Brief, AskedBy::Program);
    place.store.enqueue(&place.scope, request, 100, 0).await.answered();
    let is_due = async |now| place.store.is_queue_due(&place.scope, now).await.answered();
    assert!(!is_due(99).await && take(&place, "p1", 99).await.is_none());
    assert!(is_due(100).await && take(&place, "p1", 100).await.is_some());
    assert!(!is_due(100).await, "the only entry is taken");
}

pub async fn several_holders_take_several_entries<E: Engine>(place: Place<E>) {
    begin(&place).await;
    for level in [Level::Brief, Level::Standard, Level::Detailed] {
        enqueue(&place, wanted(level, AskedBy::Program), 0).await;
    }
    let handles: Vec<E::Store> = (0..4).map(|_| place.engine.open()).collect();
    let takers = handles.iter().enumerate().map(async |(number, handle)| {
        handle.clock().set(1);
        let holder = format!("p{number}");
        handle.next_queued(&place.scope, &holder, LEASE, 1).await.answered()
    });
    let taken = join_all(takers).await;
    let mut keys: Vec<QueueKey> = taken.into_iter().flatten().map(|queued| queued.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), counts(&place).await.processing), (3, 3));
    assert_eq!(take(&place, "p5", 1).await, None, "all are held");
}

pub async fn a_dead_holder_loses_its_entry<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    let first = take(&place, "p1", 1).await.expect("it is due");
    assert_eq!(take(&place, "p2", 2).await, None, "it is held");
    // Two minutes later its lease has ended.
    let again = take(&place, "p2", 200_000).await.expect("its lease is over");
    assert_eq!((again.key, again.tries), (first.key, 1));
}

pub async fn a_holder_that_lost_its_entry_ends_nothing<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    let first = take(&place, "p1", 1).await.expect("it is due");
    take(&place, "p2", 200_000).await.expect("its lease is over");
    place.store.finish(&place.scope, first.key, "p1", 200_001).await.answered();
    fail(&place, first.key, "p1", 0, 200_001).await;
    place.store.drop_queued(&place.scope, first.key, "p1").await.answered();
    assert_eq!(counts(&place).await, QueueCounts { processing: 1, ..QueueCounts::default() });
}

pub async fn a_failed_entry_waits_until_its_date<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::Program), 0).await;
    let entry = take(&place, "p1", 1).await.expect("it is due").key;
    fail(&place, entry, "p1", 300_000, 2).await;
    // While the failed entry waits, other entries are taken.
    let other = take(&place, "p1", 3).await.expect("it is due");
    assert_eq!(other.wanted.level, Level::Brief);
    place.store.finish(&place.scope, other.key, "p1", 4).await.answered();
    assert_eq!(take(&place, "p1", 250_000).await, None);
    let again = take(&place, "p1", 300_000).await.expect("it is due again");
    assert_eq!((again.key, again.tries), (entry, 1));
}

pub async fn an_entry_is_given_up_after_five_tries<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    let mut now = 1;
    while let Some(queued) = take(&place, "p2", now).await {
        assert!(queued.tries < 5 && queued.tries == now - 1, "{queued:?}");
        fail(&place, queued.key, "p2", now, now).await;
        now += 1;
    }
    assert_eq!(counts(&place).await, QueueCounts { failed: 1, ..QueueCounts::default() });
}

/// An entry also counts as failed if every process that takes it dies.
pub async fn an_entry_that_was_left_five_times_is_given_up<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    for tries in 0..5 {
        let queued = take(&place, "p1", 1 + tries * 200_000).await.expect("its lease is over");
        assert_eq!(queued.tries, tries);
    }
    assert_eq!(take(&place, "p1", 1_200_000).await, None);
    assert_eq!(counts(&place).await, QueueCounts { failed: 1, ..QueueCounts::default() });
}

pub async fn a_second_request_revives_an_entry_that_was_given_up<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 0).await;
    for now in 1..=5 {
        let queued = take(&place, "p1", now).await.expect("it is tried five times");
        fail(&place, queued.key, "p1", now, now).await;
    }
    assert_eq!(counts(&place).await.failed, 1);
    enqueue(&place, wanted(Level::Standard, AskedBy::User), 9).await;
    assert_eq!(take(&place, "p1", 9).await.map(|queued| queued.tries), Some(0));
    assert_eq!(counts(&place).await, QueueCounts { processing: 1, ..QueueCounts::default() });
}

pub async fn a_longer_range_takes_the_place_of_a_shorter<E: Engine>(place: Place<E>) {
    begin(&place).await;
    let short = |asked_by| Wanted { last: 0, ..wanted(Level::Brief, asked_by) };
    enqueue(&place, short(AskedBy::Program), 0).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::Program), 0).await;
    assert_eq!(counts(&place).await.pending, 1);
    // A request made by the user is kept.
    enqueue(&place, short(AskedBy::User), 0).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::Program), 0).await;
    assert_eq!(counts(&place).await.pending, 2);
}

pub async fn finished_and_dropped_entries_are_over<E: Engine>(place: Place<E>) {
    begin(&place).await;
    for level in [Level::Brief, Level::Standard] {
        enqueue(&place, wanted(level, AskedBy::Program), 0).await;
    }
    let first = take(&place, "p1", 1).await.expect("it is due").key;
    let second = take(&place, "p1", 1).await.expect("it is due").key;
    place.store.finish(&place.scope, first, "p1", 2).await.answered();
    place.store.drop_queued(&place.scope, second, "p1").await.answered();
    assert_eq!(counts(&place).await, QueueCounts { completed: 1, ..QueueCounts::default() });
    assert_eq!(take(&place, "p1", 900_000).await, None);
}

pub async fn a_request_names_a_session_of_the_scope<E: Engine>(place: Place<E>) {
    begin(&place).await;
    let unknown = Wanted { session: name("unknown"), ..wanted(Level::Brief, AskedBy::User) };
    assert!(place.store.enqueue(&place.scope, unknown, 0, 0).await.is_err());
    let request = wanted(Level::Brief, AskedBy::User);
    assert!(place.store.enqueue(&place.stranger(), request, 0, 0).await.is_err());
}

pub async fn a_scope_of_sessions_takes_its_own_entries<E: Engine>(place: Place<E>) {
    begin(&place).await;
    place.say("other", &["one", "two"]).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::User), 0).await;
    let scope = place.only(&["other"]);
    assert_eq!(place.store.next_queued(&scope, "p1", LEASE, 1).await.answered(), None);
    let other = Wanted { session: name("other"), ..wanted(Level::Brief, AskedBy::Program) };
    enqueue(&place, other.clone(), 0).await;
    let taken = place.store.next_queued(&scope, "p1", LEASE, 1).await.answered();
    assert_eq!(taken.map(|queued| queued.wanted), Some(other));
}

pub async fn an_owner_takes_no_entry_of_another<E: Engine>(place: Place<E>) {
    begin(&place).await;
    enqueue(&place, wanted(Level::Brief, AskedBy::User), 0).await;
    let (store, stranger) = (&place.store, place.stranger());
    assert!(!store.is_queue_due(&stranger, 1).await.answered());
    assert_eq!(store.next_queued(&stranger, "p1", LEASE, 1).await.answered(), None);
    assert_eq!(store.queue_counts(&stranger).await.answered(), QueueCounts::default());
    let entry = take(&place, "p1", 1).await.expect("it is due").key;
    store.drop_queued(&stranger, entry, "p1").await.answered();
    assert_eq!(counts(&place).await.processing, 1);
}

/// No caller postpones an entry by more than a day, so a later date was written with a wrong clock.
pub async fn a_clock_that_is_set_back_holds_up_no_entry<E: Engine>(place: Place<E>) {
    begin(&place).await;
    let year = 365 * 24 * HOUR;
    enqueue(&place, wanted(Level::Standard, AskedBy::User), year).await;
    let first = take(&place, "p1", year).await.expect("it is due");
    enqueue(&place, wanted(Level::Detailed, AskedBy::User), year).await;
    let mut levels = Vec::new();
    while let Some(queued) = take(&place, "p2", 5).await {
        levels.push(queued.wanted.level);
    }
    assert_eq!(levels, [Level::Standard, Level::Detailed], "neither waits for the wrong date");
    place.store.finish(&place.scope, first.key, "p1", 6).await.answered();
    assert_eq!(counts(&place).await.completed, 0);
}

const MINUTE: Millis = 60_000;
const BEGAN: Millis = 1_000_000;

/// Sets the store's clock to `now` and asks for the lease `work` for a minute.
async fn lease<E: Engine>(place: &Place<E>, holder: &str, now: Millis) -> bool {
    place.store.clock().set(now);
    place.store.lease(&place.scope, "work", holder, MINUTE).await.answered()
}

pub async fn a_lease_has_one_holder<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    assert!(!lease(&place, "p2", BEGAN).await);
    let other = place.engine.open();
    other.clock().set(BEGAN);
    assert!(!other.lease(&place.scope, "work", "p2", MINUTE).await.answered(), "other handles see it");
    assert!(lease(&place, "p1", BEGAN).await, "a holder may renew its lease");
}

pub async fn of_several_that_ask_at_once_one_gets_the_lease<E: Engine>(place: Place<E>) {
    let handles: Vec<E::Store> = (0..6).map(|_| place.engine.open()).collect();
    let asked = handles.iter().enumerate().map(async |(number, handle)| {
        handle.clock().set(BEGAN);
        handle.lease(&place.scope, "work", &format!("p{number}"), MINUTE).await.answered()
    });
    let granted = join_all(asked).await;
    assert_eq!(granted.iter().filter(|is_granted| **is_granted).count(), 1, "{granted:?}");
}

pub async fn a_lease_ends_by_the_clock_of_the_store<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    assert!(!lease(&place, "p2", BEGAN + MINUTE - 1).await);
    assert!(lease(&place, "p2", BEGAN + MINUTE).await);
    assert!(!lease(&place, "p1", BEGAN + MINUTE).await, "another holder has it now");
}

pub async fn a_renewal_lasts_from_its_own_time<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    assert!(lease(&place, "p1", BEGAN + MINUTE / 2).await);
    assert!(!lease(&place, "p2", BEGAN + MINUTE).await, "it was renewed");
    assert!(lease(&place, "p2", BEGAN + MINUTE + MINUTE / 2).await);
}

pub async fn a_released_lease_is_free<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    place.store.release(&place.scope, "work", "p1").await.answered();
    assert!(lease(&place, "p2", BEGAN).await);
}

pub async fn a_lease_is_released_by_its_holder_only<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    place.store.release(&place.scope, "work", "p2").await.answered();
    assert!(!lease(&place, "p2", BEGAN).await);
}

pub async fn leases_of_two_names_are_two<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    assert!(place.store.lease(&place.scope, "other work", "p2", MINUTE).await.answered());
    place.store.release(&place.scope, "other work", "p2").await.answered();
    assert!(!lease(&place, "p2", BEGAN).await);
}

pub async fn leases_of_two_owners_are_two<E: Engine>(place: Place<E>) {
    assert!(lease(&place, "p1", BEGAN).await);
    let stranger = place.stranger();
    assert!(place.store.lease(&stranger, "work", "p2", MINUTE).await.answered());
    place.store.release(&stranger, "work", "p1").await.answered();
    assert!(!lease(&place, "p2", BEGAN).await);
}

/// If a lease ends later than any valid lease can, it was written with a wrong clock.
pub async fn a_clock_that_is_set_back_holds_up_no_lease<E: Engine>(place: Place<E>) {
    let year = 365 * 24 * 60 * MINUTE;
    assert!(lease(&place, "p1", year).await);
    assert!(!lease(&place, "p2", year - MINUTE).await, "a minute earlier it is still held");
    assert!(lease(&place, "p2", 5).await);
}

async fn cursor<E: Engine>(place: &Place<E>, source: &str) -> Option<String> {
    place.store.import_cursor(&place.scope, source).await.answered()
}

pub async fn a_cursor_stands_where_it_was_set_last<E: Engine>(place: Place<E>) {
    assert_eq!(cursor(&place, "git").await, None);
    for at in ["first", "second"] {
        place.store.set_import_cursor(&place.scope, "git", at, 1).await.answered();
    }
    assert_eq!(cursor(&place, "git").await.as_deref(), Some("second"));
    let place = place.reopened();
    assert_eq!(cursor(&place, "git").await.as_deref(), Some("second"));
}

pub async fn each_source_has_its_own_cursor<E: Engine>(place: Place<E>) {
    place.store.set_import_cursor(&place.scope, "git", "first", 1).await.answered();
    place.store.set_import_cursor(&place.scope, "sessions", "second", 1).await.answered();
    assert_eq!(cursor(&place, "git").await.as_deref(), Some("first"));
    assert_eq!(cursor(&place, "sessions").await.as_deref(), Some("second"));
}

pub async fn each_owner_has_its_own_cursor<E: Engine>(place: Place<E>) {
    place.store.set_import_cursor(&place.scope, "git", "first", 1).await.answered();
    assert_eq!(place.store.import_cursor(&place.stranger(), "git").await.answered(), None);
    place.store.set_import_cursor(&place.stranger(), "git", "second", 1).await.answered();
    assert_eq!(cursor(&place, "git").await.as_deref(), Some("first"));
}
