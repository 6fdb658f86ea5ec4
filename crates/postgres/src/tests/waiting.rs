//! What may be written while another process writes memories, and what is left out instead.

use std::time::{Duration, Instant};

use super::engine::Postgres;
use crate::PostgresStore;
use crate::transactions::Durability;
use tiro_base::scope::{Scope, TenantId};
use tiro_base::thread::ContentHash;
use tiro_conformance::fixture::{HOUR, message, name};
use tiro_conformance::subject::{OWNER, project};
use tiro_store::ShownLine;

/// How long a call takes at most that doesn't wait for another writer. Arbitrary: this machine is busy.
const AT_ONCE: Duration = Duration::from_secs(5);

fn scope() -> Scope {
    Scope::own(TenantId::new(OWNER), project())
}

/// Returns a store with a session `s` of one message.
async fn begin(engine: &Postgres) -> PostgresStore {
    let store = engine.store();
    store.save_reporting(&scope(), vec![message("s", "oak")], 1, &mut |_| {}).await.unwrap();
    store
}

/// Imports of a large history would otherwise hold up whoever asks for a lease.
#[tokio::test]
async fn leases_and_caches_are_written_while_another_process_writes() {
    let Some(engine) = Postgres::new() else { return };
    let (store, another, scope) = (begin(&engine).await, engine.store(), scope());
    let writing = another.begin_write(&scope, Durability::Synced).await.unwrap();
    let began = Instant::now();
    assert!(store.lease(&scope, "work", "p1", HOUR).await.unwrap());
    assert!(store.is_leased(&scope, "work").await.unwrap());
    store.cache(&scope, [1; 32], "an answer".into(), 1, HOUR, 100).await.unwrap();
    assert_eq!(store.cached(&scope, [1; 32], 2).await.unwrap().as_deref(), Some("an answer"));
    store.cache_embeddings(&scope, vec![([1; 32], vec![0.5; 4])]).await.unwrap();
    let hash = ContentHash([1; 16]);
    store.note_token_counts(&scope, &[(hash, 7)]).await.unwrap();
    assert_eq!(store.token_counts(&scope, &[hash]).await.unwrap().get(&hash), Some(&7));
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    writing.end().await.unwrap();
}

/// The clocks of the machines that share a database differ.
#[tokio::test]
async fn a_lease_ends_by_the_clock_of_the_database() {
    let Some(engine) = Postgres::new() else { return };
    let (one, other, scope) = (engine.store(), engine.store(), scope());
    assert!(one.lease(&scope, "work", "p1", HOUR).await.unwrap());
    assert!(!other.lease(&scope, "work", "p2", HOUR).await.unwrap());
    assert!(one.lease(&scope, "work", "p1", 20).await.unwrap());
    tokio::time::sleep(Duration::from_millis(25)).await;
    assert!(!other.is_leased(&scope, "work").await.unwrap());
    assert!(other.lease(&scope, "work", "p2", HOUR).await.unwrap());
}

#[tokio::test]
async fn an_answer_that_another_process_stores_is_left_out() {
    let Some(engine) = Postgres::new() else { return };
    let (store, another, scope) = (begin(&engine).await, engine.store(), scope());
    store.cache(&scope, [1; 32], "the first".into(), 1, HOUR, 100).await.unwrap();
    let other = another.begin_light(&scope, Durability::Unsynced, AT_ONCE).await.unwrap();
    other
        .execute("UPDATE context_cache SET body = 'the second' WHERE owner = $1", &[&other.seen.shared])
        .await
        .unwrap();
    let began = Instant::now();
    store.cache(&scope, [1; 32], "the third".into(), 2, HOUR, 100).await.unwrap();
    assert_eq!(store.cached(&scope, [1; 32], 2).await.unwrap().as_deref(), Some("the first"));
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    other.end().await.unwrap();
    assert_eq!(store.cached(&scope, [1; 32], 2).await.unwrap().as_deref(), Some("the second"));
}

/// The record was once skipped while another call was writing, so stashing reported that no tokens were freed.
#[tokio::test]
async fn a_context_is_recorded_also_while_another_call_writes() {
    let Some(engine) = Postgres::new() else { return };
    let (store, another, scope) = (begin(&engine).await, engine.store(), scope());
    let memory = store.list(&scope, &Default::default(), None, 1).await.unwrap().remove(0).key;
    let writing = another.begin_write(&scope, Durability::Synced).await.unwrap();
    let line = ShownLine { memory, tokens: 3, heading: 0, heading_tokens: 1 };
    let lines = vec![line, ShownLine { heading: 1, ..line }];
    store.record_assembly(&scope, &name("s"), [1; 32], lines).await.unwrap();
    writing.end().await.unwrap();
    let began = Instant::now();
    loop {
        let reading = another.begin_read(&scope).await.unwrap();
        let rows = reading.rows("SELECT tokens, heading FROM assembly_lines", &[]).await.unwrap();
        reading.end().await.unwrap();
        let rows: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        if !rows.is_empty() {
            assert_eq!(rows, [(6, 0)]);
            return;
        }
        assert!(began.elapsed() < AT_ONCE, "it is not recorded");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
