//! Promises about the cache of answers, and about rows that expire.

use super::fixture::{Answered, Fixture, HOUR, message_at, name, wanted};
use tiro_base::memory::{Level, Millis};
use tiro_store::*;

/// Caches an answer of a hundred bytes. The cache may have at most three hundred bytes.
async fn keep(fixture: &Fixture, n: u8, now: Millis, ttl: Millis) {
    fixture.store.cache(&fixture.scope, [n; 32], body(n), now, ttl, 300).await.answered();
}

async fn cached(fixture: &Fixture, n: u8, now: Millis) -> Option<String> {
    fixture.store.cached(&fixture.scope, [n; 32], now).await.answered()
}

fn body(n: u8) -> String {
    n.to_string().repeat(100)
}

pub async fn an_answer_is_served_under_its_key(fixture: Fixture) {
    keep(&fixture, 1, 1, HOUR).await;
    assert_eq!((cached(&fixture, 1, 2).await, cached(&fixture, 2, 2).await), (Some(body(1)), None));
    let other = fixture.engine.open();
    assert_eq!(other.cached(&fixture.scope, [1; 32], 3).await.answered(), Some(body(1)));
    let fixture = fixture.reopened();
    assert_eq!(cached(&fixture, 1, 4).await, Some(body(1)));
}

pub async fn a_newer_answer_takes_the_place_of_the_older(fixture: Fixture) {
    keep(&fixture, 1, 1, HOUR).await;
    assert_eq!(cached(&fixture, 1, 2).await, Some(body(1)));
    fixture.store.cache(&fixture.scope, [1; 32], "another".into(), 3, HOUR, 300).await.answered();
    assert_eq!(cached(&fixture, 1, 4).await.as_deref(), Some("another"));
}

pub async fn an_answer_is_served_for_its_time(fixture: Fixture) {
    keep(&fixture, 1, 10, 100).await;
    assert_eq!(cached(&fixture, 1, 109).await, Some(body(1)));
    assert_eq!(cached(&fixture, 1, 110).await, None);
    keep(&fixture, 2, 200, 0).await;
    assert_eq!(cached(&fixture, 2, 200).await, None, "an answer for 0 ms is not kept");
}

pub async fn answers_used_longest_ago_make_room(fixture: Fixture) {
    for n in 1..=3 {
        keep(&fixture, n, i64::from(n), HOUR).await;
    }
    assert_eq!(cached(&fixture, 1, 10).await, Some(body(1)));
    keep(&fixture, 4, 11, HOUR).await;
    assert_eq!(cached(&fixture, 2, 12).await, None, "it was used longest ago");
    assert_eq!(cached(&fixture, 1, 13).await, Some(body(1)));
    fixture.store.cache(&fixture.scope, [5; 32], "x".repeat(301), 14, HOUR, 300).await.answered();
    assert_eq!(cached(&fixture, 5, 15).await, None, "it is larger than the whole cache");
    let stats = fixture.store.cache_stats(&fixture.scope).await.answered();
    assert!(stats.bytes <= 300, "{stats:?}");
}

pub async fn a_clock_that_is_set_back_keeps_no_answer_alive(fixture: Fixture) {
    // For the cache, the time is the latest date at which any answer was stored or used.
    keep(&fixture, 6, HOUR, 10).await;
    assert_eq!(cached(&fixture, 6, HOUR + 1).await, Some(body(6)));
    keep(&fixture, 7, HOUR + 20, HOUR).await;
    assert_eq!(cached(&fixture, 6, 5).await, None);
    assert_eq!(cached(&fixture, 7, 5).await, Some(body(7)));
    keep(&fixture, 8, 2 * HOUR, 0).await;
    let fixture = fixture.reopened();
    assert_eq!(cached(&fixture, 7, HOUR + 21).await, Some(body(7)));
}

