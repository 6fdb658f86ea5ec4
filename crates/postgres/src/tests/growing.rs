//! What the server knows of tables that grow fast.

use super::engine::Postgres;
use std::time::Duration;

use tiro_conformance::fixture::{Fixture, message, name};
use tiro_store::Selection;

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

/// An index of an expression that may fail isn't used under row security. So each removal read all postings of the owner,
/// and exchanging 100,000 messages took eight minutes, because a message changes the entry of the one before it.
#[tokio::test]
async fn a_removal_reads_the_postings_of_its_document_alone() {
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    let fixture = Fixture::new(Box::new(engine));
    let text =
        |number: usize| format!("harbor crane{number} lifts box{number} at pier{number} by noon{number}");
    let saved = fixture.save((0..500).map(|number| message("s", &text(number))).collect()).await;
    let client = store.database().connect().await.unwrap();
    client.batch_execute("ANALYZE postings, documents").await.unwrap();
    let of_postings = async |sql: &str| -> i64 { client.query_one(sql, &[]).await.unwrap().get(0) };
    let read = "SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'postings'::regclass)
                + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relid = 'postings'::regclass)::bigint";
    let all = of_postings("SELECT reltuples::bigint FROM pg_class WHERE oid = 'postings'::regclass").await;
    let before = of_postings(read).await;
    for ((id, _), operation) in saved.outcomes.iter().step_by(50).zip(0..8) {
        let one = Selection::Ids(vec![id.clone()]);
        fixture.store.forget_for_good(&fixture.scope, &one, &format!("p{operation}"), 5).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let more = of_postings(read).await - before;
    assert!(0 < more && more < all, "{more} of {all} rows were read");
}
