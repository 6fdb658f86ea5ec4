//! Takes expired memories out of the stash.

use std::collections::BTreeMap;

use crate::PostgresStore;
use crate::columns::number;
use crate::error::Result;
use crate::forget::{SELECTED, SelectedRow, bring_back, keys_of, selected_row, tombstone};
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::StashExpired;
use tiro_store::decide::clock;
use tiro_store::tuning::GRACE;

/// Selects the expired memories of the parts `$1`: memories that expired by `$2`, and memories older than `$3`. The
/// smallest `$3` sets no limit to the age; then the second half isn't run.
const OVER: &str = "SELECT e.owner, e.memory FROM stashed e
        WHERE e.owner = ANY ($1) AND e.expires_at <= $2 AND NOT e.is_protected
    UNION SELECT a.owner, a.memory FROM stashed a JOIN memories o ON o.owner = a.owner AND o.seq = a.memory
        WHERE $3::bigint > '-9223372036854775808'::bigint AND a.owner = ANY ($1) AND NOT a.is_protected AND o.time < $3";

/// Selects the memories of the parts `$1` that were stashed because no summary covered them, and that a summary covers
/// now.
const COVERED: &str =
    "SELECT p.owner, p.memory FROM stashed p JOIN memories o ON o.owner = p.owner AND o.seq = p.memory
    WHERE p.owner = ANY ($1) AND p.cause = 'pruning' AND EXISTS (SELECT FROM summaries u
        WHERE u.owner = o.owner AND u.session = o.session AND o.ordinal BETWEEN u.first AND u.last)";

impl PostgresStore {
    pub(crate) async fn expiring_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
    ) -> error::Result<StashExpired> {
        read!(self, scope, tx => { count(&tx, now, made_before).await })
    }

    pub(crate) async fn newest(&self, scope: &Scope) -> error::Result<Option<Millis>> {
        read!(self, scope, tx => { newest(&tx).await })
    }

    pub(crate) async fn expire_stash(
        &self,
        scope: &Scope,
        (now, made_before): (Millis, Millis),
        operation: &str,
        limit: usize,
    ) -> error::Result<StashExpired> {
        let (is_due, ahead) = read!(self, scope, tx => {
            let is_over = count(&tx, now, made_before).await? != StashExpired::default();
            let ahead = clock::ahead(newest(&tx).await?, now).filter(|_| is_over);
            Ok((is_over || !removed_early(&tx, scope, now, made_before).await?.is_empty(), ahead))
        })?;
        if ahead.is_some() || !is_due {
            return Ok(StashExpired { ahead, ..StashExpired::default() });
        }
        write!(self, scope, tx => {
            let returned = bring_back_early(&tx, scope, now, made_before).await?;
            let expired = expire(&tx, scope, (now, made_before), operation, limit).await?;
            Ok(StashExpired { returned, ..expired })
        })
    }
}

/// Returns the times that are used for removing texts. These times lie a week before `now` and `made_before`.
fn before_grace(now: Millis, made_before: Millis) -> (Millis, Millis) {
    (now.saturating_sub(GRACE), made_before.saturating_sub(GRACE))
}

/// Counts the expired living memories of the stash.
async fn count(tx: &Transaction, now: Millis, made_before: Millis) -> Result<StashExpired> {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE x.is_given), count(*) FILTER (WHERE NOT x.is_given)
         FROM ({OVER} UNION {COVERED}) d JOIN stashed x ON x.owner = d.owner AND x.memory = d.memory
         JOIN memories m ON m.owner = x.owner AND m.seq = x.memory WHERE m.tombstoned_at IS NULL"
    );
    let row = tx.only(&sql, &[&tx.seen.parts, &now, &made_before]).await?;
    Ok(StashExpired { removed: row.get(0), ended: row.get(1), ..StashExpired::default() })
}

/// Returns the latest time of storing among the memories that were stored last.
async fn newest(tx: &Transaction) -> Result<Option<Millis>> {
    // The last 64 memories are considered, because the writer of the last memory may have had a clock that was behind.
    let sql = "SELECT max(l.stored_at) FROM (
                   SELECT m.stored_at FROM unnest($1::bigint[]) AS u (owner) CROSS JOIN LATERAL (
                       SELECT seq, stored_at FROM memories WHERE owner = u.owner ORDER BY seq DESC LIMIT 64) m
                   ORDER BY m.seq DESC LIMIT 64) l";
    Ok(tx.only(sql, &[&tx.seen.parts]).await?.get(0))
}

