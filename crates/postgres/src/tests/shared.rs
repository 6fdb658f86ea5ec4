//! Cached answers that the servers of a database share in Valkey.

use std::sync::Arc;

use crate::PostgresStore;
use crate::tests::engine::Postgres;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{AuthorId, Scope, TenantId};
use tiro_conformance::fixture::{Answered, note};
use tiro_conformance::subject::{Engine, OWNER, project};
use tiro_store::{Selection, Store};
use tiro_valkey::Valkey;

/// The time for which answers are kept.
const HOUR: i64 = 60 * 60 * 1000;

/// Opens the engine's store as a server that shares answers in the Valkey at `url`.
async fn server(engine: &Postgres, url: &str) -> Arc<dyn Store> {
    let (database, valkey) = (engine.other(), Valkey::at(url).unwrap());
    while !valkey.drop_group("is it there").await {}
    // What failed before the connection was there is forgotten after a second.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    database.share_cache(valkey);
    Arc::new(PostgresStore::of(database, project()))
}

#[tokio::test]
async fn servers_share_answers_until_something_is_purged() {
    #[expect(clippy::disallowed_methods, reason = "it is set for tests alone")]
    let Ok(url) = std::env::var("TIRO_TEST_VALKEY") else {
        eprintln!("skipped: TIRO_TEST_VALKEY names no server of Valkey");
        return;
    };
    let Some(engine) = Postgres::new() else { return };
    let (one, other) = (server(&engine, &url).await, server(&engine, &url).await);
    let scope = Scope::own(TenantId::new(OWNER), project());
    let receipt = one.save(&scope, vec![note("kept"), note("purged")], 1).await.answered();
    one.cache(&scope, [1; 32], "an answer with what is purged".into(), 1, HOUR, 1000).await.answered();
    assert!(other.cached(&scope, [1; 32], 2).await.answered().is_some());
    assert!(!engine.holds("an answer with"), "it is in the table, too");
    let stranger = scope.read_by(AuthorId::new("ana"));
    assert_eq!(other.cached(&stranger, [1; 32], 2).await.answered(), None);
    let id: MemoryId = receipt.outcomes[1].0.clone();
    other.forget_for_good(&scope, &Selection::Ids(vec![id]), "f1", 3).await.answered();
    assert_eq!(one.cached(&scope, [1; 32], 4).await.answered(), None);
    // Without Valkey, the table serves.
    let alone: Arc<dyn Store> = Arc::new(engine.store());
    alone.cache(&scope, [2; 32], "another".into(), 5, HOUR, 1000).await.answered();
    assert!(one.cached(&scope, [2; 32], 6).await.answered().is_some());
}
