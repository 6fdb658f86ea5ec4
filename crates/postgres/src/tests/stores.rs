//! The stores of a database, and what tenants see of each other's registries.

use std::path::Path;
use std::sync::Arc;

use crate::tests::engine::Postgres;
use crate::{PostgresRegistry, PostgresStores};
use tiro_base::error::Kind;
use tiro_base::money::Money;
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_conformance::fixture::{Answered, note};
use tiro_conformance::subject::OWNER;
use tiro_store::{
    Flavour, Matter, Parcel, Planned, Purpose, Registry, SentFilter, Sources, SpendLimits, Stores, Upkeep,
};

#[tokio::test]
async fn an_installation_begins_with_its_registry() {
    let Some(engine) = Postgres::new() else { return };
    let stores = PostgresStores::new(engine.installation());
    assert!(!stores.is_begun().await && !stores.has_projects().await);
    let owner = TenantId::new(OWNER);
    let registry = stores.registry(&owner).await.answered();
    assert!(stores.is_begun().await && !stores.has_projects().await);
    let id = ProjectId::from_random([1; 8]);
    registry.record(&id, "maple", "/a", 1).await.answered();
    assert!(!stores.has_projects().await, "it has no store yet");
    let store = registry.store(&id).await.answered();
    assert!(stores.has_projects().await);
    let scope = Scope::own(owner, id);
    store.save(&scope, vec![note("kept")], 1).await.answered();
    assert!(!store.tend(&scope, Upkeep::Rest).await.answered());
}

/// Guards against a former fault: each call looked for the registry, and its thread slept until a connection was free. The
/// connections belonged to calls that no thread was left to continue.
#[tokio::test]
async fn many_calls_at_once_need_one_thread() {
    let Some(engine) = Postgres::new() else { return };
    let stores = Arc::new(PostgresStores::new(engine.installation()));
    let registry = stores.registry(&TenantId::new(OWNER)).await.answered();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (stores, registry) = (Arc::clone(&stores), Arc::clone(&registry));
        calls.spawn(async move {
            let is_begun = stores.is_begun().await && !stores.has_projects().await;
            is_begun && registry.all().await.answered().is_empty()
        });
    }
    let all = tokio::time::timeout(std::time::Duration::from_secs(8), calls.join_all()).await;
    assert_eq!(all.expect("no call waits for another"), [true; 100]);
}

#[tokio::test]
async fn a_database_has_no_files() {
    let Some(engine) = Postgres::new() else { return };
    let stores = PostgresStores::new(engine.installation());
    let (files, owner, path) = (stores.files(), TenantId::new(OWNER), Path::new("/nowhere/tiro.db"));
    let scope = Scope::own(owner.clone(), tiro_conformance::subject::project());
    let refused = [
        files.settle(path, Flavour::Project, &owner).await.unwrap_err(),
        files.put_in_place(path, path, path).await.unwrap_err(),
        files.assign(path, &owner, &[]).await.unwrap_err(),
        tiro_store::Lifecycle::copy_whole(&engine.store(), &scope, path).await.unwrap_err(),
    ];
    for refused in refused {
        assert_eq!(refused.kind(), Kind::BadInput);
        assert!(refused.way_out().is_some_and(|hint| hint.contains("pg_dump")), "{refused:?}");
    }
    assert_eq!(stores.backup(&scope, path).await.err().map(|error| error.kind()), Some(Kind::NotFound));
}

fn planned() -> Planned {
    let matter = Matter::of(Purpose::Test, Sources::memories(["m1".to_owned()]));
    Planned {
        project: "p".into(),
        provider: "o3".into(),
        model: "m".into(),
        most: Money(u64::MAX),
        limits: SpendLimits::default(),
        until: 0,
        parcel: Parcel { matter, place: "host".into(), is_local: false, tokens: 1, secrets: 0 },
    }
}

#[tokio::test]
async fn a_tenant_sees_nothing_of_the_registry_of_another() {
    let Some(engine) = Postgres::new() else { return };
    let [ines, ana] =
        [OWNER, "ana"].map(|owner| PostgresRegistry::of(engine.installation(), &TenantId::new(owner)));
    let (ines, ana): (&dyn Registry, &dyn Registry) = (&ines, &ana);
    let id = ProjectId::from_random([1; 8]);
    ines.record(&id, "maple", "/a", 1).await.answered();
    drop(ines.store(&id).await.answered());
    ines.note_copy(&ProjectId::from_random([2; 8]), &id).await.answered();
    ines.note_retry_after("o3", 9).await.answered();
    assert_eq!(ines.secret([1; 32]).await.answered(), [1; 32]);
    // Amounts as great as a number of the database don't overflow.
    for now in [0, 1] {
        drop(ines.reserve(planned(), now).await.answered());
    }
    assert_eq!(ines.spending().await.answered()[0].spent, Money(i64::MAX.cast_unsigned()));
    let sent = async |registry: &dyn Registry| {
        registry.sent(SentFilter { limit: 9, ..SentFilter::default() }).await.answered().1
    };
    assert_eq!(sent(ines).await, 2);
    assert!(ana.all().await.answered().is_empty() && ana.strays().await.answered().is_empty());
    assert!(ana.by_id(&id).await.answered().is_none() && ana.by_place("/a").await.answered().is_none());
    assert!(ana.existing_store(&id).await.is_err_and(|error| error.kind() == Kind::NotFound));
    assert!(ana.original(&ProjectId::from_random([2; 8])).await.answered().is_none());
    assert_eq!(ana.retry_after("o3").await.answered(), None);
    assert_eq!(ana.secret([2; 32]).await.answered(), [2; 32]);
    assert!(ana.spending().await.answered().is_empty() && sent(ana).await == 0);
    ana.remove(&id).await.answered();
    ana.forget_place("/a").await.answered();
    assert_eq!(ines.all().await.answered().len(), 1);
}
