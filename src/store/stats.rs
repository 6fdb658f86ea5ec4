//! How much a store holds.

use super::Store;
use crate::error::Result;
use crate::scope::Scope;

/// Living memories of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind's word.
    pub kind: String,
    /// How many.
    pub memories: i64,
    /// Bytes of their texts.
    pub bytes: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// What a store holds for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Living memories by kind, by the kind's word.
    pub kinds: Vec<KindCount>,
    /// Sessions with at least one memory, forgotten ones included.
    pub sessions: i64,
    /// Chunks with an embedding.
    pub embedded: i64,
    /// Chunks that wait for one.
    pub pending: i64,
    /// Memories that are forgotten and can be brought back.
    pub tombstoned: i64,
    /// Bytes of the file and its write-ahead log.
    pub file_bytes: u64,
}

impl Store {
    /// Returns whether the store holds no living memory of the scope's owner.
    pub async fn is_empty(&self, scope: &Scope) -> Result<bool> {
        self.read(scope, |_, connection, scope| {
            let sql = "SELECT NOT EXISTS (SELECT 1 FROM memories WHERE owner = ?1 AND tombstoned_at IS NULL)";
            Ok(connection.prepare_cached(sql)?.query_row([scope.owner.as_str()], |row| row.get(0))?)
        })
        .await
    }

    /// Returns what the store holds for the scope's owner.
    pub async fn stats(&self, scope: &Scope) -> Result<Stats> {
        self.read(scope, |inner, connection, scope| {
            let owner = scope.owner.as_str();
            let mut statement = connection.prepare_cached(
                "SELECT kind, count(*), sum(length(CAST(text AS BLOB))), sum(tokens) FROM memories
                 WHERE owner = ?1 AND tombstoned_at IS NULL GROUP BY kind ORDER BY kind",
            )?;
            let kinds = statement.query_map([owner], |row| {
                Ok(KindCount {
                    kind: row.get(0)?,
                    memories: row.get(1)?,
                    bytes: row.get(2)?,
                    tokens: row.get(3)?,
                })
            })?;
            let kinds: Vec<KindCount> = kinds.collect::<Result<_, _>>()?;
            let count = |sql: &str| -> Result<i64> {
                Ok(connection.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?)
            };
            let wal = inner.path.with_extension("db-wal");
            let size = |path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            Ok(Stats {
                kinds,
                sessions: count("SELECT count(*) FROM sessions WHERE owner = ?1")?,
                embedded: count(
                    "SELECT count(*) FROM vectors v JOIN chunks c ON c.seq = v.chunk
                     JOIN memories m ON m.seq = c.memory WHERE m.owner = ?1",
                )?,
                pending: count(
                    "SELECT count(*) FROM pending p JOIN chunks c ON c.seq = p.chunk
                     JOIN memories m ON m.seq = c.memory WHERE m.owner = ?1",
                )?,
                tombstoned: count(
                    "SELECT count(*) FROM memories WHERE owner = ?1 AND tombstoned_at IS NOT NULL",
                )?,
                file_bytes: size(&inner.path) + size(&wal),
            })
        })
        .await
    }
}
