//! How a file gets what is exchanged, and how fast the exchange is.

use std::time::Instant;

use super::engine::Sqlite;
use crate::SqliteStore;
use tiro_base::scope::{AuthorId, Scope, TenantId};
use tiro_conformance::exchange::peer::{all, everything, taken};
use tiro_conformance::fixture::{SPACE, message, note};
use tiro_conformance::subject::{Engine, project};
use tiro_store::{Flavour, MergeRights, PreparedMemory, WriteMemories};

/// Files of versions that exchanged nothing have memories without numbers.
#[tokio::test]
async fn the_memories_of_an_older_file_are_given_in_the_order_in_which_they_were_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiro.db");
    let scope = Scope::own(TenantId::new("ines"), project());
    let store = SqliteStore::open(&path, Flavour::Project, project()).unwrap();
    store.save(&scope, vec![note("maple"), message("s", "willow")], 1).await.unwrap();
    let numbered = all(&store, &scope, None, &everything()).await;
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    let triggers = "SELECT 'DROP TRIGGER ' || name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%for_exchange'";
    let drops: Vec<String> = file
        .prepare(triggers)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(!drops.is_empty());
    let version: i32 = file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    file.execute_batch(&format!(
        "{}; DROP TABLE exchange; DROP TABLE absent; DELETE FROM meta WHERE key = 'changed';
         PRAGMA user_version = {}",
        drops.join("; "),
        version - 1
    ))
    .unwrap();
    drop(file);
    let store = SqliteStore::open(&path, Flavour::Project, project()).unwrap();
    let again = all(&store, &scope, None, &everything()).await;
    let ids = |changes: &[tiro_store::Change]| -> Vec<_> { changes.iter().map(|it| it.id.clone()).collect() };
    assert_eq!((ids(&again), again.len()), (ids(&numbered), 2));
    store.save(&scope, vec![note("larch")], 1).await.unwrap();
    let later = store.changes(&scope, None, &everything(), again[1].number, 9).await.unwrap();
    assert_eq!(later.changes.len(), 1);
}

#[tokio::test]
#[ignore = "measures"]
async fn an_exchange_takes_as_long_as_there_are_memories() {
    const COUNT: usize = 20_000;
    let (one, other) = (Sqlite::new(), Sqlite::new());
    let (from, to) = (one.open(), other.open());
    let scope = Scope::own(TenantId::new("ines"), project());
    let words = "the store keeps what was said and decided, and a peer gets it in the order of its changes "
        .repeat(3);
    let made = |number: usize| -> PreparedMemory {
        let mut memory = note(&format!("{number} {words}"));
        memory.chunks[0].embedding = Some((SPACE.into(), vec![0.05; 384]));
        memory
    };
    let began = Instant::now();
    from.save(&scope, (0..COUNT).map(made).collect(), 1).await.unwrap();
    eprintln!("saved {COUNT} in {:?}", began.elapsed());
    let (name, server) = (AuthorId::new("ana"), scope.read_by(AuthorId::new("ana")));
    let (mut after, mut read, mut merged, mut pages) = (0, Vec::new(), Vec::new(), 0);
    loop {
        let began = Instant::now();
        let page = from.changes(&scope, Some(&name), &everything(), after, 500).await.unwrap();
        read.push(began.elapsed());
        after = page.next;
        let incoming = page.changes.into_iter().map(taken).collect();
        let began = Instant::now();
        to.merge_changes(&server, None, "laptop", MergeRights::ALL, incoming, 5).await.unwrap();
        merged.push(began.elapsed());
        pages += 1;
        if page.is_last {
            break;
        }
    }
    let sum = |times: &[std::time::Duration]| times.iter().sum::<std::time::Duration>();
    eprintln!("{pages} pages: read in {:?}, merged in {:?}", sum(&read), sum(&merged));
    for part in [0..10, pages - 11..pages - 1] {
        eprintln!(
            "pages {part:?}: read in {:?}, merged in {:?}",
            sum(&read[part.clone()]),
            sum(&merged[part.clone()])
        );
    }
    let began = Instant::now();
    assert_eq!(all(to.as_ref(), &server, None, &everything()).await.len(), COUNT);
    eprintln!("read again, in pages of 100, in {:?}", began.elapsed());
}
