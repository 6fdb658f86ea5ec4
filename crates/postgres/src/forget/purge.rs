//! Removes forgotten memories for good: their rows, index entries and vectors.
//!
//! A purge first sets the tombstones of its memories and records that it has begun. After that, the purge removes the
//! memories in short transactions, so that others can write in between. If the process of a purge dies, its memories
//! stay forgotten, and the next purge or an idle server finishes the removal.
//!
//! When a purge has ended, no row of a table contains the text. The bytes themselves leave the files of PostgreSQL when
//! it vacuums the tables, which it does by itself, and its write-ahead log when that is recycled. There is no log to empty
//! and no automatic backup to remove here. The statistics of the planner have no samples of texts or embeddings, only
//! samples of single words, until the tables are analysed again. Standbys, archives of the log and dumps are copies of the
//! database, and are up to those who run it.

use std::time::Instant;

use super::select::{SELECTED, SelectedRow, forgotten, keys_of, selected_row, sessions_of};
use super::{Act, give_way, retired};
use crate::PostgresStore;
use crate::error::Result;
use crate::owners;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::{Forgotten, Selection};

/// If the recorded beginning of a purge lies more than this many milliseconds in the future, the clock was wrong when
/// the purge began. Arbitrary: an hour.
const AHEAD: Millis = 3_600_000;

/// The maximum number of memories that one transaction of a purge removes. Arbitrary: this takes some tens of
/// milliseconds.
const REMOVED_AT_ONCE: i64 = 250;

impl PostgresStore {
    pub(crate) async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let forgotten = self.forget_as(scope, selection, operation, Act::Purge, now).await?;
        if forgotten.ids.is_empty() {
            return Ok(forgotten);
        }
        self.purge(scope, operation, now).await
    }

    pub(crate) async fn purge(
        &self,
        scope: &Scope,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let purged =
            write!(self, scope, tx => { begin(&tx, scope, (tx.own_known(scope), operation), now).await })?;
        self.drop_shared_answers(scope).await?;
        let finished = self.finish_purges(scope, Millis::MAX).await?;
        Ok(Forgotten { sessions: finished.sessions, ..purged })
    }

    pub(crate) async fn finish_purges(&self, scope: &Scope, before: Millis) -> error::Result<Forgotten> {
        let unfinished: error::Result<bool> = read!(self, scope, tx => {
            let sql = "SELECT FROM operations WHERE owner = $1 AND kind = 'purging' AND (at < $2 OR at > $3)";
            tx.exists(sql, &[&tx.own_known(scope), &before, &before.saturating_add(AHEAD)]).await
        });
        if !unfinished? {
            return Ok(Forgotten::default());
        }
        let mut all = Forgotten::default();
        loop {
            let began = Instant::now();
            let (removed, is_last) = write!(self, scope, tx => { remove_some(&tx, scope).await })?;
            all.tokens += removed.tokens;
            all.ids.extend(removed.ids);
            if is_last {
                break;
            }
            give_way(began).await;
        }
        all.sessions = write!(self, scope, tx => { end(&tx, scope).await })?;
        Ok(all)
    }
}

/// Records that the memories of the operation, which is named by its part and its id, are being purged, and returns
/// them. From now on, they can't be restored.
pub(super) async fn begin(
    tx: &Transaction,
    scope: &Scope,
    (own, operation): (i64, &str),
    now: Millis,
) -> Result<Forgotten> {
    let begun = tx
        .execute(
            "UPDATE operations SET kind = 'purging', at = $3 WHERE owner = $1 AND id = $2
                 AND kind IN ('forget', 'purging') AND undone_at IS NULL",
            &[&own, &operation, &now],
        )
        .await?;
    if begun == 0 {
        return Ok(Forgotten::default());
    }
    let sql = format!(
        "SELECT {SELECTED} FROM operation_memories o JOIN memories m ON m.owner = o.memory_owner AND m.seq = o.memory
         WHERE o.owner = $1 AND o.operation = $2 AND m.tombstoned_at IS NOT NULL ORDER BY m.seq"
    );
    let rows = tx.rows(&sql, &[&own, &operation]).await?;
    let rows: Vec<SelectedRow> = rows.iter().map(selected_row).collect::<Result<_>>()?;
    // A memory that was once forgotten and restored is recorded under other operations too.
    tx.execute(
        "DELETE FROM operation_memories o USING operation_memories p
         WHERE p.owner = $1 AND p.operation = $2 AND o.memory_owner = p.memory_owner AND o.memory = p.memory
             AND (o.owner, o.operation) <> ($1, $2)",
        &[&own, &operation],
    )
    .await?;
    let (parts, sessions) = (owners::of_store(tx, scope).await?, sessions_of(&rows));
    retired::forget_sessions(tx, &parts, &sessions).await?;
    let (owners, seqs): (Vec<i64>, Vec<i64>) =
        sessions.iter().map(|session| (session.owner, session.seq)).unzip();
    // A client makes the title of a session from its messages, so the title may repeat their text.
    tx.execute(
        "UPDATE sessions s SET title = NULL FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         WHERE s.owner = u.owner AND s.seq = u.seq",
        &[&owners, &seqs],
    )
    .await?;
    // Cached answers of any reader may contain the text. Much of a text can be guessed from its embedding, so cached
    // embeddings are removed too.
    tx.execute("DELETE FROM context_cache WHERE owner = ANY ($1)", &[&parts]).await?;
    tx.execute("DELETE FROM embedding_cache WHERE owner = ANY ($1)", &[&parts]).await?;
    Ok(forgotten(tx, operation.to_owned(), &rows))
}

