//! Tests that need SQLite's transactions. The promises of every engine are in the crate `tiro-conformance`.

mod damage;
pub(crate) mod engine;
mod promises;

use self::engine::Sqlite;
use super::connection::lock;
use super::forget::Act;
use tiro_conformance::place::{Place, name};
use tiro_store::Selection;

/// After a purge that died, the remaining memories stay forgotten and can't be restored, and the next process continues
/// the purge.
#[tokio::test]
async fn a_purge_that_was_interrupted_is_finished() {
    let place = Place::new(Sqlite::new());
    place.say("s", &["oak", "ash", "elm", "fir"]).await;
    let selection = Selection::Session(name("s"));
    place.store.forget_as(&place.scope, &selection, "f1", Act::Purge, 5).await.unwrap();
    let place = place.reopened();
    assert_eq!(place.found("oak").await, 0);
    assert!(place.store.undo(&place.scope, None, 6).await.is_err());
    assert_eq!(place.store.finish_purges(&place.scope, 5).await.unwrap().ids.len(), 0);
    assert_eq!(place.store.finish_purges(&place.scope, 6).await.unwrap().ids.len(), 4);
    let operations = place.store.operations(&place.scope, 9).await.unwrap();
    assert_eq!((operations[0].kind.as_str(), operations[0].memories), ("purge", 0));
    assert_eq!(place.say("s", &["oak"]).await.len(), 1);
    assert_eq!((place.rows("s").await.len(), place.found("oak").await), (0, 0), "it doesn't come back");
}

/// The next write is durable after one that doesn't wait for the disk, also if that one panicked.
#[tokio::test]
async fn a_write_after_an_unsynced_one_waits_for_the_disk() {
    let place = Place::new(Sqlite::new());
    let synchronous = || {
        let writer = lock(&place.store.inner.writer);
        writer.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let during = place.store.write_unsynced(&place.scope, |changes, _| {
        Ok(changes.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!((during.await.unwrap(), synchronous()), (1, 2));
    let panicking = place.store.write_unsynced::<()>(&place.scope, |_, _| panic!("a fault of the work"));
    assert!(panicking.await.is_err());
    assert_eq!(synchronous(), 2);
}
