//! Tests that need SQLite's transactions. The promises of every engine are in the crate `tiro-conformance`.

mod damage;
pub(crate) mod engine;
mod exchange;
mod promises;

use self::engine::OnFile;
use super::connection::lock;
use super::forget::Act;
use tiro_conformance::fixture::name;
use tiro_store::Selection;

/// After a purge that died, the remaining memories stay forgotten and can't be restored, and the next process continues
/// the purge.
#[tokio::test]
async fn a_purge_that_was_interrupted_is_finished() {
    let fixture = OnFile::new();
    fixture.say("s", &["oak", "ash", "elm", "fir"]).await;
    let selection = Selection::Session(name("s"));
    fixture.store.forget_as(&fixture.scope, &selection, "f1", Act::Purge, 5).await.unwrap();
    let fixture = fixture.reopened();
    assert_eq!(fixture.found("oak").await, 0);
    assert!(fixture.store.undo(&fixture.scope, None, 6).await.is_err());
    assert_eq!(fixture.store.finish_purges(&fixture.scope, 5).await.unwrap().ids.len(), 0);
    assert_eq!(fixture.store.finish_purges(&fixture.scope, 6).await.unwrap().ids.len(), 4);
    let operations = fixture.store.operations(&fixture.scope, 9).await.unwrap();
    assert_eq!((operations[0].kind.as_str(), operations[0].memories), ("purge", 0));
    assert_eq!(fixture.say("s", &["oak"]).await.len(), 1);
    assert_eq!((fixture.rows("s").await.len(), fixture.found("oak").await), (0, 0), "it doesn't come back");
}

/// The next write is durable after one that doesn't wait for the disk, also if that one panicked.
#[tokio::test]
async fn a_write_after_an_unsynced_one_waits_for_the_disk() {
    let fixture = OnFile::new();
    let synchronous = || {
        let writer = lock(&fixture.store.inner.writer);
        writer.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let during = fixture.store.write_unsynced(&fixture.scope, |changes, _| {
        Ok(changes.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!((during.await.unwrap(), synchronous()), (1, 2));
    let panicking = fixture.store.write_unsynced::<()>(&fixture.scope, |_, _| panic!("a fault of the work"));
    assert!(panicking.await.is_err());
    assert_eq!(synchronous(), 2);
}
