//! What the server knows of tables that grow fast.

use super::engine::Postgres;
use std::time::Duration;

use tiro_conformance::fixture::{Fixture, message, name};

/// Until the server had looked at the tables by itself, which took up to a minute, it took them for small, and read all
/// rows of an owner for each row that it looked for. Giving 5,000 memories to a machine then took 13 s.
#[tokio::test]
async fn the_server_soon_knows_that_a_table_is_large() {
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    let fixture = Fixture::new(Box::new(engine));
    for part in 0..3 {
        let texts = (0..500).map(|number| message("s", &format!("message {number} of part {part}")));
        fixture.save(texts.collect()).await;
    }
    let client = store.database().connect().await.unwrap();
    for table in ["memories", "exchange", "chunks"] {
        let sql = format!("SELECT reltuples FROM pg_class WHERE oid = '{table}'::regclass");
        let known: f32 = client.query_one(&sql, &[]).await.unwrap().get(0);
        assert!(known >= 500.0, "{table}: {known}");
    }
}

/// Row security compares before a key is looked up, so the title of a session was found by reading all memories: 0.3 s for
/// each session of a store with 100,000 memories.
#[tokio::test]
async fn a_title_is_found_without_reading_all_memories() {
    const MEMORIES: i64 = 3000;
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    let fixture = Fixture::new(Box::new(engine));
    for part in 0..MEMORIES / 500 {
        let texts =
            (0..500).map(|number| message(&format!("s{part}-{}", number / 50), &format!("{part} {number}")));
        fixture.save(texts.collect()).await;
    }
    let client = store.database().connect().await.unwrap();
    client.batch_execute("ANALYZE memories, sessions").await.unwrap();
    let read = async || -> i64 {
        // A connection tells how much it read at the end of a transaction, but only once in a second.
        for _ in 0..8 {
            let about = fixture.store.about_sessions(&fixture.scope, vec![name("s1-3")]).await.unwrap();
            assert!(about[0].title.is_some());
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let sql = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'memories'::regclass";
        client.query_one(sql, &[]).await.unwrap().get(0)
    };
    let before = read().await;
    let more = read().await - before;
    assert!(more < MEMORIES, "{more} rows were read");
}
