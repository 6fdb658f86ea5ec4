//! The codes of all living chunks, cached by each process.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::columns::is_answer;
use crate::error::Result;
use crate::read::parts;
use crate::vectors::{self, Filter as Rows, Hit, VectorIndex, VectorRow};
use tiro_base::memory::{Group, Kind, MemoryKey};
use tiro_base::scope::{Scope, TenantId};
use tiro_store::{ChunkKey, DenseCandidate};

/// The label of the chunks of long answers. The chunks of long answers have a separate list of hits, because they would
/// fill the list of messages. The labels of other chunks are the numbers of their groups.
const ANSWERS: usize = Group::ALL.len();

/// The number of vector spaces that a process caches: one for prose and one for code.
const SPACES: usize = 2;

/// How many threads share a scan of many vectors.
const THREADS: usize = 2;

/// The caches of the spaces that were searched most recently, the latest one last.
#[derive(Default)]
pub(crate) struct VectorCaches(Vec<VectorCache>);

impl VectorCaches {
    /// Returns the cache of `space`. The cache is empty if the space was not searched lately.
    pub(crate) fn of(&mut self, space: &str) -> &mut VectorCache {
        let known = self.0.iter().position(|cache| cache.space == space);
        let cache = match known {
            Some(place) => self.0.remove(place),
            None => VectorCache { space: space.to_owned(), ..VectorCache::default() },
        };
        if self.0.len() >= SPACES {
            self.0.remove(0);
        }
        self.0.push(cache);
        self.0.last_mut().expect("a cache was added")
    }
}

/// The codes of all living chunks with a vector of `space`, separately for each part of the store. The codes include
/// the changes in the log up to the number `seen`.
#[derive(Default)]
pub(crate) struct VectorCache {
    space: String,
    indexes: HashMap<TenantId, VectorIndex>,
    seen: i64,
}

/// The chunks of an owner that scope and filter admit.
pub(crate) enum Admitted {
    All,
    /// The chunks of these sessions, which are in ascending order. The cache has the session of each chunk.
    Sessions(Vec<i64>),
    /// All but the chunks of these sessions.
    Without(Vec<i64>),
    /// These chunks, in ascending order.
    Chunks(Arc<[i64]>),
}

/// Merges the hits of two searches. Returns the best hits of each label.
fn merged(shared: Vec<Vec<Hit>>, mine: Vec<Vec<Hit>>, limit: usize) -> Vec<Vec<Hit>> {
    let both = |(mut hits, mine): (Vec<Hit>, Vec<Hit>)| {
        hits.extend(mine);
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
        hits.truncate(limit);
        hits
    };
    shared.into_iter().zip(mine).map(both).collect()
}

impl VectorCache {
    /// Returns the chunks of the owner that are nearest to `embedding` among those in `admitted`, up to `limit`
    /// for each of `groups`, and up to `limit` chunks of long answers.
    pub(crate) fn near(
        &self,
        scope: &Scope,
        groups: &[Group],
        embedding: &[f32],
        admitted: &Admitted,
        limit: usize,
    ) -> Vec<DenseCandidate> {
        let mine = TenantId::new(parts::private(scope));
        let other = (mine != scope.tenant).then_some(&mine);
        let owners = std::iter::once(&scope.tenant).chain(other);
        let indexes = owners.filter_map(|owner| self.indexes.get(owner));
        let is_admitted = |entry: &VectorRow| match admitted {
            Admitted::All => true,
            Admitted::Sessions(sessions) => sessions.binary_search(&entry.session).is_ok(),
            Admitted::Without(sessions) => sessions.binary_search(&entry.session).is_err(),
            Admitted::Chunks(chunks) => chunks.binary_search(&entry.chunk).is_ok(),
        };
        let search = |index: &VectorIndex| {
            let rows = match admitted {
                Admitted::All => Rows::All,
                Admitted::Chunks(chunks) if chunks.len() * 10 < index.len() => Rows::Chunks(chunks),
                Admitted::Sessions(_) | Admitted::Without(_) | Admitted::Chunks(_) => {
                    Rows::Where(&is_admitted)
                }
            };
            index.search_groups(embedding, limit, rows, THREADS, ANSWERS + 1)
        };
        let Some(by_label) = indexes.map(search).reduce(|shared, mine| merged(shared, mine, limit)) else {
            return Vec::new();
        };
        let answers = groups.contains(&Group::Message).then_some(ANSWERS);
        let labels = groups.iter().map(|group| *group as usize).chain(answers);
        let hits = labels.flat_map(|label| &by_label[label]);
        let candidate = |hit: &Hit| DenseCandidate {
            memory: MemoryKey::from_store(hit.memory),
            chunk: ChunkKey::from_store(hit.chunk),
        };
        hits.map(candidate).collect()
    }

    /// Updates the cache to the state that the reading transaction sees. Does nothing if the cache is newer.
    pub(crate) fn catch_up(&mut self, connection: &Connection, dimensions: usize) -> Result<()> {
        let last: i64 = connection
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM changes")?
            .query_row([], |row| row.get(0))?;
        if last <= self.seen {
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

    /// Adds chunks of living memories, of all parts of the store. `which` is the SQL condition that selects the chunks.
    fn load(
        &mut self,
        connection: &Connection,
        dimensions: usize,
        which: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<()> {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT v.chunk, c.memory, m.kind, m.owner, v.embedding, m.session, {} FROM main.vectors v
             JOIN main.chunks c ON c.seq = v.chunk JOIN main.memories m ON m.seq = c.memory
             WHERE v.space = ?1 AND m.tombstoned_at IS NULL AND {which}",
            is_answer()
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
            let entry = VectorRow {
                chunk: row.get(0)?,
                memory: row.get(1)?,
                session: row.get::<_, Option<i64>>(5)?.unwrap_or_default(),
                group: if row.get(6)? { ANSWERS as u8 } else { kind.group() as u8 },
            };
            let owner = row.get_ref(3)?.as_str().unwrap_or_default();
            let index = match self.indexes.iter_mut().find(|(known, _)| known.as_str() == owner) {
                Some((_, index)) => index,
                None => {
                    self.indexes.entry(TenantId::new(owner)).or_insert_with(|| VectorIndex::new(dimensions))
                }
            };
            index.insert(entry, &vector);
        }
        Ok(())
    }
}
