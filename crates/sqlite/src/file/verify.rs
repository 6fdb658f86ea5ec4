//! Compares stored values with the hashes that were stored with them. SQLite itself notices damage to its own
//! structures, but not a changed bit inside a text.

use std::ops::RangeInclusive;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use super::connect::connect;
use super::{rows, sums};
use crate::columns::MEMORY as COLUMNS;
use crate::error::Result;
use crate::threads::blobs;
use tiro_base::memory;
use tiro_base::parallel::{cores, on_all_cores};
use tiro_store::Damage;

/// The number of parts that each core reads. With several parts for each core, a part with long texts doesn't delay the
/// others much.
const PARTS: i64 = 4;

/// Returns the damage in the file at `path`: memories whose text or row was changed by damage, and damaged vectors,
/// copies of files, and other rows. Each core reads parts of the file through its own connection.
pub(crate) fn damage(path: &Path) -> Result<Damage> {
    let connection = open(path)?;
    let mut parts: Vec<(Table, RangeInclusive<i64>)> = Vec::new();
    parts.push((Table::Others, 0..=0));
    for table in [Table::Memories, Table::Vectors, Table::Copies] {
        let (name, key) = table.name();
        parts.extend(divided(&connection, name, key)?.into_iter().map(|rows| (table, rows)));
    }
    let found = on_all_cores(&parts, |(table, rows)| -> Result<Damage> {
        let connection = open(path)?;
        match table {
            Table::Memories => damaged_memories(&connection, rows),
            Table::Vectors => {
                let sql = "SELECT v.chunk, v.space, v.embedding, s.sum FROM vectors v JOIN vector_sums s ON s.chunk = v.chunk
                     WHERE v.chunk BETWEEN ?1 AND ?2";
                let mut statement = connection.prepare(sql)?;
                let found = statement.query_map((rows.start(), rows.end()), sums::is_vector_damaged)?;
                let found: Vec<bool> = found.collect::<Result<_, _>>()?;
                Ok(Damage {
                    vectors: found.into_iter().filter(|is_damaged| *is_damaged).count(),
                    ..Damage::default()
                })
            }
            Table::Copies => Ok(Damage { copies: blobs::damaged(&connection, rows)?, ..Damage::default() }),
            Table::Others => Ok(Damage { rows: rows::damaged(&connection)?, ..Damage::default() }),
        }
    });
    found.into_iter().try_fold(Damage::default(), |mut all, part| {
        let part = part?;
        all.memories.extend(part.memories);
        all.vectors += part.vectors;
        all.copies += part.copies;
        all.rows += part.rows;
        Ok(all)
    })
}

#[derive(Clone, Copy)]
enum Table {
    Memories,
    Vectors,
    Copies,
    /// The rows that belong to memories and threads.
    Others,
}

impl Table {
    /// Returns the name of the table, and the column with its row number.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Table::Memories => ("memories", "seq"),
            Table::Vectors => ("vectors", "chunk"),
            Table::Copies => ("blobs", "seq"),
            Table::Others => ("row_sums", "key"),
        }
    }
}

fn damaged_memories(connection: &Connection, rows: &RangeInclusive<i64>) -> Result<Damage> {
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m LEFT JOIN sessions s ON s.seq = m.session
         WHERE m.seq BETWEEN ?1 AND ?2 ORDER BY m.seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query((rows.start(), rows.end()))?;
    let mut damage = Damage::default();
    while let Some(row) = rows.next()? {
        if differs(row, 4, 20)? || sums::is_row_damaged(row)? {
            damage.memories.push(String::from_utf8_lossy(bytes(row, 0)?).into_owned());
        }
    }
    Ok(damage)
}

/// Returns whether the text in the column `text` has another hash than the column `hash` says.
pub(crate) fn differs(row: &Row<'_>, text: usize, hash: usize) -> rusqlite::Result<bool> {
    Ok(blake3::hash(bytes(row, text)?).as_bytes() != bytes(row, hash)?)
}

/// Returns a text even if it is damaged. Each byte that can't be in a text is replaced by a question mark, so the other
/// bytes keep their places.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
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

/// Returns a text; `None` if there is no text. If the text is damaged, so that its hash differs from the column `hash`,
/// a mark is put before it.
pub(crate) fn marked(row: &Row<'_>, column: usize, hash: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => Ok(Some(memory::marked(text(row, column)?, differs(row, column, hash)?))),
    }
}

/// Returns the bytes of a text or a blob. A value of another type is damaged, and gives no bytes.
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
fn divided(connection: &Connection, table: &str, key: &str) -> Result<Vec<RangeInclusive<i64>>> {
    let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
        &format!("SELECT (SELECT min({key}) FROM {table}), (SELECT max({key}) FROM {table})"),
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
        assert!(divided(&connection, "t", "seq").unwrap().is_empty());
        for rows in [vec![7], vec![1, 50_000], vec![-5, 0, 999, 1_000_000]] {
            connection.execute("DELETE FROM t", []).unwrap();
            for row in &rows {
                connection.execute("INSERT INTO t VALUES (?1)", [row]).unwrap();
            }
            let parts = divided(&connection, "t", "seq").unwrap();
            for row in rows {
                assert_eq!(parts.iter().filter(|part| part.contains(&row)).count(), 1);
            }
        }
    }
}
