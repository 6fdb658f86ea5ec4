//! Resets a thread: removes its files, or the whole thread.

use super::{ThreadVersion, required_thread};
use crate::PostgresStore;
use crate::error::Result;
use crate::transactions::{Transaction, write};
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_base::thread::ThreadName;
use tiro_store::{Reset, ResetDone};

impl PostgresStore {
    pub(crate) async fn reset_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        what: Reset,
    ) -> error::Result<ResetDone> {
        write!(self, scope, tx => {
            let found = required_thread(&tx, scope, name).await?;
            let counts = tx
                .only(
                    "SELECT (SELECT count(*) FROM thread_files WHERE owner = $1 AND thread = $2),
                         (SELECT count(*) FROM thread_blocks WHERE owner = $1 AND thread = $2),
                         (SELECT count(*) FROM thread_turns WHERE owner = $1 AND thread = $2)",
                    &[&found.owner, &found.seq],
                )
                .await?;
            let count = |column| counts.get::<_, i64>(column) as usize;
            if what == Reset::Files {
                return Ok(ResetDone { files: count(0), blocks: remove_files(&tx, found).await?, turns: 0 });
            }
            let sql = "DELETE FROM threads WHERE owner = $1 AND seq = $2";
            tx.execute(sql, &[&found.owner, &found.seq]).await?;
            Ok(ResetDone { files: count(0), blocks: count(1), turns: count(2) })
        })
    }
}

/// Begins a new epoch of the thread, without files. Returns how many blocks were removed.
async fn remove_files(tx: &Transaction, thread: ThreadVersion) -> Result<usize> {
    let ThreadVersion { owner, seq, .. } = thread;
    tx.execute("DELETE FROM thread_files WHERE owner = $1 AND thread = $2", &[&owner, &seq]).await?;
    let blocks = tx
        .execute(
            "DELETE FROM thread_blocks WHERE owner = $1 AND thread = $2
                 AND part IN ('file', 'change', 'removal', 'note')",
            &[&owner, &seq],
        )
        .await?;
    let sql = "UPDATE threads SET epoch = epoch + 1, is_fixed = false WHERE owner = $1 AND seq = $2";
    tx.execute(sql, &[&owner, &seq]).await?;
    Ok(usize::try_from(blocks).unwrap_or(usize::MAX))
}
