//! Embeds pending chunks, a batch at a time, in one process per store.

use crate::caller::Caller;
use crate::embed::embed_whole;
use crate::engine::{Embedding, Engine};
use crate::error::{Error, Kind, Result};
use crate::remember;
use crate::scope::Scope;
use crate::store::{PendingChunk, Store};

/// How many chunks one thread embeds before they are stored: about half a second of work. Arbitrary.
const BATCH: usize = 32;

/// How long the lease on embedding lasts, in milliseconds.
pub(crate) const LEASE: i64 = 10_000;

/// Returns the two stores in which a caller may have pending work, each with its scope: the project's store and the
/// owner's.
///
/// # Errors
///
/// Errors if the project or the installation can't be opened.
pub(crate) async fn places<'a>(
    engine: &'a Engine,
    caller: &'a Caller,
) -> Result<[(&'a Store, &'a Scope); 2]> {
    let project = caller.project(engine).await?;
    let owners = &engine.installation().await?.registry;
    Ok([(&project.store, &project.scope), (owners.memories(), owners.scope())])
}

/// Embeds one batch and returns how many chunks it had; 0 if none are pending. Errors if another process has the lease.
pub(crate) async fn step(engine: &Engine, store: &Store, scope: &Scope, threads: usize) -> Result<usize> {
    if store.pending(scope).await? == 0 {
        return Ok(0);
    }
    let embedder = match engine.embedding().await {
        Embedding::Ready(embedder) => embedder,
        Embedding::Missing(notice) => return Err(Error::new(Kind::Model, notice)),
    };
    let holder = engine.process();
    if !store.lease(scope, "embedding", holder, LEASE).await? {
        return Err(
            Error::new(Kind::Busy, "another process is already embedding").hint("it will finish the work")
        );
    }
    let chunks = store.pending_chunks(scope, BATCH * threads).await?;
    let done = chunks.len();
    let space = embedder.space().to_string();
    let embed = move || -> Result<Vec<(PendingChunk, Vec<f32>)>> {
        let texts: Vec<String> = chunks.iter().map(remember::pending_text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = embed_whole(embedder.as_ref(), &texts, threads)?;
        Ok(chunks.into_iter().zip(embeddings).collect())
    };
    let embeddings = tokio::task::spawn_blocking(embed)
        .await
        .map_err(|error| Error::new(Kind::Model, "embedding stopped").source(error))??;
    store.save_embeddings(scope, &space, embeddings).await?;
    if done < BATCH * threads {
        store.release(scope, "embedding", holder).await?;
    }
    Ok(done)
}
