//! Stores threads. A thread is the conversation of a session with an assistant, in the form of the blocks of a prompt.
//!
//! A turn is recorded in one transaction: its messages as memories, its blocks, the changes of the ledger, the texts of
//! files, and the receipt of the call. Only the blocks of the current epoch are kept. The texts of messages are the
//! texts of their memories, so a forgotten message has no text in the thread either. All other texts are in `blobs`,
//! compressed.
//!
//! The store doesn't decide about the content of prompts. The store only checks that a turn continues the thread for
//! which it was made, and that every inline file of the ledger has a block.

mod blobs;
mod counts;
mod read;
mod record;
mod reset;
mod turns;

use tokio_postgres::Row;

use crate::error::{Error, Result};
use crate::read::find::find_session;
use crate::transactions::Transaction;
use tiro_base::error::{Kind, quoted};
use tiro_base::scope::Scope;
use tiro_base::thread::{ContentHash, ThreadName};

/// The row of a thread, with the numbers that change when the thread changes.
#[derive(Clone, Copy, Debug)]
struct ThreadVersion {
    owner: i64,
    seq: i64,
    epoch: u32,
    turns: u32,
}

/// Returns the thread; `None` if the scope has no such thread. `name` may contain an alias of the session.
async fn find_thread(tx: &Transaction, scope: &Scope, name: &ThreadName) -> Result<Option<ThreadVersion>> {
    let Some(session) = find_session(tx, scope, &name.session).await? else { return Ok(None) };
    let sql = "SELECT seq, epoch, turns FROM threads WHERE owner = $1 AND session = $2 AND assistant = $3";
    let found = tx.row(sql, &[&session.owner, &session.seq, &name.assistant]).await?;
    let version = |row: Row| {
        Ok(ThreadVersion {
            owner: session.owner,
            seq: row.try_get(0)?,
            epoch: count(&row, 1)?,
            turns: count(&row, 2)?,
        })
    };
    found.map(version).transpose()
}

/// Like [`find_thread`], but errors with `Kind::NotFound` if the scope has no such thread.
async fn required_thread(tx: &Transaction, scope: &Scope, name: &ThreadName) -> Result<ThreadVersion> {
    find_thread(tx, scope, name).await?.ok_or_else(|| {
        let (assistant, session) = (quoted(&name.assistant), quoted(&name.session));
        Error::not_found(format!("the session `{session}` has no thread with `{assistant}`"))
            .hint("`describe_session` lists the threads of a session")
    })
}

/// Reads a number that is never negative. NULL counts as 0.
fn count(row: &Row, column: usize) -> Result<u32> {
    let number: Option<i64> = row.try_get(column)?;
    Ok(u32::try_from(number.unwrap_or(0).max(0)).unwrap_or(u32::MAX))
}

/// Reads the hash of a text or a file.
fn hash(row: &Row, column: usize) -> Result<ContentHash> {
    let bytes: &[u8] = row.try_get(column)?;
    let hash = bytes
        .try_into()
        .map_err(|error| Error::new(Kind::Store, "the store holds a hash of another length").source(error))?;
    Ok(ContentHash(hash))
}
