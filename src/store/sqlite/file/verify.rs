//! Compares what is stored with the hashes that were stored with it: SQLite notices damage to its own structures, but not a
//! bit that changed inside a text.

use std::ops::RangeInclusive;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use super::connect::connect;
use crate::error::Result;
use crate::parallel::{cores, on_all_cores};

/// How many parts each core reads, so that a part with long texts delays the others little.
const PARTS: i64 = 4;

/// Returns the ids of the memories whose text is not the one that was stored, in the order of storing. Each core reads a part
/// of the file at `path` through its own connection.
pub(in crate::store::sqlite) fn differing_texts(path: &Path) -> Result<Vec<String>> {
    let parts = parts(&open(path)?, "memories")?;
    let found = on_all_cores(&parts, |rows| -> Result<Vec<String>> {
        let connection = open(path)?;
        let sql = "SELECT id, text_hash, text FROM memories WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query((rows.start(), rows.end()))?;
        let mut differing = Vec::new();
        while let Some(row) = rows.next()? {
            if differs(row, 2, 1)? {
                differing.push(String::from_utf8_lossy(bytes(row, 0)?).into_owned());
            }
        }
        Ok(differing)
    });
    Ok(found.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// Returns whether the text in the column `text` has another hash than the one in the column `hash`.
pub(in crate::store::sqlite) fn differs(row: &Row<'_>, text: usize, hash: usize) -> rusqlite::Result<bool> {
    Ok(blake3::hash(bytes(row, text)?).as_bytes() != bytes(row, hash)?)
}

/// Returns a text, also if it is damaged: a byte that can't be in a text is replaced by a question mark, so the bytes after it
/// keep their places.
pub(in crate::store::sqlite) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes = bytes(row, column)?;
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('?', chunk.invalid().len()));
    }
    Ok(text)
}

/// Returns the bytes of a text or a blob. A value of another type has none: only damage gives it that type.
fn bytes<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    })
}

fn open(path: &Path) -> Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Divides the rows of a table into ranges of row numbers.
fn parts(connection: &Connection, table: &str) -> Result<Vec<RangeInclusive<i64>>> {
    let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
        &format!("SELECT (SELECT min(seq) FROM {table}), (SELECT max(seq) FROM {table})"),
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
    let parts = PARTS * i64::try_from(cores()).unwrap_or(1);
    let size = (last.saturating_sub(first) / parts).max(999).saturating_add(1);
    let begins = std::iter::successors(Some(first), |begin| begin.checked_add(size));
    Ok(begins
        .take_while(|begin| *begin <= last)
        .map(|begin| begin..=begin.saturating_add(size - 1))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_row_once() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (seq INTEGER PRIMARY KEY)").unwrap();
        assert!(parts(&connection, "t").unwrap().is_empty());
        for rows in [vec![7], vec![1, 50_000], vec![-5, 0, 999, 1_000_000]] {
            connection.execute("DELETE FROM t", []).unwrap();
            for row in &rows {
                connection.execute("INSERT INTO t VALUES (?1)", [row]).unwrap();
            }
            let parts = parts(&connection, "t").unwrap();
            for row in rows {
                assert_eq!(parts.iter().filter(|part| part.contains(&row)).count(), 1);
            }
        }
    }
}
