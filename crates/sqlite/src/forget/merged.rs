//! Forgets, restores and purges memories because of what another store says of them. No operation records it, so no undo
//! follows: the other store decides.

use rusqlite::{Connection, OptionalExtension};

use super::select::{selected_row, with_derived};
use super::{PURGING, SelectedRow, hide, purge, reindex_neighbours, retired, revive, tombstone};
use crate::error::Result;
use crate::read::parts;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::{ExchangedState, Reach};

/// Forgets, restores or begins to purge the memories in rows, as their states say. Returns whether memories are left to
/// be purged. Memories that are derived from a forgotten or purged one share its fate.
pub(crate) fn settle(
    connection: &Connection,
    scope: &Scope,
    states: &[(i64, ExchangedState)],
    now: Millis,
) -> Result<bool> {
    let (mut leaving, mut returning, mut purged) = (Vec::new(), Vec::new(), Vec::new());
    for (seq, state) in states {
        let Some((row, is_living)) = row_of(connection, *seq)? else { continue };
        match () {
            () if state.is_purged => purged.push(row),
            () if state.is_forgotten && is_living => leaving.push(row),
            () if !state.is_forgotten && !is_living => returning.push(row),
            () => {}
        }
    }
    if !returning.is_empty() {
        revive(connection, &returning)?;
    }
    if !leaving.is_empty() {
        leave(connection, scope, leaving, now)?;
    }
    if !purged.is_empty() {
        begin_purge(connection, scope, purged, now)?;
        return Ok(true);
    }
    Ok(false)
}

/// Returns the memory in a row, and whether it is living.
fn row_of(connection: &Connection, seq: i64) -> Result<Option<(SelectedRow, bool)>> {
    Ok(connection
        .prepare_cached(
            "SELECT seq, id, tokens, session, ordinal, tombstoned_at IS NULL FROM memories WHERE seq = ?1",
        )?
        .query_row([seq], |row| Ok((selected_row(row)?, row.get(5)?)))
        .optional()?)
}

fn leave(connection: &Connection, scope: &Scope, rows: Vec<SelectedRow>, now: Millis) -> Result<()> {
    let rows = with_derived(connection, scope, rows, Reach::Living)?;
    retired::forget_sessions(connection, &rows)?;
    for row in &rows {
        hide(connection, row.seq, now)?;
    }
    reindex_neighbours(connection, rows.iter())
}

/// Forgets the memories and records that they are being purged. [`finish_purges`](tiro_store::Forget::finish_purges)
/// removes them.
fn begin_purge(connection: &Connection, scope: &Scope, own: Vec<SelectedRow>, now: Millis) -> Result<()> {
    let seqs: Vec<i64> = own.iter().map(|row| row.seq).collect();
    let rows = with_derived(connection, scope, own, Reach::Forgotten)?;
    retired::forget_sessions(connection, &rows)?;
    let number: i64 = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'changed'")?
        .query_row([], |row| row.get(0))?;
    let operation = format!("x{number}");
    connection
        .prepare_cached("INSERT INTO operations (id, owner, kind, at) VALUES (?1, ?2, ?3, ?4)")?
        .execute((&operation, parts::own(scope), PURGING, now))?;
    tombstone(connection, &operation, &rows, now)?;
    purge::begin(connection, scope, &operation, now)?;
    for seq in seqs {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO purged (owner, id) SELECT owner, id FROM memories WHERE seq = ?1",
            )?
            .execute([seq])?;
    }
    Ok(())
}
