//! The promises of every engine, the comparison with SQLite, and what only this engine has.

mod compared;
mod engine;

use std::path::Path;
use std::sync::Arc;

use self::engine::InMemory;
use super::MemoryStores;
use tiro_base::error::Kind;
use tiro_base::memory::{Draft, Kind as MemoryKind, Provenance};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_conformance::exchange::converging;
use tiro_conformance::fixture::{Answered, Fixture, prepared};
use tiro_conformance::run;
use tiro_conformance::subject::{Engine, project};
use tiro_sqlite::SqliteStore;
use tiro_store::{Files, Flavour, Store, Stores};

mod holds {
    tiro_conformance::holds!(crate::tests::engine::InMemory::new);
}

#[test]
fn a_returned_summary_is_of_the_living_messages_of_its_range() {
    run::summaries_are_of_living_messages(&|| Box::new(InMemory::new()));
}

#[test]
fn stores_that_exchange_their_memories_with_those_of_sqlite_become_equal() {
    converging::stores_become_equal(24, &|| {
        let (server, client, folder) = (InMemory::new(), InMemory::new(), tempfile::tempdir().unwrap());
        let file = SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project()).unwrap();
        let stores: Vec<Arc<dyn Store>> = vec![server.open(), client.open(), Arc::new(file)];
        (stores, Box::new((server, client, folder)))
    });
}

#[tokio::test]
async fn a_program_finds_its_stores_again_by_their_folder() {
    let (owner, id) = (TenantId::new("ines"), ProjectId::from_random([1; 8]));
    let scope = Scope::own(owner.clone(), id.clone());
    let memory =
        prepared(Draft::new(MemoryKind::Fact, Provenance::UserSaid, "the quince is mine", 3), "quince");
    let all = MemoryStores::default();
    let stores = all.in_folder(Path::new("/a"));
    assert!(!stores.is_begun().await && !stores.has_projects().await);
    let registry = stores.registry(&owner).await.answered();
    registry.record(&id, "maple", "/maple", 1).await.answered();
    registry.store(&id).await.answered().save(&scope, vec![memory], 1).await.answered();
    let again = all.in_folder(Path::new("/a"));
    assert!(again.is_begun().await && again.has_projects().await);
    let found = again.registry(&owner).await.answered().existing_store(&id).await.answered();
    assert!(!found.expect("it was made").is_empty(&scope).await.answered());
    assert!(!all.in_folder(Path::new("/b")).is_begun().await);
    let refusal = all.contents(Path::new("/a")).await.unwrap_err();
    assert_eq!((refusal.kind(), refusal.way_out().is_some()), (Kind::BadInput, true));
}

#[tokio::test]
async fn a_handle_that_was_left_answers_no_call_and_others_do() {
    let place = Fixture::new(Box::new(InMemory::new()));
    let other = place.engine.open();
    assert_eq!(place.store.identity(), other.identity());
    assert!(place.store.is_current() && place.store.leave());
    assert!(!place.store.is_current() && other.is_current());
    assert_eq!(
        place.store.await_turn(&place.scope, Default::default()).await.unwrap_err().kind(),
        Kind::Store
    );
    other.await_turn(&place.scope, Default::default()).await.answered();
}
