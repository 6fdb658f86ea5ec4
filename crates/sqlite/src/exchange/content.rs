//! Reads the content of a memory that travels.

use rusqlite::Connection;

use super::giving::Giving;
use crate::error::Result;
use crate::vectors::decode_f16;
use tiro_base::memory::{CommitRecord, Kind, Memory, MemoryId};
use tiro_store::{ExchangedChunk, ExchangedMemory};

/// Returns the content of a memory. `memory` already has the id, the author and the session under which it travels.
pub(super) fn read(giving: &Giving<'_>, memory: Memory) -> Result<ExchangedMemory> {
    let (connection, seq) = (giving.connection, memory.key.in_store());
    let strings = |sql: &str| -> Result<Vec<String>> {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([seq], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    let ids = |sql: &str| -> Result<Vec<MemoryId>> {
        let mut ids = Vec::new();
        for id in strings(sql)? {
            ids.extend(giving.travelling(&id)?);
        }
        Ok(ids)
    };
    let references = ids("SELECT target FROM memory_references WHERE memory = ?1 ORDER BY target")?;
    let supersedes = ids(&replacements("newer", "memory"))?;
    let superseded_by = ids(&replacements("memory", "newer"))?;
    let files = strings("SELECT path FROM memory_paths WHERE memory = ?1 ORDER BY path")?;
    let mut commit = None;
    if memory.kind == Kind::Commit {
        let shas = strings("SELECT sha FROM commit_ids WHERE memory = ?1 ORDER BY sha")?;
        let sha = memory.source_id.clone().or_else(|| shas.into_iter().next());
        let parents = strings("SELECT sha FROM commit_parents WHERE memory = ?1 ORDER BY place")?;
        commit = sha.map(|sha| CommitRecord { sha, parents, patch_id: None, files: files.clone() });
    }
    let chunks = chunks(connection, seq)?;
    let last = chunks.iter().map(|chunk| chunk.end).max();
    let lead = last.filter(|_| memory.indexed.is_some());
    Ok(ExchangedMemory { memory, references, supersedes, superseded_by, lead, files, commit, chunks })
}

/// Returns the query for the memories that stand in the column `to` of replacements, if the memory `?1` stands in the
/// column `from`. A forgotten memory may never have reached the peer, so what lies behind it belongs to them.
fn replacements(from: &str, to: &str) -> String {
    format!(
        "WITH RECURSIVE found (seq) AS (
             SELECT {to} FROM superseded WHERE {from} = ?1
             UNION SELECT s.{to} FROM found f JOIN memories m ON m.seq = f.seq AND m.tombstoned_at IS NOT NULL
                 JOIN superseded s ON s.{from} = f.seq)
         SELECT m.id FROM found f JOIN memories m ON m.seq = f.seq ORDER BY m.id"
    )
}

/// Returns the chunks of the memory in a row, with their vectors.
fn chunks(connection: &Connection, seq: i64) -> Result<Vec<ExchangedChunk>> {
    let mut statement = connection.prepare_cached(
        "SELECT c.start_byte, c.end_byte, v.space, v.embedding FROM chunks c LEFT JOIN vectors v ON v.chunk = c.seq
         WHERE c.memory = ?1 ORDER BY c.ordinal",
    )?;
    let rows = statement.query_map([seq], |row| {
        let embedding = row.get::<_, Option<Vec<u8>>>(3)?.as_deref().and_then(decode_f16);
        Ok(ExchangedChunk {
            start: row.get::<_, i64>(0)?.unsigned_abs() as usize,
            end: row.get::<_, i64>(1)?.unsigned_abs() as usize,
            embedding: row.get::<_, Option<String>>(2)?.zip(embedding),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
