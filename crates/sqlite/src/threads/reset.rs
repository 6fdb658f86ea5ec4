//! Resets a thread: removes its files, or the whole thread.

use rusqlite::Connection;

use super::required_thread;
use crate::SqliteStore;
use crate::error::Result;
use crate::read::segments::find_session;
use tiro_base::error;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::ThreadName;
use tiro_store::{Reset, ResetDone};

impl SqliteStore {
    pub(crate) async fn reset_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        what: Reset,
    ) -> error::Result<ResetDone> {
        let name = name.clone();
        self.write(scope, move |connection, scope| {
            let found = required_thread(connection, scope, &name)?;
            let count = |sql: &str| -> Result<usize> {
                let count: i64 = connection.prepare_cached(sql)?.query_row([found.seq], |row| row.get(0))?;
                Ok(count as usize)
            };
            let files = count("SELECT count(*) FROM thread_files WHERE thread = ?1")?;
            if what == Reset::Files {
                return Ok(ResetDone { files, blocks: remove_files(connection, found.seq)?, turns: 0 });
            }
            let done = ResetDone {
                files,
                blocks: count("SELECT count(*) FROM thread_blocks WHERE thread = ?1")?,
                turns: count("SELECT count(*) FROM thread_turns WHERE thread = ?1")?,
            };
            connection.prepare_cached("DELETE FROM threads WHERE seq = ?1")?.execute([found.seq])?;
            Ok(done)
        })
        .await
    }
}

/// Begins a new epoch of the thread, without files. Returns how many blocks were removed.
fn remove_files(connection: &Connection, thread: i64) -> Result<usize> {
    connection.prepare_cached("DELETE FROM thread_files WHERE thread = ?1")?.execute([thread])?;
    let blocks = connection
        .prepare_cached(
            "DELETE FROM thread_blocks WHERE thread = ?1 AND part IN ('file', 'change', 'removal', 'note')",
        )?
        .execute([thread])?;
    connection
        .prepare_cached("UPDATE threads SET epoch = epoch + 1, is_fixed = 0 WHERE seq = ?1")?
        .execute([thread])?;
    Ok(blocks)
}

/// Removes the threads of a session whose memories are purged, because threads also contain texts of files. Like the
/// memories, the threads are selected by the session's name, not by an alias.
pub(crate) fn remove_of_session(connection: &Connection, scope: &Scope, session: &SessionId) -> Result<()> {
    let Some(found) = find_session(connection, scope, session)? else { return Ok(()) };
    connection
        .prepare_cached(
            "DELETE FROM threads
             WHERE session = ?1 AND session IN (SELECT seq FROM sessions WHERE seq = ?1 AND name = ?2)",
        )?
        .execute((found, session.as_str()))?;
    Ok(())
}
