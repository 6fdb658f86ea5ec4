//! Promises about the cache of answers, and about rows that expire.

use super::place::{Answered, HOUR, Place, message_at, name, wanted};
use super::subject::Engine;
use tiro_base::memory::{Level, Millis};
use tiro_store::*;

/// Caches an answer of a hundred bytes. The cache may have at most three hundred bytes.
async fn keep<E: Engine>(place: &Place<E>, n: u8, now: Millis, ttl: Millis) {
    place.store.cache(&place.scope, [n; 32], body(n), now, ttl, 300).await.answered();
}

async fn cached<E: Engine>(place: &Place<E>, n: u8, now: Millis) -> Option<String> {
    place.store.cached(&place.scope, [n; 32], now).await.answered()
}

fn body(n: u8) -> String {
    n.to_string().repeat(100)
}

pub async fn an_answer_is_served_under_its_key<E: Engine>(place: Place<E>) {
    keep(&place, 1, 1, HOUR).await;
    assert_eq!((cached(&place, 1, 2).await, cached(&place, 2, 2).await), (Some(body(1)), None));
    let other = place.engine.open();
    assert_eq!(other.cached(&place.scope, [1; 32], 3).await.answered(), Some(body(1)));
    let place = place.reopened();
    assert_eq!(cached(&place, 1, 4).await, Some(body(1)));
}

pub async fn a_newer_answer_takes_the_place_of_the_older<E: Engine>(place: Place<E>) {
    keep(&place, 1, 1, HOUR).await;
    assert_eq!(cached(&place, 1, 2).await, Some(body(1)));
    place.store.cache(&place.scope, [1; 32], "another".into(), 3, HOUR, 300).await.answered();
    assert_eq!(cached(&place, 1, 4).await.as_deref(), Some("another"));
}

pub async fn an_answer_is_served_for_its_time<E: Engine>(place: Place<E>) {
    keep(&place, 1, 10, 100).await;
    assert_eq!(cached(&place, 1, 109).await, Some(body(1)));
    assert_eq!(cached(&place, 1, 110).await, None);
    keep(&place, 2, 200, 0).await;
    assert_eq!(cached(&place, 2, 200).await, None, "an answer for 0 ms is not kept");
}

pub async fn answers_used_longest_ago_make_room<E: Engine>(place: Place<E>) {
    for n in 1..=3 {
        keep(&place, n, i64::from(n), HOUR).await;
    }
    assert_eq!(cached(&place, 1, 10).await, Some(body(1)));
    keep(&place, 4, 11, HOUR).await;
    assert_eq!(cached(&place, 2, 12).await, None, "it was used longest ago");
    assert_eq!(cached(&place, 1, 13).await, Some(body(1)));
    place.store.cache(&place.scope, [5; 32], "x".repeat(301), 14, HOUR, 300).await.answered();
    assert_eq!(cached(&place, 5, 15).await, None, "it is larger than the whole cache");
    let stats = place.store.cache_stats(&place.scope).await.answered();
    assert!(stats.bytes <= 300, "{stats:?}");
}

pub async fn a_clock_that_is_set_back_keeps_no_answer_alive<E: Engine>(place: Place<E>) {
    // For the cache, the time is the latest date at which any answer was stored or used.
    keep(&place, 6, HOUR, 10).await;
    assert_eq!(cached(&place, 6, HOUR + 1).await, Some(body(6)));
    keep(&place, 7, HOUR + 20, HOUR).await;
    assert_eq!(cached(&place, 6, 5).await, None);
    assert_eq!(cached(&place, 7, 5).await, Some(body(7)));
    keep(&place, 8, 2 * HOUR, 0).await;
    let place = place.reopened();
    assert_eq!(cached(&place, 7, HOUR + 21).await, Some(body(7)));
}

