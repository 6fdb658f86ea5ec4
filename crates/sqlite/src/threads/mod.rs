//! Stores threads. A thread is the conversation of a session with an assistant, in the form of the blocks of a prompt.
//!
//! A turn is recorded in one transaction: its messages as memories, its blocks, the changes of the ledger, the texts of
//! files, and the receipt of the call. Only the blocks of the current epoch are kept. The texts of messages are the
//! texts of their memories, so a forgotten message has no text in the thread either. All other texts are in `blobs`,
//! compressed.
//!
//! The store doesn't decide about the content of prompts. The store only checks that a turn continues the thread for
//! which it was made, and that every inline file of the ledger has a block.

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

/// The row of a thread, with the numbers that change when the thread changes.
#[derive(Clone, Copy, Debug)]
struct ThreadVersion {
    seq: i64,
    epoch: u32,
    turns: u32,
}

/// Returns the thread; `None` if the scope has no such thread. `name` may contain an alias of the session.
fn find_thread(connection: &Connection, scope: &Scope, name: &ThreadName) -> Result<Option<ThreadVersion>> {
    let Some(session) = find_session(connection, scope, &name.session)? else { return Ok(None) };
    let sql = "SELECT seq, epoch, turns FROM threads WHERE session = ?1 AND assistant = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row((session, &name.assistant), |row| {
        Ok(ThreadVersion { seq: row.get(0)?, epoch: row.get(1)?, turns: row.get(2)? })
    });
    Ok(found.optional()?)
}

/// Like [`find_thread`], but errors with `Kind::NotFound` if the scope has no such thread.
fn required_thread(connection: &Connection, scope: &Scope, name: &ThreadName) -> Result<ThreadVersion> {
    find_thread(connection, scope, name)?.ok_or_else(|| {
        let (assistant, session) = (quoted(&name.assistant), quoted(&name.session));
        Error::not_found(format!("the session `{session}` has no thread with `{assistant}`"))
            .hint("`describe_session` lists the threads of a session")
    })
}
