//! Updates the names of the authors of commits according to the repository's `.mailmap`.

use rusqlite::params;

use super::reindex;
use crate::SqliteStore;
use crate::keys::{self, memory_key};
use crate::read::parts;
use crate::read::segments::bump;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{AuthorRow, ChunkRange, Renamed};

impl SqliteStore {
    pub(crate) async fn commit_authors(
        &self,
        scope: &Scope,
        before: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<AuthorRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT seq, source_id, speaker FROM memories
                 WHERE owner = ?1 AND kind = 'commit' AND provenance = 'git_commit' AND seq < ?2
                     AND source_id IS NOT NULL AND tombstoned_at IS NULL
                 ORDER BY seq DESC LIMIT ?3",
            )?;
            let before = before.map_or(i64::MAX, MemoryKey::in_store);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![scope.tenant.as_str(), before, limit], |row| {
                Ok(AuthorRow { key: memory_key(row, 0)?, sha: row.get(1)?, author: row.get(2)? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    pub(crate) async fn chunks_of(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<(MemoryKey, ChunkRange)>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT c.seq, c.start_byte, c.end_byte, c.tokens FROM chunks c JOIN memories m ON m.seq = c.memory
                 WHERE c.memory = ?1 AND m.owner = ?2 ORDER BY c.ordinal",
            )?;
            let mut found = Vec::new();
            for key in keys {
                let chunks = statement.query_map(params![key.in_store(), scope.tenant.as_str()], |row| {
                    Ok(ChunkRange {
                        key: keys::key(row, 0)?,
                        start: row.get::<_, i64>(1)? as usize,
                        end: row.get::<_, i64>(2)? as usize,
                        tokens: row.get(3)?,
                    })
                })?;
                for chunk in chunks {
                    found.push((key, chunk?));
                }
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn rename_authors(&self, scope: &Scope, renamed: Vec<Renamed>) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            let mut changed = Vec::new();
            for Renamed { key, author, indexed, tokens } in &renamed {
                let updated = connection
                    .prepare_cached(
                        "UPDATE memories SET speaker = ?3, indexed = ?4
                         WHERE seq = ?1 AND owner IN (?2, ?5) AND tombstoned_at IS NULL",
                    )?
                    .execute(params![key.in_store(), shared, author, indexed, mine])?;
                if updated == 0 {
                    continue;
                }
                for (chunk, tokens) in tokens {
                    connection
                        .prepare_cached("UPDATE chunks SET tokens = ?2 WHERE seq = ?1")?
                        .execute(params![chunk.in_store(), tokens])?;
                    changed.push(chunk.in_store());
                }
                reindex::reindex_memory(connection, *key)?;
            }
            bump(connection, &changed)
        })
        .await
    }
}
