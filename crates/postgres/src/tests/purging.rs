//! What a purge leaves, and how it removes memories that depend on one another.

use super::engine::Postgres;
use tiro_conformance::fixture::{Fixture, message, note};
use tiro_store::Selection;

/// A replacement of a replacement is removed together with it. PostgreSQL checks the foreign keys of the rows that say so
/// while some of them are gone already, so the purge once failed.
#[tokio::test]
async fn a_chain_of_replacements_is_purged_at_once() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        let Some(engine) = Postgres::new() else { return };
        let fixture = Fixture::new(Box::new(engine));
        let mut ids = Vec::new();
        for place in order {
            ids.push((place, fixture.put(note(&format!("plan {place}"))).await));
        }
        ids.sort();
        // Each of them is stored again, and replaces the one before it.
        for pair in ids.windows(2) {
            let mut newer = note(&format!("plan {}", pair[1].0));
            newer.draft.supersedes = vec![pair[0].1.clone()];
            fixture.put(newer).await;
        }
        let purged = Selection::Ids(vec![ids[1].1.clone(), ids[2].1.clone()]);
        let purged = fixture.store.forget_for_good(&fixture.scope, &purged, "p1", 5).await.unwrap();
        assert_eq!(purged.ids.len(), 2);
        let newest = fixture.store.memory(&fixture.scope, &ids[3].1).await.unwrap().unwrap();
        let oldest = fixture.store.memory(&fixture.scope, &ids[0].1).await.unwrap().unwrap();
        assert_eq!(fixture.store.supersedes(&fixture.scope, newest.key).await.unwrap(), [oldest.key]);
    }
}

/// The statistics of the planner keep samples of the values of a column.
#[tokio::test]
async fn no_statistics_keep_a_text() {
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    let fixture = Fixture::new(Box::new(engine));
    fixture.save((0..50).map(|number| message("s", &format!("qwzxv number {number}"))).collect()).await;
    let client = store.database().connect().await.unwrap();
    client
        .batch_execute("RESET ROLE; ANALYZE memories, sessions, chunks, documents, postings, versions")
        .await
        .unwrap();
    let sql = "SELECT tablename || '.' || attname FROM pg_stats
               WHERE schemaname = current_schema() AND concat(most_common_vals, histogram_bounds) LIKE '%qwzxv number%'";
    let kept: Vec<String> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(kept, Vec::<String>::new());
}
