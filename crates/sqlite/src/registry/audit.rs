//! The record of calls: who did what with whose memories.

use rusqlite::{Connection, Row, params};

use crate::error::Result;
use tiro_store::{AuditFilter, AuditRow};

/// Adds a call, and removes the oldest calls if there are more than `most`.
pub(super) fn note(connection: &Connection, call: &AuditRow, most: i64) -> Result<()> {
    let json = |names: &[String]| serde_json::to_string(names).expect("names are JSON");
    connection
        .prepare_cached(
            "INSERT INTO audit (at, user, verb, project, memories, count, authors, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            call.at,
            call.user,
            call.verb,
            call.project,
            json(&call.memories),
            call.count,
            json(&call.authors),
            call.outcome
        ])?;
    let oldest = connection.last_insert_rowid() - most;
    connection.prepare_cached("DELETE FROM audit WHERE seq <= ?1")?.execute([oldest])?;
    Ok(())
}

/// Returns the calls that the filter admits, the newest first.
pub(super) fn calls(connection: &Connection, filter: &AuditFilter) -> Result<Vec<AuditRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT at, user, verb, project, memories, count, authors, outcome FROM audit
         WHERE (?1 IS NULL OR at >= ?1) AND (?2 IS NULL OR user = ?2) AND (?3 IS NULL OR project = ?3)
         ORDER BY seq DESC LIMIT ?4",
    )?;
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((filter.since, &filter.user, &filter.project, limit), row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let names = |column: usize| -> rusqlite::Result<Vec<String>> {
        Ok(serde_json::from_str(&row.get::<_, String>(column)?).unwrap_or_default())
    };
    Ok(AuditRow {
        at: row.get(0)?,
        user: row.get(1)?,
        verb: row.get(2)?,
        project: row.get(3)?,
        memories: names(4)?,
        count: row.get(5)?,
        authors: names(6)?,
        outcome: row.get(7)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_calls_are_removed() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE projects (id TEXT PRIMARY KEY)").unwrap();
        connection.execute_batch(include_str!("../../migrations/registry_0004_members.sql")).unwrap();
        for at in 1..=5 {
            note(&connection, &AuditRow { at, ..AuditRow::default() }, 3).unwrap();
        }
        let filter = AuditFilter { limit: 9, ..AuditFilter::default() };
        let left: Vec<i64> = calls(&connection, &filter).unwrap().iter().map(|call| call.at).collect();
        assert_eq!(left, [5, 4, 3]);
    }
}
