//! Marks memories as important, forgets them, and undoes forgetting.
//!
//! Forgetting a memory sets its tombstone. From then on, no answer contains the memory until `undo` restores it. What
//! was made of a forgotten message is removed by triggers (`migrations/0002_triggers.sql`).

pub(crate) mod merged;
mod purge;
mod retired;
pub(crate) mod select;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::PostgresStore;
use crate::columns::number;
use crate::error::{Error, Result};
use crate::owners::{self, SessionRef};
use crate::transactions::{Transaction, read, write};
use crate::write::reindex::reindex_memories;
use crate::write::turns;
use tiro_base::error;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::retention;
use tiro_store::{Forgotten, Operation, Reach, Selection};

pub(crate) use select::{SELECTED, SelectedRow, keys_of, selected_row};

pub(crate) use select::IS_DERIVED;
use select::{forgotten, select, select_own, with_derived};

/// The maximum number of memories that one transaction forgets or restores. More memories need several transactions. If
/// one of these transactions fails, or the process dies, the memories of the earlier transactions stay recorded under the
/// operation's id, and a repeated call continues.
const AT_ONCE: usize = if cfg!(test) { 3 } else { 5_000 };

/// The shortest and the longest pause between two transactions; during a pause, other writers get their turn. Arbitrary.
const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// The kind of an operation whose memories are not all purged yet.
const PURGING: &str = "purging";

/// The reason for forgetting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The user forgets memories, which an undo can restore.
    Forget,
    /// The user purges memories.
    Purge,
    /// The garbage collector forgets a session because of its age.
    Retire,
}

impl PostgresStore {
    pub(crate) async fn forget(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        self.forget_as(scope, selection, operation, Act::Forget, now).await
    }

    pub(crate) async fn retire(
        &self,
        scope: &Scope,
        session: &SessionId,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        self.forget_as(scope, &Selection::Session(session.clone()), operation, Act::Retire, now).await
    }

    /// Forgets the memories that `selection` names, for the reason `act`.
    pub(crate) async fn forget_as(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        act: Act,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let mut began = Instant::now();
        let begun: error::Result<_> = write!(self, scope, tx => {
            let rows = begin(&tx, scope, selection, operation, act, now).await?;
            let some = &rows[..rows.len().min(AT_ONCE)];
            if some.is_empty() {
                return Ok((Forgotten::default(), rows));
            }
            tombstone(&tx, (tx.own(scope).await?, operation), some, now).await?;
            Ok((forgotten(&tx, operation.to_owned(), some), rows))
        });
        let (mut all, rows) = begun?;
        for some in rows.chunks(AT_ONCE).skip(1) {
            give_way(began).await;
            began = Instant::now();
            let more: error::Result<Forgotten> = write!(self, scope, tx => {
                tombstone(&tx, (tx.own(scope).await?, operation), some, now).await?;
                Ok(forgotten(&tx, operation.to_owned(), some))
            });
            all.add(more?);
        }
        Ok(all)
    }

    pub(crate) async fn undo(
        &self,
        scope: &Scope,
        operation: Option<&str>,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let (id, rows) = read!(self, scope, tx => { to_bring_back(&tx, scope, operation, now).await })?;
        let mut all = Forgotten { operation: id.clone(), ..Forgotten::default() };
        // An operation without memories is undone too.
        let steps = rows.len().div_ceil(AT_ONCE).max(1);
        for step in 0..steps {
            let began = Instant::now();
            let some = &rows[step * AT_ONCE..rows.len().min((step + 1) * AT_ONCE)];
            let is_last = step + 1 == steps;
            let more: error::Result<Forgotten> = write!(self, scope, tx => {
                let own = tx.own_known(scope);
                let rows = bring_back(&tx, (own, &id), some).await?;
                let (owners, seqs) = keys_of(&rows);
                tx.execute(
                    "UPDATE stashed x SET is_protected = true FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
                     WHERE x.owner = u.owner AND x.memory = u.memory AND x.is_given AND (x.expires_at <= $5
                         OR EXISTS (SELECT FROM operations WHERE owner = $3 AND id = $4 AND kind = 'expire'))",
                    &[&owners, &seqs, &own, &id, &now],
                )
                .await?;
                if is_last {
                    let sql = "UPDATE operations SET undone_at = $3 WHERE owner = $1 AND id = $2";
                    tx.execute(sql, &[&own, &id, &now]).await?;
                }
                Ok(forgotten(&tx, id.clone(), &rows))
            });
            all.add(more?);
            if !is_last {
                give_way(began).await;
            }
        }
        Ok(all)
    }

    pub(crate) async fn undoable(&self, scope: &Scope, operation: Option<&str>) -> error::Result<Forgotten> {
        read!(self, scope, tx => {
            let (id, rows) = to_bring_back(&tx, scope, operation, self.clock().now()).await?;
            Ok(forgotten(&tx, id, &rows))
        })
    }