pub async fn a_clock_that_was_ahead_keeps_no_answer_alive<E: Engine>(place: Place<E>) {
    let years = 10 * 365 * 24 * HOUR;
    keep(&place, 6, years, HOUR).await;
    assert_eq!(cached(&place, 6, 5).await, None, "it would last for ten years");
    keep(&place, 7, 10, HOUR).await;
    assert_eq!(cached(&place, 7, 11).await, Some(body(7)));
    assert_eq!(cached(&place, 7, HOUR + 10).await, None);
}

pub async fn uses_of_the_cache_are_counted<E: Engine>(place: Place<E>) {
    keep(&place, 1, 1, HOUR).await;
    for n in [1, 2, 1, 3, 1] {
        cached(&place, n, 2).await;
    }
    keep(&place, 2, 3, HOUR).await;
    let stats = place.store.cache_stats(&place.scope).await.answered();
    assert_eq!((stats.entries, stats.bytes, stats.hits, stats.misses), (2, 200, 3, 2));
    let place = place.reopened();
    let stats = place.store.cache_stats(&place.scope).await.answered();
    assert_eq!((stats.hits, stats.misses), (3, 2));
}

pub async fn an_owner_gets_no_answer_of_another<E: Engine>(place: Place<E>) {
    keep(&place, 1, 1, HOUR).await;
    assert_eq!(place.store.cached(&place.stranger(), [1; 32], 1).await.answered(), None);
    assert_eq!(place.store.cache_stats(&place.stranger()).await.answered().entries, 0);
}

pub async fn expired_answers_are_counted_and_removed<E: Engine>(place: Place<E>) {
    keep(&place, 1, 1, 10).await;
    keep(&place, 2, 1, HOUR).await;
    let expected = Expired { answers: 1, answer_bytes: 100, ..Expired::default() };
    assert_eq!(place.store.expired(&place.scope, 11, 0).await.answered(), expected);
    assert_eq!(place.store.remove_expired(&place.scope, 11, 0).await.answered(), expected);
    assert_eq!(place.store.expired(&place.scope, 11, 0).await.answered(), Expired::default());
    assert_eq!(cached(&place, 2, 12).await, Some(body(2)));
}

pub async fn superseded_summaries_and_old_entries_are_removed<E: Engine>(place: Place<E>) {
    place.say("s", &["one", "two"]).await;
    place.summarise("s", 0, 1).await;
    let better = Summary { provider: "local".into(), ..place.draft("s", 0, 1).await };
    place.store.save_summary(&place.scope, better, 2).await.answered();
    place.store.clock().set(1);
    let request = wanted(Level::Brief, AskedBy::User);
    place.store.enqueue(&place.scope, request, 0, 0).await.answered();
    let entry = place.store.next_queued(&place.scope, "p1", HOUR, 1).await.answered().expect("it is due").key;
    place.store.finish(&place.scope, entry, "p1", 3).await.answered();
    let expired = async |before| place.store.expired(&place.scope, 1, before).await.answered();
    assert_eq!(expired(1).await, Expired::default(), "nothing is that old");
    let expected = Expired { made: 1, superseded: 1, ..Expired::default() };
    assert_eq!(place.store.remove_expired(&place.scope, 1, 9).await.answered(), expected);
    assert_eq!((expired(9).await, place.summaries("s").await.len()), (Expired::default(), 1));
    assert_eq!(place.summaries("s").await[0].summary.provider, "local");
}

pub async fn sessions_without_recent_messages_are_left<E: Engine>(place: Place<E>) {
    place.save(vec![message_at("b", "a", 20), message_at("a", "b", 10), message_at("new", "c", 90)]).await;
    let marked = place.say("marked", &["kept"]).await;
    place.store.mark(&place.scope, &marked, true, None).await.answered();
    let left = place.store.left_sessions(&place.scope, 50).await.answered();
    let rows: Vec<_> = left.into_iter().map(|row| (row.session, row.memories, row.last)).collect();
    assert_eq!(rows, [(name("a"), 1, 10), (name("b"), 1, 20)]);
}
