//! Removes a memory from the store, or only from the caches of vectors.

use rusqlite::Connection;

use crate::error::Result;

/// Removes a memory from the store and its indexes.
pub(crate) fn erase(connection: &Connection, memory: i64) -> Result<()> {
    log_chunks(connection, memory, "removed")?;
    for sql in [
        "DELETE FROM text_index WHERE rowid IN (SELECT seq FROM chunks WHERE memory = ?1)",
        "DELETE FROM memories WHERE seq = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([memory])?;
    }
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
