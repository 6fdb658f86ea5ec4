//! Merges the segments of the text index. Every write adds a segment, and a search reads all segments.
//!
//! After 100,000 documents, FTS5 has up to a dozen segments. With a single segment, the same searches take three
//! quarters of the time (<https://sqlite.org/fts5.html#the_merge_command>).

use rusqlite::{Connection, OptionalExtension};

use crate::SqliteStore;
use crate::error::Result;
use crate::search::vocabulary::documents;
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_store::decide::retention;
use tiro_store::tuning::LARGE_STORE;

/// The number of pages of the index that one step merges. A step makes other writers wait about ten milliseconds.
const PAGES: i64 = 250;

/// The keys in `meta` of two numbers: the number of documents at the last finished merge, and the number of documents
/// of the current merge.
const MERGED: &str = "text_merged";
const MERGING: &str = "text_merging";

impl SqliteStore {
    /// Merges a part of the text index, if the index is large and has grown by a quarter since the last merge.
    /// Returns whether a part is left to merge. Merging doesn't change the results of searches.
    pub async fn merge_text(&self, scope: &Scope) -> error::Result<bool> {
        if !self.read_all(scope, |_, connection, _| is_due(connection, LARGE_STORE)).await? {
            return Ok(false);
        }
        self.write(scope, |connection, _| step(connection)).await
    }
}

fn is_due(connection: &Connection, least: i64) -> Result<bool> {
    let documents = documents(connection)?;
    let merged = noted(connection, MERGED)?.unwrap_or(0);
    Ok(retention::is_merge_due(documents, merged, least))
}

/// Merges some pages, and returns whether any are left to merge.
fn step(connection: &Connection) -> Result<bool> {
    let begun = noted(connection, MERGING)?;
    // A negative number begins a merge of all segments. A positive number continues the merge.
    let pages = if begun.is_some() { PAGES } else { -PAGES };
    let changes = || connection.query_row("SELECT total_changes()", [], |row| row.get::<_, i64>(0));
    let before = changes()?;
    connection.execute("INSERT INTO text_index (text_index, rank) VALUES ('merge', ?1)", [pages])?;
    let is_done = changes()? - before < 2;
    let put = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
    match begun {
        None => connection.execute(put, (MERGING, documents(connection)?))?,
        Some(begun) if is_done => {
            connection.execute("DELETE FROM meta WHERE key = ?1", [MERGING])?;
            connection.execute(put, (MERGED, begun))?
        }
        Some(_) => 0,
    };
    Ok(begun.is_none() || !is_done)
}

fn noted(connection: &Connection, key: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_the_index_changes_no_result() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("../../../migrations/0001_memories.sql")).unwrap();
        let insert = "INSERT INTO text_index (rowid, text) VALUES (?1, ?2)";
        let add = |from: i64, until: i64| {
            for number in from..until {
                connection.execute(insert, (number, format!("lantern {number} {}", number * 7919))).unwrap();
                connection.execute("INSERT INTO chunks VALUES (?1, 1, ?1, 0, 1, 1)", [number]).unwrap();
            }
        };
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let segments = || count("SELECT count(DISTINCT segid) FROM text_index_idx");
        let found = || count("SELECT count(*) FROM text_index WHERE text_index MATCH 'lantern'");
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        add(1, 60);
        assert!(segments() > 1 && is_due(&connection, 50).unwrap() && !is_due(&connection, 60).unwrap());
        let mut steps = 0;
        while step(&connection).unwrap() {
            steps += 1;
            assert!(steps < 100);
        }
        assert_eq!((segments(), found()), (1, 59));
        assert!(!is_due(&connection, 50).unwrap());
        add(60, 70);
        assert!(!is_due(&connection, 50).unwrap(), "a few more wait");
        add(70, 80);
        assert!(is_due(&connection, 50).unwrap());
    }
}
