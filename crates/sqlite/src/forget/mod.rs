//! Marks memories as important, forgets them, and undoes forgetting.
//!
//! Forgetting a memory sets its tombstone. From then on, no answer contains the memory until `undo` restores it.

mod erase;
pub(crate) mod merged;
mod purge;
mod retired;
mod select;

use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::connection::blocking;
use crate::error::{Error, Result};
use crate::read::parts;
use crate::threads;
use crate::tuning::{FORGOTTEN_AT_ONCE, TURN};
use crate::write::reindex::reindex_memory;
use crate::write::turns;
use tiro_base::error;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::retention;
use tiro_store::{Forgotten, Operation, Reach, Selection};

use erase::hide;
pub(crate) use erase::{erase, log_chunks};

pub(crate) use select::IS_DERIVED;
pub(crate) use select::SelectedRow;
pub(crate) use select::selected_row;
use select::{select, select_own, with_derived};

/// The maximum number of memories that one transaction forgets or restores. Such a transaction takes a quarter of a
/// second. More memories need several transactions. If one of these transactions fails, or the process dies, the
/// memories of the earlier transactions stay recorded under the operation's id, and a repeated call continues.
const AT_ONCE: usize = if cfg!(test) { 3 } else { FORGOTTEN_AT_ONCE };

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