    pub(crate) async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> error::Result<Vec<MemoryId>> {
        let selection = Selection::Ids(ids.to_vec());
        write!(self, scope, tx => {
            let rows = select(&tx, scope, &selection, Reach::Living).await?;
            let (owners, seqs) = keys_of(&rows);
            tx.execute(
                "UPDATE memories m SET marked = $3, importance = coalesce($4, m.importance)
                 FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
                 WHERE m.owner = u.owner AND m.seq = u.seq",
                &[&owners, &seqs, &marked, &importance],
            )
            .await?;
            Ok(rows.into_iter().map(|row| row.id).collect())
        })
    }

    pub(crate) async fn operations(&self, scope: &Scope, limit: usize) -> error::Result<Vec<Operation>> {
        read!(self, scope, tx => {
            let sql = "SELECT p.id, p.kind, p.at, (SELECT count(*) FROM operation_memories o
                           WHERE o.owner = p.owner AND o.operation = p.id AND o.memory_owner = ANY ($2)),
                           p.undone_at IS NOT NULL
                       FROM operations p WHERE p.owner = $1 ORDER BY p.at DESC, p.id COLLATE \"C\" DESC LIMIT $3";
            let rows = tx.rows(sql, &[&tx.own_known(scope), &tx.seen.parts, &number(limit)]).await?;
            let operation = |row: &tokio_postgres::Row| Operation {
                id: row.get(0),
                kind: row.get(1),
                at: row.get(2),
                memories: row.get(3),
                undone: row.get(4),
            };
            Ok(rows.iter().map(operation).collect())
        })
    }
}

/// Selects the memories to forget, and records the operation if there are any.
async fn begin(
    tx: &Transaction,
    scope: &Scope,
    selection: &Selection,
    operation: &str,
    act: Act,
    now: Millis,
) -> Result<Vec<SelectedRow>> {
    // A purge also removes memories that were forgotten before.
    let reach = if act == Act::Purge { Reach::Forgotten } else { Reach::Living };
    let kind = if act == Act::Purge { PURGING } else { "forget" };
    if let (Act::Purge, Selection::Session(session)) = (act, selection) {
        remove_threads(tx, scope, session).await?;
    }
    let parts = owners::of_store(tx, scope).await?;
    let rows = select_own(tx, scope, selection, reach).await?;
    let rows = with_derived(tx, &parts, rows, reach).await?;
    match act {
        Act::Retire => retired::retire(tx, &rows).await?,
        Act::Forget | Act::Purge => retired::forget(tx, selection, &parts, &rows).await?,
    }
    if !rows.is_empty() {
        tx.execute(
            "INSERT INTO operations (owner, id, kind, at) VALUES ($1, $2, $3, $4)",
            &[&tx.own(scope).await?, &operation, &kind, &now],
        )
        .await?;
    }
    Ok(rows)
}

/// Removes the threads of a session whose memories are purged, because threads also contain texts of files. Like the
/// memories, the threads are selected by the session's name, not by an alias.
async fn remove_threads(tx: &Transaction, scope: &Scope, session: &SessionId) -> Result<()> {
    let Some(SessionRef { owner, seq }) = owners::session_called(tx, session).await? else { return Ok(()) };
    let admitted = owners::sessions(tx, scope).await?;
    if admitted.is_none_or(|admitted| admitted.contains(&SessionRef { owner, seq })) {
        tx.execute("DELETE FROM threads WHERE owner = $1 AND session = $2", &[&owner, &seq]).await?;
    }
    Ok(())
}

/// Pauses so that others can write. The pause is about as long as the step that began at `began`.
async fn give_way(began: Instant) {
    tokio::time::sleep(began.elapsed().clamp(TURN.0, TURN.1)).await;
}

/// Sets the tombstones of the memories in `rows`, and records these memories under the operation, which is named by its
/// part and its id.
pub(crate) async fn tombstone(
    tx: &Transaction,
    (own, operation): (i64, &str),
    rows: &[SelectedRow],
    now: Millis,
) -> Result<()> {
    hide(tx, rows, now).await?;
    let (owners, seqs) = keys_of(rows);
    // The memory that summarises a session may also be selected. If messages of the session were selected too,
    // forgetting these messages has already removed that memory.
    tx.execute(
        "INSERT INTO operation_memories (owner, operation, memory_owner, memory)
         SELECT $3, $4, m.owner, m.seq FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         JOIN memories m ON m.owner = u.owner AND m.seq = u.seq ON CONFLICT DO NOTHING",
        &[&owners, &seqs, &own, &operation],
    )
    .await?;
    turns::index_neighbours(tx, &places(rows)).await
}

/// Sets the tombstones of the rows. A forgotten memory is not in the text index, so it doesn't count in how rare a word is.
async fn hide(tx: &Transaction, rows: &[SelectedRow], now: Millis) -> Result<()> {
    let (owners, seqs) = keys_of(rows);
    tx.execute(
        "UPDATE memories m SET tombstoned_at = $3 FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         WHERE m.owner = u.owner AND m.seq = u.seq",
        &[&owners, &seqs, &now],
    )
    .await?;
    tx.execute(
        "DELETE FROM documents d USING unnest($1::bigint[], $2::bigint[]) AS u (owner, memory), chunks c
         WHERE c.owner = u.owner AND c.memory = u.memory AND d.owner = c.owner AND d.chunk = c.seq",
        &[&owners, &seqs],
    )
    .await?;
    Ok(())
}