/// Removes some of the memories that are being purged, and records their ids as purged. Returns the removed memories that
/// the reader sees, and whether all memories are removed now.
async fn remove_some(tx: &Transaction, scope: &Scope) -> Result<(Forgotten, bool)> {
    let sql = format!(
        "SELECT {SELECTED} FROM operations p
         JOIN operation_memories o ON o.owner = p.owner AND o.operation = p.id
         JOIN memories m ON m.owner = o.memory_owner AND m.seq = o.memory
         WHERE p.owner = $1 AND p.kind = 'purging' AND m.tombstoned_at IS NOT NULL ORDER BY m.seq LIMIT $2"
    );
    let rows = tx.rows(&sql, &[&tx.own_known(scope), &REMOVED_AT_ONCE]).await?;
    let is_last = (rows.len() as i64) < REMOVED_AT_ONCE;
    let rows: Vec<SelectedRow> = rows.iter().map(selected_row).collect::<Result<_>>()?;
    let (owners, seqs) = keys_of(&rows);
    tx.execute(
        "INSERT INTO purged (owner, id)
         SELECT m.owner, m.id FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         JOIN memories m ON m.owner = u.owner AND m.seq = u.seq ON CONFLICT DO NOTHING",
        &[&owners, &seqs],
    )
    .await?;
    erase(tx, &owners, &seqs).await?;
    Ok((forgotten(tx, String::new(), &rows), is_last))
}

/// Removes memories from the store. All rows that belong to them leave with them, also what operations record of them.
async fn erase(tx: &Transaction, owners: &[i64], seqs: &[i64]) -> Result<()> {
    tx.execute(
        "DELETE FROM memories m USING unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         WHERE m.owner = u.owner AND m.seq = u.seq",
        &[&owners, &seqs],
    )
    .await?;
    Ok(())
}

/// Removes operations and sessions that have no memory any more, and records that the purges are finished. Returns the
/// names of the sessions.
async fn end(tx: &Transaction, scope: &Scope) -> Result<Vec<String>> {
    let own = tx.own_known(scope);
    // Memories that were restored after the operation no longer belong to it.
    tx.execute(
        "DELETE FROM operation_memories o USING operations p
         WHERE p.owner = $1 AND p.kind = 'purging' AND o.owner = p.owner AND o.operation = p.id
             AND NOT EXISTS (SELECT FROM memories m WHERE m.owner = o.memory_owner AND m.seq = o.memory
                 AND m.tombstoned_at IS NOT NULL)",
        &[&own],
    )
    .await?;
    // An operation without memories can't be undone.
    tx.execute(
        "DELETE FROM operations p WHERE p.owner = $1 AND p.kind IN ('forget', 'expire') AND p.undone_at IS NULL
             AND NOT EXISTS (SELECT FROM operation_memories o WHERE o.owner = p.owner AND o.operation = p.id)",
        &[&own],
    )
    .await?;
    tx.execute(
        "UPDATE operations p SET kind = 'purge' WHERE p.owner = $1 AND p.kind = 'purging'
             AND NOT EXISTS (SELECT FROM operation_memories o WHERE o.owner = p.owner AND o.operation = p.id)",
        &[&own],
    )
    .await?;
    // The name of a session may repeat its text, so sessions without memories are removed.
    let rows = tx
        .rows(
            "DELETE FROM sessions s WHERE s.owner = ANY ($1)
                 AND NOT EXISTS (SELECT FROM memories m WHERE m.owner = s.owner AND m.session = s.seq)
             RETURNING s.name",
            &[&tx.seen.parts],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
