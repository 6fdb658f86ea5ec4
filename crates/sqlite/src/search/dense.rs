//! Finds candidates by meaning. First scans all int8 codes in memory, then computes exact cosines from the stored
//! vectors.
//!
//! Each process caches the codes of its owner's chunks. Every transaction that changes vectors appends to the log of
//! changes, from which the caches of other processes are updated. The cache holds the group of kinds and the session of
//! each chunk. If a filter has other conditions, the list of chunks that it admits is read before the search.

use rusqlite::{Connection, OptionalExtension, params};

use super::vector_cache::Admitted;
use crate::Inner;
use crate::connection::lock;
use crate::error::{Error, Result};
use crate::read::conditions::sessions;
use crate::vectors;
use crate::vectors::Hit;
use tiro_base::scope::{Scope, Sessions};
use tiro_store::{CandidateQuery, ChunkKey, DenseCandidate};

/// Returns the living chunks that are nearest to the query in the space, up to the limit for each group.
pub(super) fn dense(
    inner: &Inner,
    connection: &Connection,
    scope: &Scope,
    query: &CandidateQuery,
    (space, embedding): (&str, &[f32]),
) -> Result<Vec<DenseCandidate>> {
    let CandidateQuery { filter, groups, limit, .. } = query;
    let is_whole_stash = filter.is_whole_stash() && scope.sessions == Sessions::All;
    let admitted = match groups.iter().any(|group| filter.narrows(*group)) {
        true if is_whole_stash => Admitted::Chunks(lock(&inner.stashed_chunks).of(connection, scope)?),
        true => Admitted::Chunks(lock(&inner.admitted_chunks).of(connection, scope, filter)?),
        false => match (sessions(connection, scope)?, &filter.without) {
            (Some(only), _) => Admitted::Sessions(only),
            (None, Some(session)) => {
                let named = Scope { sessions: Sessions::Only(vec![session.clone()]), ..scope.clone() };
                Admitted::Without(sessions(connection, &named)?.unwrap_or_default())
            }
            (None, None) => Admitted::All,
        },
    };
    let mut caches = lock(&inner.vectors);
    let cache = caches.of(space);
    cache.catch_up(connection, embedding.len())?;
    Ok(cache.near(scope, groups, embedding, &admitted, *limit))
}

/// Returns the exact cosine of the embedding with each chunk that has a vector of the space, the nearest chunk first.
pub(super) fn cosines(
    connection: &Connection,
    (space, embedding): (&str, &[f32]),
    chunks: impl Iterator<Item = ChunkKey>,
) -> Result<Vec<(ChunkKey, f64)>> {
    // On this connection, a view leaves out private rows of others.
    let mut statement =
        connection.prepare_cached("SELECT embedding FROM vectors WHERE chunk = ?1 AND space = ?2")?;
    let mut hits: Vec<Hit> =
        chunks.map(|chunk| Hit { chunk: chunk.in_store(), memory: 0, score: 0.0 }).collect();
    hits.sort_unstable_by_key(|hit| hit.chunk);
    let rescored = vectors::rescore(embedding, &hits, hits.len(), |chunk| {
        let row = statement.query_row(params![chunk, space], |row| row.get(0));
        Ok(row.optional().map_err(Error::from)?)
    })?;
    let scored = |hit: Hit| (ChunkKey::from_store(hit.chunk), f64::from(hit.score));
    Ok(rescored.into_iter().map(scored).collect())
}