/// Returns the places of the messages of sessions among the rows.
fn places<'a>(rows: impl IntoIterator<Item = &'a SelectedRow>) -> BTreeSet<turns::Place> {
    let place = |row: &SelectedRow| Some((row.owner, row.session?, row.ordinal?));
    rows.into_iter().filter_map(place).collect()
}

/// Returns the operation to undo, and the memories to restore. If `operation` is `None`, the latest operation
/// is undone. Afterwards, the transaction sees all parts of the store.
///
/// A memory stays forgotten if any memory that it is derived from stays forgotten.
async fn to_bring_back(
    tx: &Transaction,
    scope: &Scope,
    operation: Option<&str>,
    now: Millis,
) -> Result<(String, Vec<SelectedRow>)> {
    tx.see_store().await?;
    let own = tx.own_known(scope);
    let found = tx
        .row(
            "SELECT id FROM operations WHERE owner = $1 AND undone_at IS NULL
                 AND (kind = 'forget' AND $2::text IS NULL OR kind IN ('forget', 'expire') AND id = $2)
             ORDER BY at > $3, at DESC, id COLLATE \"C\" DESC LIMIT 1",
            &[&own, &operation, &now],
        )
        .await?;
    let Some(found) = found else {
        let what =
            operation.map_or("nothing to undo".to_owned(), |id| format!("no operation `{id}` to undo"));
        return Err(Error::not_found(what).hint("`forget_context` answers with the operation's id"));
    };
    let id: String = found.get(0);
    let sql = format!(
        "SELECT {SELECTED} FROM operation_memories o JOIN memories m ON m.owner = o.memory_owner AND m.seq = o.memory
         WHERE o.owner = $1 AND o.operation = $2 AND m.tombstoned_at IS NOT NULL ORDER BY m.seq"
    );
    let rows = tx.rows(&sql, &[&own, &id]).await?;
    let rows: Vec<SelectedRow> = rows.iter().map(selected_row).collect::<Result<_>>()?;
    let (owners, seqs) = keys_of(&rows);
    let sql = format!(
        "SELECT m.seq, s.seq FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         JOIN memories m ON m.owner = u.owner AND m.seq = u.seq
         JOIN memory_references r ON r.owner = m.owner AND r.memory = m.seq
         JOIN memories s ON s.id = r.target AND s.owner IN (m.owner, $3, $4)
         WHERE {IS_DERIVED} AND s.tombstoned_at IS NOT NULL"
    );
    let mut sources: HashMap<i64, Vec<i64>> = HashMap::new();
    for row in tx.rows(&sql, &[&owners, &seqs, &tx.seen.shared, &tx.seen.mine]).await? {
        sources.entry(row.get(0)).or_default().push(row.get(1));
    }
    // The sources of a memory were stored before it, so they come earlier in `rows`.
    let with_sources: Vec<(i64, Vec<i64>)> =
        rows.iter().map(|row| (row.seq, sources.remove(&row.seq).unwrap_or_default())).collect();
    let coming: HashSet<usize> = retention::coming_back(&with_sources).into_iter().collect();
    let back = rows.into_iter().enumerate().filter(|(place, _)| coming.contains(place));
    Ok((id, back.map(|(_, row)| row).collect()))
}

/// Restores the rows that are still forgotten, and returns them. Restores nothing if the operation, which is named by
/// its part and its id, has been undone or purged since the rows were read.
pub(crate) async fn bring_back(
    tx: &Transaction,
    (own, operation): (i64, &str),
    rows: &[SelectedRow],
) -> Result<Vec<SelectedRow>> {
    let (owners, seqs) = keys_of(rows);
    let came = tx
        .rows(
            "UPDATE memories m SET tombstoned_at = NULL FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
             WHERE m.owner = u.owner AND m.seq = u.seq AND m.tombstoned_at IS NOT NULL
                 AND EXISTS (SELECT FROM operations WHERE owner = $3 AND id = $4
                     AND kind IN ('forget', 'expire') AND undone_at IS NULL)
             RETURNING m.seq",
            &[&owners, &seqs, &own, &operation],
        )
        .await?;
    let came: HashSet<i64> = came.iter().map(|row| row.get(0)).collect();
    let rows: Vec<SelectedRow> = rows.iter().filter(|row| came.contains(&row.seq)).cloned().collect();
    index_revived(tx, &rows).await?;
    Ok(rows)
}

/// Adds the restored rows to the text index, and updates it for messages that got a neighbour back.
async fn index_revived(tx: &Transaction, rows: &[SelectedRow]) -> Result<()> {
    let (owners, seqs) = keys_of(rows.iter().filter(|row| row.ordinal.is_none()));
    reindex_memories(tx, &owners, &seqs).await?;
    turns::index_neighbours(tx, &places(rows)).await
}
