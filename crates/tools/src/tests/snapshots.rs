//! How many times a search and a context read a store. Each read sees the store as of another moment, so what belongs
//! together is read at once.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::reads::begun;
use crate::context::retrieve_context;
use crate::memory::store_memory;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::scope::Scope;
use tiro_embed::{Embedding, Encode, Encoded, Encoders, Model, Piece, SpaceId};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::idle::later;
use tiro_recall::retrieve::rank::Weights;
use tiro_recall::retrieve::{self, SearchResult};
use tiro_sqlite::SqliteStore;
use tiro_store::ReadStore;

/// The most reads of a search: its candidates, a small store's again with the weights of a large one, and what replaced
/// the best.
const OF_A_SEARCH: u64 = 3;

/// The most reads of a context.
const OF_A_CONTEXT: u64 = 10;

/// Questions that find messages, an earlier value, a commit's id, and nothing.
const QUESTIONS: [&str; 4] =
    ["quince press", "How many quince trees do we keep?", "what did 0123abc4 change?", "zzz"];

/// An encoder that knows one direction.
struct Compass;

impl Encode for Compass {
    fn model(&self) -> Option<Model> {
        None
    }

    fn name(&self) -> String {
        "compass".to_owned()
    }

    fn question(&self, _: String) -> Encoded<'_, Embedding> {
        Box::pin(async { Ok(Embedding { space: SpaceId::new("compass"), vector: vec![1.0, 0.0] }) })
    }

    fn texts(&self, _: Vec<Piece>, _: usize) -> Encoded<'_, Vec<Embedding>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Returns how many reads of the store this process has made.
fn reads(store: &dyn ReadStore) -> u64 {
    SqliteStore::reads(Path::new(&store.place()))
}

/// Gives all chunks of a project and of its owner a vector of [`Compass`].
async fn embed_all(engine: &Engine, caller: &WritingCaller) {
    let project = caller.begin_project(engine).await.unwrap();
    let owners = &engine.installation().await.unwrap().registry;
    for (store, scope) in [(&project.store, &project.scope), (owners.memories(), owners.scope())] {
        let waiting = store.pending_chunks(scope, None, 10_000).await.unwrap();
        let vectors = waiting.into_iter().map(|chunk| (chunk, vec![0.6, 0.8])).collect();
        store.save_embeddings(scope, "compass", vectors).await.unwrap();
    }
}

#[tokio::test]
async fn a_search_reads_each_store_at_most_three_times() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = begun(folder.path(), None).await;
    let owners = json!({"text": "My quince press is old.", "scope": "owner"});
    store_memory::run(&engine, &caller, serde_json::from_value(owners).unwrap()).await.unwrap();
    while later::work_off(&engine, &caller).await.unwrap() {}
    embed_all(&engine, &caller).await;
    let project = caller.project(&engine).await.unwrap();
    let owners = &engine.installation().await.unwrap().registry;
    let stores: [(&dyn ReadStore, &Scope); 2] =
        [(project.store.as_ref(), &project.scope), (owners.memories().as_ref(), owners.scope())];
    let compass: Arc<dyn Encode> = Arc::new(Compass);
    let (mut all, mut found) = (Vec::new(), 0);
    for encoders in [Encoders::default(), Encoders::one(Some(compass))] {
        for question in QUESTIONS {
            let before = stores.map(|(store, _)| reads(store));
            let (filter, weights) = (Filter::default(), Weights::default());
            let result: Result<SearchResult> =
                retrieve::search(&stores, &encoders, question, &filter, &weights).await;
            found += result.unwrap().ranked.len();
            let after = stores.map(|(store, _)| reads(store));
            all.push((question, [after[0] - before[0], after[1] - before[1]]));
        }
    }
    assert!(found > 50, "{found} hits");
    assert!(all.iter().all(|(_, reads)| reads.iter().all(|reads| *reads <= OF_A_SEARCH)), "{all:?}");
}

#[tokio::test]
async fn a_context_reads_a_store_at_most_ten_times() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = begun(folder.path(), None).await;
    // What is stored is not made for the answer.
    for question in QUESTIONS {
        let args = json!({"query": question, "session_id": "press"});
        retrieve_context::run(&engine, &caller, serde_json::from_value(args).unwrap()).await.unwrap();
        while later::work_off(&engine, &caller).await.unwrap() {}
    }
    let project = caller.project(&engine).await.unwrap();
    let mut all = Vec::new();
    for budget in [700, 2500, 9000] {
        for question in QUESTIONS {
            for session in [Some("press"), None] {
                let args = json!({"query": question, "session_id": session, "max_tokens": budget});
                let before = reads(project.store.as_ref());
                retrieve_context::run(&engine, &caller, serde_json::from_value(args).unwrap()).await.unwrap();
                all.push((budget, question, session, reads(project.store.as_ref()) - before));
            }
        }
    }
    assert!(all.iter().all(|(.., reads)| *reads <= OF_A_CONTEXT), "{all:#?}");
}
