//! Finds candidates by meaning: scans all int8 codes in memory, then computes exact cosines from the stored
//! vectors.
//!
//! Each process caches the codes of its owner's chunks. Every transaction that changes vectors appends to the
//! log of changes, from which the caches of other processes are updated. The cache holds the group of kinds and
//! the session of each chunk. If a filter asks for anything else, the list of chunks that it admits is read
//! before the search.

use rusqlite::{OptionalExtension, params};

use super::vector_cache::Admitted;
use crate::SqliteStore;
use crate::connection::lock;
use crate::error::Error;
use crate::read::conditions::sessions;
use crate::vectors;
use crate::vectors::Hit;
use tiro_base::error;
use tiro_base::filter::Filter;
use tiro_base::memory::Group;
use tiro_base::scope::{Scope, Sessions};
use tiro_store::{ChunkKey, DenseCandidate};

impl SqliteStore {
    pub(crate) async fn dense(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        space: &str,
        embedding: &[f32],
        limit: usize,
    ) -> error::Result<Vec<DenseCandidate>> {
        let (filter, groups) = (filter.clone(), groups.to_vec());
        let (space, embedding) = (space.to_owned(), embedding.to_vec());
        self.read(scope, move |inner, connection, scope| {
            let is_whole_stash = filter.is_whole_stash() && scope.sessions == Sessions::All;
            let admitted = match groups.iter().any(|group| filter.narrows(*group)) {
                true if is_whole_stash => {
                    Admitted::Chunks(lock(&inner.stashed_chunks).of(connection, scope.owner.as_str())?)
                }
                true => Admitted::Chunks(lock(&inner.admitted_chunks).of(connection, scope, &filter)?),
                false => match (sessions(connection, scope)?, &filter.without) {
                    (Some(only), _) => Admitted::Sessions(only),
                    (None, Some(session)) => {
                        let named =
                            Scope { sessions: Sessions::Only(vec![session.clone()]), ..scope.clone() };
                        Admitted::Without(sessions(connection, &named)?.unwrap_or_default())
                    }
                    (None, None) => Admitted::All,
                },
            };
            let mut caches = lock(&inner.vectors);
            let cache = caches.of(&space);
            cache.catch_up(connection, embedding.len())?;
            Ok(cache.near(scope, &groups, &embedding, &admitted, limit))
        })
        .await
    }

    pub(crate) async fn cosines(
        &self,
        scope: &Scope,
        space: &str,
        embedding: &[f32],
        chunks: Vec<ChunkKey>,
    ) -> error::Result<Vec<(ChunkKey, f64)>> {
        let (space, embedding) = (space.to_owned(), embedding.to_vec());
        self.read(scope, move |_, connection, _| {
            let mut statement =
                connection.prepare_cached("SELECT embedding FROM vectors WHERE chunk = ?1 AND space = ?2")?;
            let mut hits: Vec<Hit> = chunks
                .into_iter()
                .map(|chunk| Hit { chunk: chunk.in_store(), memory: 0, score: 0.0 })
                .collect();
            hits.sort_unstable_by_key(|hit| hit.chunk);
            let rescored = vectors::rescore(&embedding, &hits, hits.len(), |chunk| {
                let row = statement.query_row(params![chunk, space], |row| row.get(0));
                Ok(row.optional().map_err(Error::from)?)
            })?;
            let scored = |hit: Hit| (ChunkKey::from_store(hit.chunk), f64::from(hit.score));
            Ok(rescored.into_iter().map(scored).collect())
        })
        .await
    }
}
