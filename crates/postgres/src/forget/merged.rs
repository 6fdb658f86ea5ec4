//! Forgets, restores and purges memories because of what another store says of them. No operation records it, so no undo
//! follows: the other store decides.

use std::collections::{HashMap, HashSet};

use super::select::{SELECTED, keys_of, selected_row, sessions_of, with_derived};
use super::{PURGING, SelectedRow, hide, index_revived, places, purge, retired, tombstone};
use crate::error::Result;
use crate::owners;
use crate::transactions::Transaction;
use crate::write::turns;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::{ExchangedState, Reach};

/// Forgets, restores or begins to purge memories, given by part and number, as their states say. Returns whether memories
/// are left to be purged. Memories that are derived from a forgotten or purged one share its fate.
pub(crate) async fn settle(
    tx: &Transaction,
    scope: &Scope,
    states: &HashMap<(i64, i64), ExchangedState>,
    now: Millis,
) -> Result<bool> {
    let (owners, seqs): (Vec<i64>, Vec<i64>) = states.keys().copied().unzip();
    let sql = format!(
        "SELECT {SELECTED}, m.tombstoned_at IS NULL FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         JOIN memories m ON m.owner = u.owner AND m.seq = u.seq ORDER BY m.seq"
    );
    let (mut leaving, mut returning, mut purged) = (Vec::new(), Vec::new(), Vec::new());
    for found in tx.rows(&sql, &[&owners, &seqs]).await? {
        let (row, is_living): (SelectedRow, bool) = (selected_row(&found)?, found.try_get(6)?);
        let Some(state) = states.get(&(row.owner, row.seq)) else { continue };
        match () {
            () if state.is_purged => purged.push(row),
            () if state.is_forgotten && is_living => leaving.push(row),
            () if !state.is_forgotten && !is_living => returning.push(row),
            () => {}
        }
    }
    if !returning.is_empty() {
        show(tx, &returning).await?;
        index_revived(tx, &returning).await?;
    }
    let parts = owners::of_store(tx, scope).await?;
    if !leaving.is_empty() {
        let rows = with_derived(tx, &parts, leaving, Reach::Living).await?;
        retired::forget_sessions(tx, &parts, &sessions_of(&rows)).await?;
        hide(tx, &rows, now).await?;
        turns::index_neighbours(tx, &places(&rows)).await?;
    }
    if purged.is_empty() {
        return Ok(false);
    }
    begin_purge(tx, scope, &parts, purged, now).await?;
    Ok(true)
}

async fn show(tx: &Transaction, rows: &[SelectedRow]) -> Result<()> {
    let (owners, seqs) = keys_of(rows);
    tx.execute(
        "UPDATE memories m SET tombstoned_at = NULL FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         WHERE m.owner = u.owner AND m.seq = u.seq",
        &[&owners, &seqs],
    )
    .await?;
    Ok(())
}

/// Forgets the memories and records that they are being purged. [`finish_purges`](tiro_store::Forget::finish_purges)
/// removes them.
async fn begin_purge(
    tx: &Transaction,
    scope: &Scope,
    parts: &[i64],
    own: Vec<SelectedRow>,
    now: Millis,
) -> Result<()> {
    let asked: HashSet<i64> = own.iter().map(|row| row.seq).collect();
    let rows = with_derived(tx, parts, own, Reach::Forgotten).await?;
    retired::forget_sessions(tx, parts, &sessions_of(&rows)).await?;
    let number: i64 = tx.only("SELECT nextval('keys')", &[]).await?.get(0);
    let (operation, part) = (format!("x{number}"), tx.own(scope).await?);
    tx.execute(
        "INSERT INTO operations (owner, id, kind, at) VALUES ($1, $2, $3, $4)",
        &[&part, &operation, &PURGING, &now],
    )
    .await?;
    tombstone(tx, (part, &operation), &rows, now).await?;
    purge::begin(tx, scope, (part, &operation), now).await?;
    let (owners, ids): (Vec<i64>, Vec<&str>) =
        rows.iter().filter(|row| asked.contains(&row.seq)).map(|row| (row.owner, row.id.as_str())).unzip();
    tx.execute(
        "INSERT INTO purged (owner, id) SELECT * FROM unnest($1::bigint[], $2::text[]) ON CONFLICT DO NOTHING",
        &[&owners, &ids],
    )
    .await?;
    Ok(())
}
