//! Two processes with the same database, one of which follows a store.

use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::Key;
use crate::tests::engine::Postgres;
use crate::{Databases, PostgresStore, PostgresStores};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_conformance::fixture::{Answered, HOUR, note};
use tiro_conformance::subject::{OWNER, project};
use tiro_store::{NextChange, Stores};

/// How long a notice may take. Arbitrary: this machine is busy.
const SOON: Duration = Duration::from_secs(10);

fn scope() -> Scope {
    Scope::own(TenantId::new(OWNER), project())
}

/// Returns the store as a process has it that writes to `installation`.
fn writing(installation: &Databases) -> PostgresStore {
    PostgresStore::of(installation.all().last().unwrap().clone(), project())
}

async fn save(store: &PostgresStore, text: &str) {
    store.save_reporting(&scope(), vec![note(text)], 1, &mut |_| {}).await.answered();
}

fn next(stores: &PostgresStores) -> NextChange {
    stores.next_change(&TenantId::new(OWNER), &project()).unwrap()
}

async fn arrives(change: NextChange) {
    tokio::time::timeout(SOON, change).await.expect("a notice");
}

/// Returns how many connections listen in the database of the engine, after ending them if they are `ended`.
async fn listeners(engine: &Postgres, ended: bool) -> i64 {
    let database = engine.other();
    let client = database.connect().await.unwrap();
    client.batch_execute("RESET ROLE").await.unwrap();
    let which = format!("FROM pg_stat_activity WHERE query = 'LISTEN \"{}_changes\"'", engine.schema());
    let what = if ended { "count(pg_terminate_backend(pid))" } else { "count(*)" };
    client.query_one(&format!("SELECT {what} {which}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_follower_hears_of_changes_in_any_database_and_of_nothing_else() {
    let (Some(first), Some(second)) = (Postgres::new(), Postgres::new()) else { return };
    // The store is in the second database, and the notice in the first one.
    let both = || Databases::of(vec![first.other(), second.other()]);
    let (follower, installation) = (PostgresStores::new(both()), both());
    let store = writing(&installation);
    save(&store, "oak").await;
    assert_eq!(listeners(&first, false).await, 0, "nobody follows anything yet");
    // Everybody is woken when the connection begins to listen.
    arrives(next(&follower)).await;
    // The notice of the first change may come after that.
    tokio::time::sleep(2 * super::PAUSE).await;
    let mut other = follower.next_change(&TenantId::new("another"), &project()).unwrap();
    let mut change = next(&follower);
    assert!(store.lease(&scope(), "work", "p1", HOUR).await.answered());
    let tending = store.begin_write(&scope(), crate::transactions::Durability::Synced).await.unwrap();
    tending.end().await.unwrap();
    tokio::time::sleep(2 * super::PAUSE).await;
    assert!(change.as_mut().now_or_never().is_none(), "no peer would see that");
    save(&store, "birch").await;
    arrives(change).await;
    assert!(other.as_mut().now_or_never().is_none(), "another tenant has another store");
    assert_eq!((listeners(&first, false).await, listeners(&second, false).await), (1, 0));
    // The writer hears its own changes, too.
    let own = PostgresStores::new(installation.clone());
    let change = next(&own);
    save(&store, "cedar").await;
    arrives(change).await;
}

#[tokio::test]
async fn many_changes_are_told_at_most_once_a_second() {
    let Some(engine) = Postgres::new() else { return };
    let (follower, installation) = (PostgresStores::new(engine.installation()), engine.installation());
    let store = writing(&installation);
    arrives(next(&follower)).await;
    let (began, mut notices, mut change) = (Instant::now(), 0, next(&follower));
    let saving = async {
        let mut saved = 0;
        while began.elapsed() < 3 * super::PAUSE {
            save(&store, &format!("note {saved}")).await;
            saved += 1;
        }
        saved
    };
    let mut saving = std::pin::pin!(saving);
    let saved = loop {
        tokio::select! {
            saved = saving.as_mut() => break saved,
            () = change.as_mut() => {
                notices += 1;
                change = next(&follower);
            }
        }
    };
    let most = began.elapsed().as_secs() + 1;
    assert!(saved > 2 * most && (1..=most).contains(&notices), "{notices} notices of {saved} in {most} s");
}

#[tokio::test]
async fn a_lost_connection_is_replaced_and_wakes_everybody() {
    let Some(engine) = Postgres::new() else { return };
    let (follower, installation) = (PostgresStores::new(engine.installation()), engine.installation());
    let store = writing(&installation);
    arrives(next(&follower)).await;
    for text in ["oak", "birch"] {
        let change = next(&follower);
        assert_eq!(listeners(&engine, true).await, 1);
        // What is told now is heard by nobody.
        save(&store, text).await;
        arrives(change).await;
        assert_eq!(listeners(&engine, false).await, 1);
    }
    tokio::time::sleep(2 * super::PAUSE).await;
    let change = next(&follower);
    save(&store, "cedar").await;
    arrives(change).await;
    // The connection ends with the stores.
    drop((follower, installation, store));
    let began = Instant::now();
    while listeners(&engine, false).await > 0 {
        assert!(began.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_key_is_read_as_it_was_written_and_nothing_else_is_one() {
    let (ana, ben) = (TenantId::new("ana"), TenantId::new("ben"));
    let project = ProjectId::from_random([1; 8]);
    let key = Key::of(&ana, &project);
    assert_eq!(Key::read(&key.text()), Some(key));
    assert_ne!(Key::of(&ben, &project), key);
    let signed = format!("+{}", &key.text()[1..]);
    for other in ["", "ana", signed.as_str(), &"g".repeat(32), &"0".repeat(33)] {
        assert_eq!(Key::read(other), None, "{other}");
    }
}
