//! Threads: what a session and an assistant said to each other, as the blocks of a prompt.
//!
//! A turn is recorded in one transaction: its messages as memories, its blocks, the changes of the ledger, the texts of
//! files, and the receipt of the call. Only the blocks of the current epoch are kept. The texts of messages are those
//! of the memories, so a forgotten message has no text here either; all other texts are in `blobs`, compressed.
//!
//! What a prompt contains is decided elsewhere. The store only checks that a turn continues the thread that it was made
//! for, and that the ledger lists no file as inline that no block has.

pub(super) mod blobs;
mod counts;
mod read;
mod record;
mod reset;
#[cfg(test)]
mod tests;
mod turns;

use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::read::segments::find_session;
use tiro_base::error::quoted;
use tiro_base::scope::Scope;
use tiro_base::thread::ThreadName;

pub(crate) use reset::remove_of_session;

/// The row of a thread, with the numbers that tell whether it changed.
#[derive(Clone, Copy, Debug)]
struct ThreadVersion {
    seq: i64,
    epoch: u32,
    turns: u32,
}

/// Returns the thread, whose session may be named by an alias; `None` if the scope has no such thread.
fn find_thread(connection: &Connection, scope: &Scope, name: &ThreadName) -> Result<Option<ThreadVersion>> {
    let Some(session) = find_session(connection, scope, &name.session)? else { return Ok(None) };
    let sql = "SELECT seq, epoch, turns FROM threads WHERE session = ?1 AND assistant = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row((session, &name.assistant), |row| {
        Ok(ThreadVersion { seq: row.get(0)?, epoch: row.get(1)?, turns: row.get(2)? })
    });
    Ok(found.optional()?)
}

/// Returns the thread as [`find_thread`] does. Errors with `Kind::NotFound` if the scope has no such thread.
fn required_thread(connection: &Connection, scope: &Scope, name: &ThreadName) -> Result<ThreadVersion> {
    find_thread(connection, scope, name)?.ok_or_else(|| {
        let (assistant, session) = (quoted(&name.assistant), quoted(&name.session));
        Error::not_found(format!("the session `{session}` has no thread with `{assistant}`"))
            .hint("`describe_session` lists the threads of a session")
    })
}
