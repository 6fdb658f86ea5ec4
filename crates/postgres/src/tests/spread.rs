//! Stores that are spread over several databases. Schemas stand for the databases, with connections of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::database::Database;
use crate::tests::engine::Postgres;
use crate::{Databases, PostgresRegistry, PostgresStores};
use tiro_base::error::Kind;
use tiro_base::filter::Filter;
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_conformance::fixture::{Answered, note};
use tiro_conformance::subject::OWNER;
use tiro_store::{Registry, Store, Stores};

/// Returns the ids of eight projects, four for each of two databases.
fn projects() -> Vec<ProjectId> {
    (1..=8).map(|number| ProjectId::from_random([0, 0, 0, 0, 0, 0, 0, number])).collect()
}

fn registry(databases: &[Database]) -> PostgresRegistry {
    PostgresRegistry::of(Databases::of(databases.to_vec()), &TenantId::new(OWNER))
}

fn scope(id: &ProjectId) -> Scope {
    Scope::own(TenantId::new(OWNER), id.clone())
}

async fn texts(store: &Arc<dyn Store>, id: &ProjectId) -> Vec<String> {
    let memories = store.list(&scope(id), &Filter::default(), None, 9).await.answered();
    memories.into_iter().map(|memory| memory.text).collect()
}

/// Returns how many stores of projects have their rows in the database.
async fn count(database: &Database) -> i64 {
    let client = database.connection().await.unwrap();
    let sql = "SELECT count(DISTINCT o.project) FROM owners o WHERE o.project <> 'owner'";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn stores_are_spread_and_stay_where_they_were_made() {
    let (Some(first), Some(second)) = (Postgres::new(), Postgres::new()) else { return };
    let before = registry(&[first.other()]);
    let before: &dyn Registry = &before;
    let ids = projects();
    for (place, id) in ids.iter().enumerate() {
        before.record(id, "maple", &format!("/{place}"), 1).await.answered();
    }
    // Two stores are made before there is a second database.
    for id in &ids[..2] {
        let store = before.store(id).await.answered();
        store.save(&scope(id), vec![note(id.as_str())], 1).await.answered();
    }
    let both = [first.other(), second.other()];
    let stores = PostgresStores::new(Databases::of(both.to_vec()));
    let registries = [stores.registry(&TenantId::new(OWNER)).await.answered(), Arc::new(registry(&both))];
    for id in &ids[2..] {
        let [one, other] = [&registries[0], &registries[1]].map(|registry| registry.store(id));
        let (one, other) = tokio::join!(one, other);
        one.answered().save(&scope(id), vec![note(id.as_str())], 1).await.answered();
        assert_eq!(texts(&other.answered(), id).await, [id.as_str()]);
    }
    assert_eq!((count(&both[0]).await, count(&both[1]).await), (5, 3));
    for id in &ids {
        let store = registries[1].existing_store(id).await.answered().unwrap();
        assert_eq!(texts(&store, id).await, [id.as_str()]);
    }
    // A project that was removed leaves its store behind, wherever it is.
    registries[0].remove(&ids[2]).await.answered();
    registries[0].remove(&ids[3]).await.answered();
    let strays: BTreeSet<_> = registries[0].strays().await.answered().into_iter().map(|row| row.id).collect();
    assert_eq!(strays, BTreeSet::from([ids[2].clone(), ids[3].clone()]));
    assert!(stores.has_projects().await);
}

#[tokio::test]
async fn a_missing_or_exchanged_database_is_noticed() {
    let (Some(first), Some(second)) = (Postgres::new(), Postgres::new()) else { return };
    let stores = |databases: Vec<Database>| PostgresStores::new(Databases::of(databases));
    let owner = TenantId::new(OWNER);
    let registry = stores(vec![first.other(), second.other()]).registry(&owner).await.answered();
    let id = &projects()[0];
    registry.record(id, "maple", "/a", 1).await.answered();
    let store = registry.store(id).await.answered();
    store.save(&scope(id), vec![note("kept")], 1).await.answered();
    assert_eq!(count(&second.other()).await, 1);

    let alone = stores(vec![first.other()]).registry(&owner).await.answered();
    let missing = alone.existing_store(id).await.err().unwrap();
    assert_eq!(missing.kind(), Kind::Store);
    assert!(missing.to_string().contains("database 2"), "{missing}");
    let Some(third) = Postgres::new() else { return };
    let exchanged = stores(vec![first.other(), third.other()]).registry(&owner).await.err().unwrap();
    assert!(exchanged.to_string().contains("is not database 2"), "{exchanged}");
    assert!(stores(vec![first.other(), second.other(), third.other()]).registry(&owner).await.is_ok());
}
