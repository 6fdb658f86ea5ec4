//! Candidates by meaning: an exact scan over int8 codes in memory, then exact cosines from the stored vectors.
//!
//! Each process caches the codes of its owner's chunks. Every transaction that changes vectors appends to the log of changes, from
//! which the caches of other processes catch up. The cache knows the group of kinds and the session of each chunk; a filter by
//! anything else is turned into the list of the chunks that it admits, before the search.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Group, Kind, MemoryKey};
use crate::scope::{OwnerId, Scope};
use crate::store::sqlite::lock;
use crate::store::sqlite::read::conditions::{Conditions, sessions};
use crate::store::vectors;
use crate::store::vectors::{Entry, Filter as Rows, Hit, VectorIndex};
use crate::store::{ChunkKey, DenseCandidate, Store};

/// Threads that share a scan of many vectors.
const THREADS: usize = 2;

/// The codes of every living chunk, by owner, as of one place in the log of changes.
#[derive(Default)]
pub(in crate::store::sqlite) struct VectorCache {
    space: String,
    indexes: HashMap<OwnerId, VectorIndex>,
    seen: i64,
}

impl Store {
    /// Returns for each of `groups` up to `limit` living chunks nearest to `embedding`, by approximate cosine.
    ///
    /// Scope and filter apply before the nearest are chosen. `space` names the vector space of `embedding`; vectors of other
    /// spaces are ignored. An embedding that another process stored before this call began is found.
    pub async fn dense(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        space: &str,
        embedding: &[f32],
        limit: usize,
    ) -> Result<Vec<DenseCandidate>> {
        let (filter, groups) = (filter.clone(), groups.to_vec());
        let (space, embedding) = (space.to_owned(), embedding.to_vec());
        self.read(scope, move |inner, connection, scope| {
            let admitted = match groups.iter().any(|group| filter.narrows(*group)) {
                true => Admitted::Chunks(admitted(connection, scope, &filter)?),
                false => sessions(connection, scope)?.map_or(Admitted::All, Admitted::Sessions),
            };
            let mut cache = lock(&inner.vectors);
            cache.catch_up(connection, &space, embedding.len())?;
            Ok(cache.near(scope, &groups, &embedding, &admitted, limit))
        })
        .await
    }

    /// Returns the exact cosine of `embedding` with each of `chunks` that has a vector of `space`, the nearest first.
    ///
    /// `chunks` come from searches of the same scope: the store doesn't check the owner of each again.
    pub async fn cosines(
        &self,
        scope: &Scope,
        space: &str,
        embedding: &[f32],
        chunks: Vec<ChunkKey>,
    ) -> Result<Vec<(ChunkKey, f64)>> {
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
                Ok(statement.query_row(params![chunk, space], |row| row.get(0)).optional()?)
            })?;
            let scored = |hit: Hit| (ChunkKey::from_store(hit.chunk), f64::from(hit.score));
            Ok(rescored.into_iter().map(scored).collect())
        })
        .await
    }
}

/// The chunks of an owner that scope and filter admit.
enum Admitted {
    All,
    /// The chunks of these sessions, in ascending order. The cache itself knows the sessions.
    Sessions(Vec<i64>),
    /// These chunks, in ascending order.
    Chunks(Vec<i64>),
}

