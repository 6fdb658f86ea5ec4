//! Databases that can't be used as they are: read-only, of a newer schema, without room, or lost for a while.

use std::sync::Arc;
use std::time::Duration;

use crate::PostgresStore;
use crate::database::Database;
use crate::tests::engine::Postgres;
use crate::transactions::{Durability, Transaction};
use tiro_base::error::Kind;
use tiro_base::filter::Filter;
use tiro_base::scope::{Scope, TenantId};
use tiro_conformance::fixture::{Answered, note};
use tiro_conformance::subject::{OWNER, project};
use tiro_store::{Store, WriteMemories};

fn scope() -> Scope {
    Scope::own(TenantId::new(OWNER), project())
}

/// Opens the engine's store with a setting of the session, as if the server had it.
fn with_setting(engine: &Postgres, setting: &str) -> Arc<dyn Store> {
    let url = engine.url();
    let url = format!("{url}{}options=-c%20{setting}", if url.contains('?') { '&' } else { '?' });
    Arc::new(PostgresStore::of(Database::in_schema(&url, engine.schema()).unwrap(), project()))
}

async fn count(store: &dyn Store) -> usize {
    store.list(&scope(), &Filter::default(), None, 9).await.answered().len()
}

#[tokio::test]
async fn a_read_only_database_is_read_and_says_that_it_cannot_be_written() {
    let Some(engine) = Postgres::new() else { return };
    engine.store().save(&scope(), vec![note("kept")], 1).await.answered();
    let standby = with_setting(&engine, "default_transaction_read_only%3Don");
    assert_eq!(count(&*standby).await, 1);
    let refused = standby.save(&scope(), vec![note("lost")], 2).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Store);
    assert!(refused.to_string().contains("can't be written"), "{refused}");
    assert!(refused.way_out().is_some_and(|hint| hint.contains("standby")));
    assert_eq!(count(&engine.store()).await, 1);
}

#[tokio::test]
async fn a_database_of_a_newer_tiro_is_refused_unless_it_only_added() {
    let Some(engine) = Postgres::new() else { return };
    engine.store().save(&scope(), vec![note("kept")], 1).await.answered();
    let set = async |key: &str, value: i64| {
        let database = engine.other();
        let client = database.connection().await.unwrap();
        let sql = "UPDATE meta SET value = $2 WHERE key = $1";
        client.execute(sql, &[&key, &value]).await.unwrap();
    };
    set("version", 1000).await;
    let store = engine.store();
    store.save(&scope(), vec![note("also kept")], 2).await.answered();
    assert_eq!(count(&store).await, 2, "the migration only added");
    set("oldest_known", 1000).await;
    let refused = engine.store().save(&scope(), vec![note("lost")], 3).await.unwrap_err();
    assert!(refused.to_string().contains("newer Tiro"), "{refused}");
    assert!(refused.way_out().is_some_and(|hint| hint.contains("upgrade")));
}

/// Returns the number of the server's process of a transaction.
async fn process(tx: &Transaction) -> i32 {
    tx.only("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Ends a process of the server, as when the server is restarted.
async fn end(engine: &Postgres, process: i32) {
    let database = engine.other();
    let client = database.connection().await.unwrap();
    client.batch_execute("RESET ROLE").await.unwrap();
    client.execute("SELECT pg_terminate_backend($1)", &[&process]).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_lost_is_opened_again() {
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    // It is lost while no call uses it.
    let idle = store.begin_write(&scope(), Durability::Synced).await.unwrap();
    let number = process(&idle).await;
    idle.end().await.unwrap();
    end(&engine, number).await;
    store.save(&scope(), vec![note("after")], 1).await.answered();
    // It is lost while a write is open in it, for which another one waits.
    let open = store.begin_write(&scope(), Durability::Synced).await.unwrap();
    let other = engine.store();
    let waiting = tokio::spawn(async move { other.save(&scope(), vec![note("waited")], 2).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    end(&engine, process(&open).await).await;
    waiting.await.unwrap().answered();
    assert!(open.end().await.is_err());
    assert_eq!(count(&engine.store()).await, 2);
}