pub async fn a_clock_that_was_ahead_keeps_no_answer_alive(fixture: Fixture) {
    let years = 10 * 365 * 24 * HOUR;
    keep(&fixture, 6, years, HOUR).await;
    assert_eq!(cached(&fixture, 6, 5).await, None, "it would last for ten years");
    keep(&fixture, 7, 10, HOUR).await;
    assert_eq!(cached(&fixture, 7, 11).await, Some(body(7)));
    assert_eq!(cached(&fixture, 7, HOUR + 10).await, None);
}

pub async fn uses_of_the_cache_are_counted(fixture: Fixture) {
    keep(&fixture, 1, 1, HOUR).await;
    for n in [1, 2, 1, 3, 1] {
        cached(&fixture, n, 2).await;
    }
    keep(&fixture, 2, 3, HOUR).await;
    let stats = fixture.store.cache_stats(&fixture.scope).await.answered();
    assert_eq!((stats.entries, stats.bytes, stats.hits, stats.misses), (2, 200, 3, 2));
    let fixture = fixture.reopened();
    let stats = fixture.store.cache_stats(&fixture.scope).await.answered();
    assert_eq!((stats.hits, stats.misses), (3, 2));
}

pub async fn an_owner_gets_no_answer_of_another(fixture: Fixture) {
    keep(&fixture, 1, 1, HOUR).await;
    assert_eq!(fixture.store.cached(&fixture.stranger(), [1; 32], 1).await.answered(), None);
    assert_eq!(fixture.store.cache_stats(&fixture.stranger()).await.answered().entries, 0);
}

pub async fn expired_answers_are_counted_and_removed(fixture: Fixture) {
    keep(&fixture, 1, 1, 10).await;
    keep(&fixture, 2, 1, HOUR).await;
    let expected = Expired { answers: 1, answer_bytes: 100, ..Expired::default() };
    assert_eq!(fixture.store.expired(&fixture.scope, 11, 0).await.answered(), expected);
    assert_eq!(fixture.store.remove_expired(&fixture.scope, 11, 0).await.answered(), expected);
    assert_eq!(fixture.store.expired(&fixture.scope, 11, 0).await.answered(), Expired::default());
    assert_eq!(cached(&fixture, 2, 12).await, Some(body(2)));
}

pub async fn superseded_summaries_and_old_entries_are_removed(fixture: Fixture) {
    fixture.say("s", &["one", "two"]).await;
    fixture.summarise("s", 0, 1).await;
    let better = Summary { provider: "local".into(), ..fixture.draft("s", 0, 1).await };
    fixture.store.save_summary(&fixture.scope, better, 2).await.answered();
    fixture.store.clock().set(1);
    let request = wanted(Level::Brief, AskedBy::User);
    fixture.store.enqueue(&fixture.scope, request, 0, 0).await.answered();
    let entry =
        fixture.store.next_queued(&fixture.scope, "p1", HOUR, 1).await.answered().expect("it is due").key;
    fixture.store.finish(&fixture.scope, entry, "p1", 3).await.answered();
    let expired = async |before| fixture.store.expired(&fixture.scope, 1, before).await.answered();
    assert_eq!(expired(1).await, Expired::default(), "nothing is that old");
    let expected = Expired { made: 1, superseded: 1, ..Expired::default() };
    assert_eq!(fixture.store.remove_expired(&fixture.scope, 1, 9).await.answered(), expected);
    assert_eq!((expired(9).await, fixture.summaries("s").await.len()), (Expired::default(), 1));
    assert_eq!(fixture.summaries("s").await[0].summary.provider, "local");
}

pub async fn sessions_without_recent_messages_are_left(fixture: Fixture) {
    fixture.save(vec![message_at("b", "a", 20), message_at("a", "b", 10), message_at("new", "c", 90)]).await;
    let marked = fixture.say("marked", &["kept"]).await;
    fixture.store.mark(&fixture.scope, &marked, true, None).await.answered();
    let left = fixture.store.left_sessions(&fixture.scope, 50).await.answered();
    let rows: Vec<_> = left.into_iter().map(|row| (row.session, row.memories, row.last)).collect();
    assert_eq!(rows, [(name("a"), 1, 10), (name("b"), 1, 20)]);
}