/// Returns the chunks that scope and filter admit, in ascending order.
fn admitted(connection: &Connection, scope: &Scope, filter: &Filter) -> Result<Vec<i64>> {
    let conditions = Conditions::of_scope(connection, scope)?.narrowed(filter);
    let sql = format!(
        "SELECT c.seq FROM memories m JOIN chunks c ON c.memory = m.seq WHERE {} ORDER BY c.seq",
        conditions.sql
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(conditions.values), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl VectorCache {
    /// Returns for each of `groups` the nearest of the owner's chunks, among those `admitted` where that is narrowed.
    fn near(
        &self,
        scope: &Scope,
        groups: &[Group],
        embedding: &[f32],
        admitted: &Admitted,
        limit: usize,
    ) -> Vec<DenseCandidate> {
        let Some(index) = self.indexes.get(&scope.owner) else { return Vec::new() };
        let is_admitted = |entry: &Entry| match admitted {
            Admitted::All => true,
            Admitted::Sessions(sessions) => sessions.binary_search(&entry.session).is_ok(),
            Admitted::Chunks(chunks) => chunks.binary_search(&entry.chunk).is_ok(),
        };
        let rows = match admitted {
            Admitted::All => Rows::All,
            Admitted::Chunks(chunks) if chunks.len() * 10 < index.len() => Rows::Chunks(chunks),
            Admitted::Sessions(_) | Admitted::Chunks(_) => Rows::Where(&is_admitted),
        };
        let by_group = index.search_groups(embedding, limit, rows, THREADS, Group::ALL.len());
        let hits = groups.iter().flat_map(|group| &by_group[*group as usize]);
        let candidate = |hit: &Hit| DenseCandidate {
            memory: MemoryKey::from_store(hit.memory),
            chunk: ChunkKey::from_store(hit.chunk),
        };
        hits.map(candidate).collect()
    }

    /// Brings the cache to the state that the reading transaction sees, or leaves it where it is newer.
    fn catch_up(&mut self, connection: &Connection, space: &str, dimensions: usize) -> Result<()> {
        let last: i64 = connection
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM changes")?
            .query_row([], |row| row.get(0))?;
        if self.space != space {
            *self = VectorCache { space: space.to_owned(), ..VectorCache::default() };
        } else if last <= self.seen {
            return Ok(());
        }
        if self.seen == 0 {
            self.load(connection, dimensions, "1 = 1 ORDER BY v.chunk", &[])?;
        } else {
            let mut statement = connection.prepare_cached(
                "SELECT chunk, change FROM changes WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
            )?;
            let rows =
                statement.query_map((self.seen, last), |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
            let changes: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
            for (chunk, change) in changes {
                if change == "removed" {
                    for index in self.indexes.values_mut() {
                        index.remove(chunk);
                    }
                } else {
                    self.load(connection, dimensions, "v.chunk = ?2", &[&chunk])?;
                }
            }
        }
        self.seen = last;
        Ok(())
    }

    /// Adds the living chunks that `which` admits.
    fn load(
        &mut self,
        connection: &Connection,
        dimensions: usize,
        which: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<()> {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT v.chunk, c.memory, m.kind, m.owner, v.embedding, m.session FROM vectors v
             JOIN chunks c ON c.seq = v.chunk JOIN memories m ON m.seq = c.memory
             WHERE v.space = ?1 AND m.tombstoned_at IS NULL AND {which}"
        ))?;
        let space: &dyn rusqlite::ToSql = &self.space;
        let values: Vec<&dyn rusqlite::ToSql> =
            std::iter::once(space).chain(values.iter().copied()).collect();
        let mut rows = statement.query(values.as_slice())?;
        while let Some(row) = rows.next()? {
            let Some(kind) = Kind::parse(row.get_ref(2)?.as_str().unwrap_or_default()) else { continue };
            let Some(vector) = vectors::decode_f16(row.get_ref(4)?.as_blob().unwrap_or_default()) else {
                continue;
            };
            if vector.len() != dimensions {
                continue;
            }
            let entry = Entry {
                chunk: row.get(0)?,
                memory: row.get(1)?,
                session: row.get::<_, Option<i64>>(5)?.unwrap_or_default(),
                group: kind.group() as u8,
            };
            let owner = row.get_ref(3)?.as_str().unwrap_or_default();
            let index = match self.indexes.iter_mut().find(|(known, _)| known.as_str() == owner) {
                Some((_, index)) => index,
                None => {
                    self.indexes.entry(OwnerId::new(owner)).or_insert_with(|| VectorIndex::new(dimensions))
                }
            };
            index.insert(entry, &vector);
        }
        Ok(())
    }
}
