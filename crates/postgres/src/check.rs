//! Checks whether the rows of a store agree.
//!
//! The server itself finds damage of its files, because their pages have checksums, and foreign keys keep rows from
//! staying without those that they belong to. So this finds faults of programs: rows that should have been written
//! together, counts that differ, and texts that don't match their hashes.

use crate::PostgresStore;
use crate::error::Result;
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_store::{Check, Damage};

/// The number of memories that one query reads.
const PAGE: i64 = 500;

impl PostgresStore {
    /// Checks the parts of the store that the reader sees. Nothing here can be busy.
    pub(crate) async fn check(&self, scope: &Scope) -> error::Result<Check> {
        read!(self, scope, tx => {
            let mut memories = Vec::new();
            for part in &tx.seen.parts {
                memories.extend(damaged(&tx, *part).await?);
            }
            Ok(Check {
                chunks_without_vector: count(
                    &tx,
                    "SELECT count(*) FROM chunks c WHERE c.owner = ANY ($1)
                         AND NOT EXISTS (SELECT FROM vectors v WHERE v.owner = c.owner AND v.chunk = c.seq)
                         AND NOT EXISTS (SELECT FROM pending p WHERE p.owner = c.owner AND p.chunk = c.seq)",
                )
                .await?,
                chunks_unindexed: count(
                    &tx,
                    "SELECT count(*) FROM chunks c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
                     WHERE c.owner = ANY ($1) AND m.tombstoned_at IS NULL
                         AND NOT EXISTS (SELECT FROM documents d WHERE d.owner = c.owner AND d.chunk = c.seq)",
                )
                .await?,
                counts_off: count(
                    &tx,
                    "SELECT count(*) FROM sessions s LEFT JOIN (
                         SELECT owner, session, count(*) AS memories, sum(tokens) AS tokens, min(time) AS first_time,
                             max(time) AS last_time
                         FROM memories WHERE owner = ANY ($1) AND session IS NOT NULL AND tombstoned_at IS NULL
                         GROUP BY owner, session) m ON m.owner = s.owner AND m.session = s.seq
                     WHERE s.owner = ANY ($1) AND (s.memories <> coalesce(m.memories, 0)
                         OR s.tokens <> coalesce(m.tokens, 0) OR s.first_time IS DISTINCT FROM m.first_time
                         OR s.last_time IS DISTINCT FROM m.last_time)",
                )
                .await?,
                damage: Damage { memories, ..Damage::default() },
                ..Check::default()
            })
        })
    }
}

/// Returns the number that the query returns for the parts that the reader sees.
async fn count(tx: &Transaction, sql: &str) -> Result<i64> {
    Ok(tx.only(sql, &[&tx.seen.parts]).await?.try_get(0)?)
}

/// Returns the ids of the memories of a part whose texts don't match their hashes.
async fn damaged(tx: &Transaction, part: i64) -> Result<Vec<String>> {
    let sql =
        "SELECT seq, id, text, text_hash FROM memories WHERE owner = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let (mut damaged, mut last) = (Vec::new(), i64::MIN);
    loop {
        let rows = tx.rows(sql, &[&part, &last, &PAGE]).await?;
        for row in &rows {
            let text: &str = row.try_get(2)?;
            if blake3::hash(text.as_bytes()).as_bytes().as_slice() != row.try_get::<_, &[u8]>(3)? {
                damaged.push(row.try_get(1)?);
            }
        }
        match rows.last() {
            Some(row) => last = row.try_get(0)?,
            None => return Ok(damaged),
        }
    }
}
