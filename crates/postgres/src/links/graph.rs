//! The graph of commits, cached so that the next process doesn't have to read it from git again.

use crate::PostgresStore;
use crate::columns::{number, size};
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_store::GraphRow;

/// The maximum number of parts that are kept. When another part is added, all parts are joined into one. If each commit
/// is imported as soon as it is made, each commit adds a part.
const MOST_PARTS: i64 = 64;

impl PostgresStore {
    pub(crate) async fn commit_graph(&self, scope: &Scope) -> error::Result<Vec<GraphRow>> {
        read!(self, scope, tx => {
            let sql = "SELECT stamp, first, count, commits FROM commit_graph WHERE owner = $1 ORDER BY first";
            let rows = tx.rows(sql, &[&tx.seen.shared]).await?;
            let part = |row: &tokio_postgres::Row| {
                Ok(GraphRow { stamp: row.get(0), first: size(row, 1)?, count: size(row, 2)?, bytes: row.get(3) })
            };
            rows.iter().map(part).collect()
        })
    }

    pub(crate) async fn add_to_commit_graph(&self, scope: &Scope, part: GraphRow) -> error::Result<bool> {
        let GraphRow { stamp, first, count, bytes } = part;
        write!(self, scope, tx => {
            let owner = tx.seen.shared;
            let sql = "SELECT count(*), coalesce(max(first + count), 0) FROM commit_graph
                       WHERE owner = $1 AND stamp = $2";
            let row = tx.only(sql, &[&owner, &stamp]).await?;
            let (parts, end): (i64, i64) = (row.get(0), row.get(1));
            if number(first) != end {
                return Ok(false);
            }
            // Parts with another stamp are out of date, because the shallow history ended at other commits when they
            // were read.
            let sql = "DELETE FROM commit_graph WHERE owner = $1 AND stamp <> $2";
            tx.execute(sql, &[&owner, &stamp]).await?;
            let insert = "INSERT INTO commit_graph (owner, stamp, first, count, commits) VALUES ($1, $2, $3, $4, $5)";
            if parts < MOST_PARTS {
                tx.execute(insert, &[&owner, &stamp, &end, &number(count), &bytes]).await?;
                return Ok(true);
            }
            let sql = "DELETE FROM commit_graph WHERE owner = $1 RETURNING first, commits";
            let mut all: Vec<(i64, Vec<u8>)> =
                tx.rows(sql, &[&owner]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
            all.sort_unstable();
            let mut whole: Vec<u8> = all.into_iter().flat_map(|(_, bytes)| bytes).collect();
            whole.extend(&bytes);
            tx.execute(insert, &[&owner, &stamp, &0_i64, &(end + number(count)), &whole]).await?;
            Ok(true)
        })
    }
}