impl SqliteStore {
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
        let (selection, id) = (selection.clone(), operation.to_owned());
        // A purge also removes memories that were forgotten before.
        let reach = if act == Act::Purge { Reach::Forgotten } else { Reach::Living };
        let kind = if act == Act::Purge { PURGING } else { "forget" };
        let mut began = Instant::now();
        let (mut all, mut rest) = self
            .write(scope, move |connection, scope| {
                if let (Act::Purge, Selection::Session(session)) = (act, &selection) {
                    threads::remove_of_session(connection, scope, session)?;
                }
                let rows = select_own(connection, scope, &selection, reach)?;
                let mut rows = with_derived(connection, scope, rows, reach)?;
                match act {
                    Act::Retire => retired::retire(connection, &rows)?,
                    Act::Forget | Act::Purge => retired::forget(connection, scope, &selection, &rows)?,
                }
                if rows.is_empty() {
                    return Ok((Forgotten::default(), rows));
                }
                connection
                    .prepare_cached("INSERT INTO operations (id, owner, kind, at) VALUES (?1, ?2, ?3, ?4)")?
                    .execute((&id, parts::own(scope), kind, now))?;
                let rest = rows.split_off(rows.len().min(AT_ONCE));
                let seen = forgotten(connection, scope, id.clone(), &rows)?;
                tombstone(connection, &id, &rows, now)?;
                Ok((seen, rest))
            })
            .await?;
        while !rest.is_empty() {
            give_way(began).await?;
            began = Instant::now();
            let rows = rest.drain(..rest.len().min(AT_ONCE)).collect::<Vec<_>>();
            let id = operation.to_owned();
            let more = self.write(scope, move |connection, scope| {
                let seen = forgotten(connection, scope, id.clone(), &rows)?;
                tombstone(connection, &id, &rows, now)?;
                Ok(seen)
            });
            all.add(more.await?);
        }
        Ok(all)
    }

    pub(crate) async fn undo(
        &self,
        scope: &Scope,
        operation: Option<&str>,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let operation = operation.map(str::to_owned);
        let (id, mut rest) = self
            .read_all(scope, move |_, connection, scope| {
                to_bring_back(connection, scope, operation.as_deref(), now)
            })
            .await?;
        let mut all = Forgotten { operation: id.clone(), ..Forgotten::default() };
        loop {
            let began = Instant::now();
            let rows = rest.drain(..rest.len().min(AT_ONCE)).collect::<Vec<_>>();
            let (is_last, id) = (rest.is_empty(), id.clone());
            let more = self.write(scope, move |connection, scope| {
                let rows = bring_back(connection, &id, rows)?;
                for row in &rows {
                    connection
                        .prepare_cached(
                            "UPDATE stashed SET is_protected = 1 WHERE memory = ?1 AND is_given AND (expires_at <= ?3
                                 OR EXISTS (SELECT 1 FROM operations WHERE id = ?2 AND kind = 'expire'))",
                        )?
                        .execute((row.seq, &id, now))?;
                }
                if is_last {
                    connection
                        .prepare_cached("UPDATE operations SET undone_at = ?2 WHERE id = ?1 AND owner = ?3")?
                        .execute((&id, now, parts::own(scope)))?;
                }
                forgotten(connection, scope, id, &rows)
            });
            all.add(more.await?);
            if is_last {
                return Ok(all);
            }
            give_way(began).await?;
        }
    }

    pub(crate) async fn undoable(&self, scope: &Scope, operation: Option<&str>) -> error::Result<Forgotten> {
        let operation = operation.map(str::to_owned);
        self.read_all(scope, move |inner, connection, scope| {
            let now = inner.clock.now();
            let (id, rows) = to_bring_back(connection, scope, operation.as_deref(), now)?;
            forgotten(connection, scope, id, &rows)
        })
        .await
    }

    pub(crate) async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> error::Result<Vec<MemoryId>> {
        let ids = ids.to_vec();
        self.write(scope, move |connection, scope| {
            let mut found = Vec::new();
            for row in select(connection, scope, &Selection::Ids(ids), Reach::Living)? {
                connection
                    .prepare_cached(
                        "UPDATE memories SET marked = ?2, importance = coalesce(?3, importance) WHERE seq = ?1",
                    )?
                    .execute(params![row.seq, marked, importance])?;
                found.push(row.id);
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn operations(&self, scope: &Scope, limit: usize) -> error::Result<Vec<Operation>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT p.id, p.kind, p.at, (SELECT count(*) FROM operation_memories o WHERE o.operation = p.id),
                     p.undone_at IS NOT NULL
                 FROM operations p WHERE p.owner = ?1 ORDER BY p.at DESC, p.id DESC LIMIT ?2",
            )?;
            let rows = statement.query_map((parts::own(scope), limit as i64), |row| {
                Ok(Operation {
                    id: row.get(0)?,
                    kind: row.get(1)?,
                    at: row.get(2)?,
                    memories: row.get(3)?,
                    undone: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Pauses so that others can write. The pause is about as long as the step that began at `began`.
async fn give_way(began: Instant) -> error::Result<()> {
    let pause = began.elapsed().clamp(TURN.0, TURN.1);
    blocking(move || {
        std::thread::sleep(pause);
        Ok(())
    })
    .await
}

/// Sets the tombstones of the memories in `rows`, and records these memories under `operation`.
pub(crate) fn tombstone(
    connection: &Connection,
    operation: &str,
    rows: &[SelectedRow],
    now: Millis,
) -> Result<()> {
    for row in rows {
        hide(connection, row.seq, now)?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO operation_memories (operation, memory) VALUES (?1, ?2)")?
            .execute((operation, row.seq))?;
    }
    // The memory that summarises a session may also be selected. If messages of the session were selected too,
    // forgetting these messages has already removed that memory.
    connection
        .prepare_cached(
            "DELETE FROM operation_memories WHERE operation = ?1 AND memory NOT IN (SELECT seq FROM memories)",
        )?
        .execute([operation])?;
    reindex_neighbours(connection, rows.iter())
}

/// Returns the operation to undo, and the memories to restore. If `operation` is `None`, the latest operation
/// is undone.
///
/// A memory stays forgotten if any memory that it is derived from stays forgotten.
fn to_bring_back(
    connection: &Connection,
    scope: &Scope,
    operation: Option<&str>,
    now: Millis,
) -> Result<(String, Vec<SelectedRow>)> {
    let found: Option<String> = connection
        .prepare_cached(
            "SELECT id FROM operations WHERE owner = ?1 AND undone_at IS NULL
                 AND (kind = 'forget' AND ?2 IS NULL OR kind IN ('forget', 'expire') AND id = ?2)
             ORDER BY at > ?3, at DESC, id DESC LIMIT 1",
        )?
        .query_row((parts::own(scope), operation, now), |row| row.get(0))
        .optional()?;
    let Some(id) = found else {
        let what =
            operation.map_or("nothing to undo".to_owned(), |id| format!("no operation `{id}` to undo"));
        return Err(Error::not_found(what).hint("`forget_context` answers with the operation's id"));
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM operation_memories o
         JOIN memories m ON m.seq = o.memory
         WHERE o.operation = ?1 AND {} AND m.tombstoned_at IS NOT NULL ORDER BY m.seq",
        parts::of_tenant("m.owner", 2)
    ))?;
    let rows: Vec<SelectedRow> =
        statement.query_map((&id, scope.tenant.as_str()), selected_row)?.collect::<Result<_, _>>()?;
    let mut sources = connection.prepare_cached(&format!(
        "SELECT s.seq FROM memories m CROSS JOIN memory_references r ON r.memory = m.seq
         CROSS JOIN memories s ON s.id = r.target AND s.owner IN (m.owner, ?2, ?3)
         WHERE m.seq = ?1 AND {IS_DERIVED} AND s.tombstoned_at IS NOT NULL"
    ))?;
    let [shared, mine] = parts::both(scope);
    // The sources of a memory were stored before it, so they come earlier in `rows`.
    let mut with_sources: Vec<(i64, Vec<i64>)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let forgotten =
            sources.query_map((row.seq, &shared, &mine), |row| row.get(0))?.collect::<Result<_, _>>()?;
        with_sources.push((row.seq, forgotten));
    }
    let coming: HashSet<usize> = retention::coming_back(&with_sources).into_iter().collect();
    let back = rows.into_iter().enumerate().filter(|(place, _)| coming.contains(place));
    let back = back.map(|(_, row)| row).collect();
    Ok((id, back))
}

/// Restores the rows that are still forgotten, and returns them. Restores nothing if `operation` has been undone or
/// purged since the rows were read.
pub(crate) fn bring_back(
    connection: &Connection,
    operation: &str,
    mut rows: Vec<SelectedRow>,
) -> Result<Vec<SelectedRow>> {
    let mut came = HashSet::new();
    for row in &rows {
        let is_back = connection
            .prepare_cached(
                "UPDATE memories SET tombstoned_at = NULL WHERE seq = ?1 AND tombstoned_at IS NOT NULL
                     AND EXISTS (SELECT 1 FROM operations
                         WHERE id = ?2 AND kind IN ('forget', 'expire') AND undone_at IS NULL)",
            )?
            .execute((row.seq, operation))?;
        if is_back == 1 {
            came.insert(row.seq);
            log_chunks(connection, row.seq, "added")?;
        }
    }
    rows.retain(|row| came.contains(&row.seq));
    index_revived(connection, &rows)?;
    Ok(rows)
}

/// Restores the rows, which are forgotten.
fn revive(connection: &Connection, rows: &[SelectedRow]) -> Result<()> {
    for row in rows {
        connection
            .prepare_cached("UPDATE memories SET tombstoned_at = NULL WHERE seq = ?1")?
            .execute([row.seq])?;
        log_chunks(connection, row.seq, "added")?;
    }
    index_revived(connection, rows)
}

/// Adds the restored rows to the text index, and updates it for messages that got a neighbour back.
fn index_revived(connection: &Connection, rows: &[SelectedRow]) -> Result<()> {
    for row in rows.iter().filter(|row| row.ordinal.is_none()) {
        reindex_memory(connection, MemoryKey::from_store(row.seq))?;
    }
    reindex_neighbours(connection, rows.iter())
}

/// Updates the text index for messages that lost or gained a neighbour because `rows` were forgotten or restored.
fn reindex_neighbours<'a>(
    connection: &Connection,
    rows: impl Iterator<Item = &'a SelectedRow>,
) -> Result<()> {
    let turns: BTreeSet<(i64, i64)> = rows.filter_map(|row| row.session.zip(row.ordinal)).collect();
    turns::index_around(connection, turns)
}

/// Returns the report about the rows. Private memories of others are left out.
fn forgotten(
    connection: &Connection,
    scope: &Scope,
    operation: String,
    rows: &[SelectedRow],
) -> Result<Forgotten> {
    let hidden = parts::hidden(connection, scope, rows.iter().map(|row| row.seq))?;
    let seen = || rows.iter().filter(|row| !hidden.contains(&row.seq));
    Ok(Forgotten {
        operation,
        ids: seen().map(|row| row.id.clone()).collect(),
        tokens: seen().map(|row| row.tokens).sum(),
        sessions: Vec::new(),
    })
}
