//! The graph of commits, cached so that the next process doesn't have to read it from git again.

use rusqlite::params;

use crate::SqliteStore;
use crate::error::Result;
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_store::GraphRow;

/// The maximum number of parts that are kept. When another part is added, all parts are joined into one. If each commit
/// is imported as soon as it is made, each commit adds a part.
const MOST_PARTS: i64 = 64;

impl SqliteStore {
    pub(crate) async fn commit_graph(&self, scope: &Scope) -> error::Result<Vec<GraphRow>> {
        self.read(scope, |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT stamp, first, count, commits FROM commit_graph WHERE owner = ?1 ORDER BY first",
            )?;
            let rows = statement.query_map([scope.tenant.as_str()], |row| {
                Ok(GraphRow {
                    stamp: row.get(0)?,
                    first: row.get::<_, i64>(1)? as usize,
                    count: row.get::<_, i64>(2)? as usize,
                    bytes: row.get(3)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn add_to_commit_graph(&self, scope: &Scope, part: GraphRow) -> error::Result<bool> {
        self.write(scope, move |connection, scope| {
            let owner = scope.tenant.as_str();
            let (parts, end): (i64, i64) = connection
                .prepare_cached("SELECT count(*), coalesce(max(first + count), 0) FROM commit_graph WHERE owner = ?1 AND stamp = ?2")?
                .query_row((owner, &part.stamp), |row| Ok((row.get(0)?, row.get(1)?)))?;
            if part.first as i64 != end {
                return Ok(false);
            }
            // Parts with another stamp are out of date, because the shallow history ended at other commits when they
            // were read.
            connection
                .prepare_cached("DELETE FROM commit_graph WHERE owner = ?1 AND stamp <> ?2")?
                .execute((owner, &part.stamp))?;
            let insert = "INSERT INTO commit_graph (owner, first, count, stamp, commits) VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.prepare_cached(insert)?.execute(params![
                owner,
                end,
                part.count as i64,
                part.stamp,
                part.bytes
            ])?;
            if parts >= MOST_PARTS {
                let mut statement = connection
                    .prepare_cached("SELECT commits FROM commit_graph WHERE owner = ?1 ORDER BY first")?;
                let all: Vec<Vec<u8>> =
                    statement.query_map([owner], |row| row.get(0))?.collect::<Result<_, _>>()?;
                connection.prepare_cached("DELETE FROM commit_graph WHERE owner = ?1")?.execute([owner])?;
                let count = end + part.count as i64;
                connection.prepare_cached(insert)?.execute(params![owner, 0, count, part.stamp, all.concat()])?;
            }
            Ok(true)
        })
        .await
    }
}
