//! What the server knows of tables that grow fast.

use super::engine::Postgres;
use tiro_conformance::fixture::{Fixture, message};

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