/// Returns the texts that were removed because they expired, but that are not expired at `now`, each with its
/// operation.
async fn removed_early(
    tx: &Transaction,
    scope: &Scope,
    now: Millis,
    made_before: Millis,
) -> Result<Vec<(SelectedRow, String)>> {
    let (now, made_before) = before_grace(now, made_before);
    let sql = format!(
        "SELECT {SELECTED}, o.id FROM operations o
         JOIN operation_memories b ON b.owner = o.owner AND b.operation = o.id
         JOIN memories m ON m.owner = b.memory_owner AND m.seq = b.memory
         JOIN stashed x ON x.owner = m.owner AND x.memory = m.seq
         WHERE o.owner = $4 AND o.kind = 'expire' AND o.undone_at IS NULL AND m.owner = ANY ($1)
             AND m.tombstoned_at IS NOT NULL AND (m.owner, m.seq) NOT IN ({OVER}) ORDER BY m.seq"
    );
    let rows = tx.rows(&sql, &[&tx.seen.parts, &now, &made_before, &tx.own_known(scope)]).await?;
    rows.iter().map(|row| Ok((selected_row(row)?, row.try_get(6)?))).collect()
}

/// Restores the texts that [`removed_early`] returns. Returns how many were restored.
async fn bring_back_early(tx: &Transaction, scope: &Scope, now: Millis, made_before: Millis) -> Result<i64> {
    let own = tx.own_known(scope);
    let mut by_operation: BTreeMap<String, Vec<SelectedRow>> = BTreeMap::new();
    for (row, operation) in removed_early(tx, scope, now, made_before).await? {
        by_operation.entry(operation).or_default().push(row);
    }
    let mut returned = 0;
    for (operation, rows) in by_operation {
        let rows = bring_back(tx, (own, &operation), &rows).await?;
        let (_, seqs) = keys_of(&rows);
        let sql = "DELETE FROM operation_memories WHERE owner = $1 AND operation = $2 AND memory = ANY ($3)";
        tx.execute(sql, &[&own, &operation, &seqs]).await?;
        returned += number(rows.len());
    }
    Ok(returned)
}

async fn expire(
    tx: &Transaction,
    scope: &Scope,
    (now, made_before): (Millis, Millis),
    operation: &str,
    limit: usize,
) -> Result<StashExpired> {
    // A text that was given to the stash stays out of contexts, because it belongs only to the stash.
    let shown = format!(
        "UPDATE stashed x SET is_held_out = false FROM ({OVER}) d
         WHERE x.owner = d.owner AND x.memory = d.memory AND x.is_held_out AND NOT x.is_given"
    );
    tx.execute(&shown, &[&tx.seen.parts, &now, &made_before]).await?;
    let (at, made_before) = before_grace(now, made_before);
    let sql = format!(
        "SELECT {SELECTED}, x.is_given FROM ({OVER} UNION {COVERED}) d
         JOIN stashed x ON x.owner = d.owner AND x.memory = d.memory
         JOIN memories m ON m.owner = x.owner AND m.seq = x.memory
         WHERE m.tombstoned_at IS NULL ORDER BY m.seq LIMIT $4"
    );
    let (mut given, mut named) = (Vec::new(), Vec::new());
    for row in tx.rows(&sql, &[&tx.seen.parts, &at, &made_before, &number(limit)]).await? {
        let rows = if row.try_get(6)? { &mut given } else { &mut named };
        rows.push(selected_row(&row)?);
    }
    let (owners, seqs) = keys_of(&named);
    tx.execute(
        "DELETE FROM stashed x USING unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
         WHERE x.owner = u.owner AND x.memory = u.memory",
        &[&owners, &seqs],
    )
    .await?;
    if !given.is_empty() {
        let own = tx.own(scope).await?;
        let sql = "INSERT INTO operations (owner, id, kind, at) VALUES ($1, $2, 'expire', $3) ON CONFLICT DO NOTHING";
        tx.execute(sql, &[&own, &operation, &now]).await?;
        tombstone(tx, (own, operation), &given, now).await?;
    }
    Ok(StashExpired { removed: number(given.len()), ended: number(named.len()), ..StashExpired::default() })
}
