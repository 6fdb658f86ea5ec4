//! A long list of vectors gets an index in the background, and searches find the same by it.

use std::time::{Duration, Instant};

use crate::tests::engine::Postgres;
use tiro_base::filter::Filter;
use tiro_base::scope::{Scope, TenantId};
use tiro_conformance::fixture::{Answered, SPACE, by_meaning, embedded, note};
use tiro_conformance::subject::{OWNER, project};
use tiro_store::{Selection, WriteMemories};

fn scope() -> Scope {
    Scope::own(TenantId::new(OWNER), project())
}

/// How many notes there are.
const NOTES: u32 = 600;

/// Returns numbers that look random, from -1 to 1.
fn embedding(seed: u32) -> [f32; 4] {
    [1, 2, 3, 4].map(|place: u32| {
        let mixed = (seed * 4 + place).wrapping_mul(2_654_435_761) >> 8;
        f32::from((mixed % 2001) as u16) / 1000.0 - 1.0
    })
}

/// Runs a statement that returns a number, whatever row security says.
fn number(engine: &Postgres, sql: &str) -> i64 {
    let (database, sql) = (engine.other(), sql.replace("SCHEMA", engine.schema()));
    let read = async move {
        let client = database.connect().await?;
        client.batch_execute("RESET ROLE").await?;
        Ok(client.query_one(&sql, &[]).await?.try_get::<_, i64>(0)?)
    };
    engine.other().wait_for(read).unwrap()
}

const GRAPHS: &str = "SELECT count(*) FROM pg_index i JOIN pg_stat_all_indexes s USING (indexrelid)
    WHERE s.schemaname = 'SCHEMA' AND s.indexrelname LIKE 'graph_%' AND i.indisvalid";
const READS: &str = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_all_indexes
    WHERE schemaname = 'SCHEMA' AND indexrelname LIKE 'graph_%'";

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_gets_a_graph() {
    let Some(engine) = Postgres::new() else { return };
    let store = engine.store();
    let notes = (0..NOTES).map(|seed| embedded(note(&format!("maple {seed}")), embedding(seed))).collect();
    store.save(&scope(), notes, 1).await.answered();
    // A vector of another length is in the list, and a further one comes when the graph is there.
    let odd = |text: &str| {
        let mut odd = embedded(note(text), embedding(0));
        odd.chunks[0].embedding = Some((SPACE.to_owned(), vec![1.0; 3]));
        vec![odd]
    };
    store.save(&scope(), odd("larch"), 1).await.answered();
    let filter = Filter::default();
    let near = async |seed: u32| {
        let query = by_meaning(&filter, SPACE, &embedding(NOTES + seed), 20);
        let found = store.candidates(&scope(), query).await.answered().near.answered();
        let keys: Vec<_> = found.into_iter().map(|candidate| candidate.memory).collect();
        store
            .memories(&scope(), keys)
            .await
            .answered()
            .into_iter()
            .map(|memory| memory.id)
            .collect::<Vec<_>>()
    };
    let exact = [near(1).await, near(2).await, near(3).await];
    assert_eq!(number(&engine, GRAPHS), 0, "the list is short");

    store.database().graphs().begin_at(500);
    assert_eq!(near(1).await, exact[0], "searches are exact while the graph is built");
    let began = Instant::now();
    while number(&engine, GRAPHS) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no graph was built");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.database().graphs().begin_at(500);
    let by_graph = [near(1).await, near(2).await, near(3).await];
    for (found, exact) in by_graph.iter().zip(&exact) {
        let same = found.iter().filter(|id| exact.contains(id)).count();
        assert!(found.len() == 20 && same >= 18, "{found:?} {exact:?}");
    }
    let reads = || number(&engine, READS);
    let began = Instant::now();
    // The server counts some time later.
    while reads() == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "the graph was not used");
        near(1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    store.save(&scope(), odd("birch"), 1).await.answered();
    let gone = by_graph[0].clone();
    store.forget(&scope(), &Selection::Ids(gone.clone()), "o1", 5).await.answered();
    let next = near(1).await;
    assert!(next.len() == 20 && !next.iter().any(|id| gone.contains(id)), "{next:?}");
}
