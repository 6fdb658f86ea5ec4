//! Embeds pending chunks, a batch at a time, in one process per store.

use crate::ask;
use crate::caller::{Caller, WritingCaller};
use crate::engine::Engine;
use std::sync::Arc;

use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Content;
use tiro_base::scope::Scope;
use tiro_embed::{Embedding, Encode, Piece};
use tiro_intake::prepare;
use tiro_store::{PendingChunk, Store};

/// The number of chunks that are read for each thread. Arbitrary.
const BATCH: usize = 128;

/// The number of chunks that are embedded before they are stored. They take at most two seconds. Arbitrary.
const PART: usize = 64;

/// The duration of the lease on embedding, in milliseconds.
pub const LEASE: i64 = 10_000;

/// Returns the two stores in which a caller may have pending work, each with its scope: the project's store and the
/// owner's.
///
/// # Errors
///
/// Errors if the project or the installation can't be opened.
pub async fn places(engine: &Engine, caller: &WritingCaller) -> Result<[(Arc<dyn Store>, Scope); 2]> {
    let project = caller.writable_project(engine).await?;
    let owners = engine.installation().await?.registry;
    let owners = (Arc::clone(owners.memories()), project.scope.owner_wide());
    Ok([(Arc::clone(&project.store), project.scope.clone()), owners])
}

/// Embeds one batch and returns its number of chunks; 0 if none are pending.
///
/// # Errors
///
/// Errors if another process has the lease, or if no chunk could be embedded.
pub async fn step(
    engine: &Engine,
    caller: &Caller,
    store: &dyn Store,
    scope: &Scope,
    threads: usize,
) -> Result<usize> {
    if store.pending(scope).await? == 0 {
        return Ok(0);
    }
    let mut notices = Vec::new();
    let encoders = ask::encoders(engine, caller, &mut notices).await;
    let mut failed = notices.into_iter().next().map(|notice| Error::new(Kind::Model, notice));
    if encoders.each().next().is_none() {
        return Err(failed.unwrap_or_else(|| Error::new(Kind::Model, "there is no embedding model")));
    }
    let holder = engine.process();
    take_lease(store, scope, holder).await?;
    let mut done = 0;
    for content in encoders.contents() {
        let Some(encoder) = encoders.of(content.unwrap_or(Content::Prose)) else { continue };
        match batch(store, scope, holder, encoder, *content, threads).await {
            Ok(embedded) => done += embedded,
            Err(error) => failed = Some(error),
        }
    }
    if done < BATCH * threads {
        store.release(scope, "embedding", holder).await?;
    }
    match failed {
        Some(failed) if done == 0 => Err(failed),
        _ => Ok(done),
    }
}

/// Embeds up to [`BATCH`] chunks for each thread. If `content` is given, only chunks of this content are embedded.
/// Returns their number.
async fn batch(
    store: &dyn Store,
    scope: &Scope,
    holder: &str,
    encoder: &dyn Encode,
    content: Option<Content>,
    threads: usize,
) -> Result<usize> {
    let mut chunks = store.pending_chunks(scope, content, BATCH * threads).await?;
    let done = chunks.len();
    // While one part is embedded, the previous part is stored and the lease is renewed.
    let mut embedded = Vec::new();
    while !chunks.is_empty() {
        let rest = chunks.split_off(chunks.len().min(PART * threads));
        let piece =
            |chunk: &PendingChunk| Piece { memory: chunk.memory.clone(), text: prepare::pending_text(chunk) };
        let texts = chunks.iter().map(piece).collect();
        let before = std::mem::take(&mut embedded);
        let keep = async {
            save(store, scope, before).await?;
            take_lease(store, scope, holder).await
        };
        let (embeddings, kept) = tokio::join!(encoder.texts(texts, threads), keep);
        kept?;
        embedded = chunks.into_iter().zip(embeddings?).collect();
        chunks = rest;
    }
    save(store, scope, embedded).await?;
    Ok(done)
}

/// Takes or renews the lease on embedding. Errors with [`Kind::Busy`] if another process has it.
async fn take_lease(store: &dyn Store, scope: &Scope, holder: &str) -> Result<()> {
    if store.lease(scope, "embedding", holder, LEASE).await? {
        return Ok(());
    }
    Err(Error::new(Kind::Busy, "another process is already embedding").hint("it will finish the work"))
}

/// Stores embeddings, all of one space.
async fn save(store: &dyn Store, scope: &Scope, embedded: Vec<(PendingChunk, Embedding)>) -> Result<()> {
    let Some(space) = embedded.first().map(|(_, embedding)| embedding.space.to_string()) else {
        return Ok(());
    };
    let vectors = embedded.into_iter().map(|(chunk, embedding)| (chunk, embedding.vector));
    store.save_embeddings(scope, &space, vectors.collect()).await
}
