//! Repairs everything that can be made again from sound rows: damaged vectors, missing rows of the text index, and
//! counts.

use rusqlite::Connection;

use super::reindex;
use super::turns;
use crate::SqliteStore;
use crate::error::Result;
use crate::file::{counts, sums, verify};
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::Mended;

/// The number of memories that one step indexes again. A step makes other writers wait about fifty milliseconds.
const MEMORIES: i64 = 100;

impl SqliteStore {
    /// Removes damaged vectors whose texts are sound; their chunks then wait for new vectors. Also indexes chunks that
    /// are missing from the text index, and counts wrong counts anew. Reads all memories and vectors.
    pub async fn mend(&self, scope: &Scope) -> error::Result<Mended> {
        let damaged = self.read_all(scope, |_, connection, _| damaged_vectors(connection)).await?;
        let mut mended = Mended::default();
        if !damaged.is_empty() {
            (mended.vectors, mended.left) = self
                .write(scope, move |connection, _| {
                    let (mut requeued, mut left) = (0, 0);
                    for chunk in damaged {
                        match requeue(connection, chunk)? {
                            true => requeued += 1,
                            false => left += 1,
                        }
                    }
                    Ok((requeued, left))
                })
                .await?;
        }
        let off = self.read_all(scope, |_, connection, _| counts::off(connection)).await?;
        if off > 0 {
            mended.counts = off.unsigned_abs() as usize;
            self.write(scope, |connection, _| counts::count_anew(connection)).await?;
        }
        let mut last = i64::MIN;
        loop {
            let unindexed = self.read_all(scope, move |_, connection, _| unindexed(connection, last)).await?;
            let Some((newest, _)) = unindexed.last() else { return Ok(mended) };
            last = *newest;
            mended.rows += unindexed.iter().map(|(_, chunks)| chunks).sum::<usize>();
            self.write(scope, move |connection, _| {
                unindexed.iter().try_for_each(|(memory, _)| index(connection, *memory))
            })
            .await?;
        }
    }
}

/// Returns the chunks whose vectors differ from their sums.
fn damaged_vectors(connection: &Connection) -> Result<Vec<i64>> {
    let mut statement = connection.prepare(
        "SELECT v.chunk, v.space, v.embedding, s.sum FROM vectors v JOIN vector_sums s ON s.chunk = v.chunk",
    )?;
    let mut rows = statement.query([])?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        if sums::is_vector_damaged(row)? {
            damaged.push(row.get(0)?);
        }
    }
    Ok(damaged)
}

/// Removes the vector of the chunk, which then waits for a new vector. If the text is damaged, leaves the vector and
/// returns false.
fn requeue(connection: &Connection, chunk: i64) -> Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT m.text, m.text_hash FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = ?1",
    )?;
    let mut rows = statement.query([chunk])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    if verify::differs(row, 0, 1)? {
        return Ok(false);
    }
    connection
        .prepare_cached("INSERT INTO changes (chunk, change) VALUES (?1, 'removed')")?
        .execute([chunk])?;
    connection.prepare_cached("INSERT OR IGNORE INTO pending (chunk) VALUES (?1)")?.execute([chunk])?;
    connection.prepare_cached("DELETE FROM vectors WHERE chunk = ?1")?.execute([chunk])?;
    Ok(true)
}

/// The longest text that is indexed again, in bytes. Longer texts can exist, because earlier versions did not limit
/// texts; indexing loads the whole text into memory.
const LONGEST: i64 = 16 << 20;

/// Returns the next living memories after `last` that have chunks without a row in the text index, each with the number
/// of these chunks.
fn unindexed(connection: &Connection, last: i64) -> Result<Vec<(i64, usize)>> {
    let mut statement = connection.prepare_cached(
        "SELECT c.memory, count(*) FROM chunks c JOIN memories m ON m.seq = c.memory
         WHERE c.memory > ?1 AND m.tombstoned_at IS NULL AND c.seq NOT IN (SELECT rowid FROM text_index)
             AND octet_length(m.text) <= ?3
         GROUP BY c.memory ORDER BY c.memory LIMIT ?2",
    )?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize));
    let rows = statement.query_map((last, MEMORIES, LONGEST), row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Indexes all chunks of the memory.
fn index(connection: &Connection, memory: i64) -> Result<()> {
    let sql = "SELECT session, ordinal FROM memories WHERE seq = ?1";
    let place = connection.prepare_cached(sql)?.query_row([memory], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match place {
        (Some(session), Some(ordinal)) => turns::index_anew(connection, session, ordinal),
        _ => reindex::reindex_memory(connection, MemoryKey::from_store(memory)),
    }
}
