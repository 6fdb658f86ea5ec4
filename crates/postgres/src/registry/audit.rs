//! The record of calls: who did what with whose memories.

use tokio_postgres::Row;

use crate::columns::number;
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_store::{AuditFilter, AuditRow};

/// The oldest calls are removed only once in about this many calls, because finding them reads many rows.
const REMOVED_EVERY: i64 = 1024;

/// Adds a call. Now and then removes the oldest calls, so that at most `most` stay.
pub(super) async fn note(tx: &Transaction, tenant: &str, call: &AuditRow, most: i64) -> Result<()> {
    let AuditRow { at, user, verb, project, memories, count, authors, outcome } = call;
    let row = tx
        .only(
            "INSERT INTO audit (tenant, at, username, verb, project, memories, count, authors, outcome)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING seq",
            &[&tenant, at, user, verb, project, memories, count, authors, outcome],
        )
        .await?;
    let seq: i64 = row.try_get(0)?;
    if seq % REMOVED_EVERY == 0 { remove_oldest(tx, tenant, most).await } else { Ok(()) }
}

async fn remove_oldest(tx: &Transaction, tenant: &str, most: i64) -> Result<()> {
    tx.execute(
        "DELETE FROM audit WHERE tenant = $1
             AND seq <= (SELECT seq FROM audit WHERE tenant = $1 ORDER BY seq DESC OFFSET $2 LIMIT 1)",
        &[&tenant, &most],
    )
    .await?;
    Ok(())
}

/// Returns the calls that the filter admits, the newest first.
pub(super) async fn calls(tx: &Transaction, tenant: &str, filter: &AuditFilter) -> Result<Vec<AuditRow>> {
    let AuditFilter { since, user, project, limit } = filter;
    let rows = tx
        .rows(
            "SELECT at, username, verb, project, memories, count, authors, outcome FROM audit
             WHERE tenant = $1 AND ($2::bigint IS NULL OR at >= $2) AND ($3::text IS NULL OR username = $3)
                 AND ($4::text IS NULL OR project = $4)
             ORDER BY seq DESC LIMIT $5",
            &[&tenant, since, user, project, &number(*limit)],
        )
        .await?;
    rows.iter().map(row).collect()
}

fn row(row: &Row) -> Result<AuditRow> {
    Ok(AuditRow {
        at: row.try_get(0)?,
        user: row.try_get(1)?,
        verb: row.try_get(2)?,
        project: row.try_get(3)?,
        memories: row.try_get(4)?,
        count: row.try_get(5)?,
        authors: row.try_get(6)?,
        outcome: row.try_get(7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::PostgresRegistry;
    use crate::tests::engine::Postgres;
    use crate::transactions::Durability;
    use tiro_base::scope::TenantId;
    use tiro_store::Members;

    #[tokio::test]
    async fn the_oldest_calls_are_removed() {
        let Some(engine) = Postgres::new() else { return };
        let registry = PostgresRegistry::of(engine.installation(), &TenantId::new("o"));
        for at in 1..=5 {
            registry.note_call(AuditRow { at, ..AuditRow::default() }).await.unwrap();
        }
        let tx = registry.begin_write(&registry.scope, Durability::Synced).await.unwrap();
        remove_oldest(&tx, "o", 3).await.unwrap();
        tx.end().await.unwrap();
        let filter = AuditFilter { limit: 9, ..AuditFilter::default() };
        let left: Vec<i64> = registry.calls(filter).await.unwrap().iter().map(|call| call.at).collect();
        assert_eq!(left, [5, 4, 3]);
    }
}
