//! Removes a memory from the store, or only from its indexes.

use rusqlite::Connection;

use crate::error::Result;
use tiro_base::memory::Millis;

/// Removes a memory from the store and its indexes.
pub(crate) fn erase(connection: &Connection, memory: i64) -> Result<()> {
    leave_indexes(connection, memory)?;
    connection.prepare_cached("DELETE FROM memories WHERE seq = ?1")?.execute([memory])?;
    Ok(())
}

/// Sets the tombstone of a memory. A forgotten memory is in no index, so it doesn't count in how rare a word is.
pub(super) fn hide(connection: &Connection, memory: i64, now: Millis) -> Result<()> {
    connection
        .prepare_cached("UPDATE memories SET tombstoned_at = ?2 WHERE seq = ?1")?
        .execute((memory, now))?;
    leave_indexes(connection, memory)
}

/// Removes the chunks of a memory from the text index and the caches of vectors.
fn leave_indexes(connection: &Connection, memory: i64) -> Result<()> {
    log_chunks(connection, memory, "removed")?;
    connection
        .prepare_cached("DELETE FROM text_index WHERE rowid IN (SELECT seq FROM chunks WHERE memory = ?1)")?
        .execute([memory])?;
    Ok(())
}

/// Appends the embedded chunks of a memory to the log from which the caches of vectors are updated.
pub(crate) fn log_chunks(connection: &Connection, memory: i64, change: &str) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO changes (chunk, change)
             SELECT c.seq, ?2 FROM chunks c JOIN vectors v ON v.chunk = c.seq WHERE c.memory = ?1",
        )?
        .execute((memory, change))?;
    Ok(())
}
