//! Checksums of memories' rows and of vectors. Damage to a row or a vector is noticed because the sum no longer fits. A
//! text has a separate hash in its row.
//!
//! A sum is computed right after the row was written, from the values that are read back. A row that another program
//! wrote has no sum until the idle worker computes it. Until then, damage to the row is not noticed.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::columns::MEMORY as COLUMNS;
use crate::error::Result;
use crate::read::parts;

/// The column of [`COLUMNS`] with the row's sum, which may be NULL. The sum covers the columns before it, but not
/// the row number, the text and the session's name, which is stored in the row of the session. The sum also covers the two columns
/// after it, the author and the visibility. The default values of these two columns are left out, because rows from
/// before the columns existed have these values.
const SUM: usize = 24;

/// The column of [`COLUMNS`] with the owner. This column names a part. The sum takes only the tenant from this column,
/// because the author and the visibility have columns of their own.
const OWNER: usize = 21;

/// A checksum: the first 16 bytes of a BLAKE3 hash.
pub(super) type Sum = [u8; 16];

/// Stores the sum of a memory's row. Does nothing if there is no such row.
pub(crate) fn of_memory(connection: &Connection, memory: i64) -> Result<()> {
    let select = format!(
        "SELECT {COLUMNS} FROM memories m LEFT JOIN sessions s ON s.seq = m.session WHERE m.seq = ?1"
    );
    let insert = "INSERT OR REPLACE INTO memory_sums (memory, sum) VALUES (?1, ?2)";
    of_row(connection, memory, &select, memory_sum, insert)
}

/// Stores the sum of a chunk's vector. Does nothing if the chunk has no vector.
pub(crate) fn of_vector(connection: &Connection, chunk: i64) -> Result<()> {
    let select = "SELECT chunk, space, embedding FROM vectors WHERE chunk = ?1";
    let insert = "INSERT OR REPLACE INTO vector_sums (chunk, sum) VALUES (?1, ?2)";
    of_row(connection, chunk, select, vector_sum, insert)
}

/// Reads the row `key` with `select`, and stores its sum with `insert`.
fn of_row(
    connection: &Connection,
    key: i64,
    select: &str,
    sum: impl Fn(&Row<'_>) -> rusqlite::Result<Sum>,
    insert: &str,
) -> Result<()> {
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    connection.prepare_cached(insert)?.execute((key, sum(row)?))?;
    Ok(())
}

/// Returns whether a memory's row, with the columns [`COLUMNS`], differs from its sum. Returns false for a row without
/// a sum.
pub(crate) fn is_row_damaged(row: &Row<'_>) -> rusqlite::Result<bool> {
    differs(row, SUM, memory_sum)
}

/// Returns whether a vector differs from its sum. The columns are the chunk, the space, the embedding and the sum.
pub(crate) fn is_vector_damaged(row: &Row<'_>) -> rusqlite::Result<bool> {
    differs(row, 3, vector_sum)
}

fn differs(
    row: &Row<'_>,
    column: usize,
    sum: impl Fn(&Row<'_>) -> rusqlite::Result<Sum>,
) -> rusqlite::Result<bool> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(false),
        ValueRef::Blob(stored) => Ok(stored != sum(row)?),
        _ => Ok(true),
    }
}

fn memory_sum(row: &Row<'_>) -> rusqlite::Result<Sum> {
    let (author, visibility) = (SUM + 1, SUM + 2);
    let is_plain = row.get_ref(author)? == ValueRef::Null && row.get_ref(visibility)? == ValueRef::Integer(1);
    let others = (author..=visibility).filter(|_| !is_plain);
    sum(row, (0..SUM).filter(|column| ![1, 4, 5].contains(column)).chain(others))
}

fn vector_sum(row: &Row<'_>) -> rusqlite::Result<Sum> {
    sum(row, 0..3)
}

/// Returns the sum of the given columns. The sum covers the types and lengths of the values too.
pub(super) fn sum(row: &Row<'_>, columns: impl Iterator<Item = usize>) -> rusqlite::Result<Sum> {
    let mut hasher = blake3::Hasher::new();
    for column in columns {
        let mut value = row.get_ref(column)?;
        if let (OWNER, ValueRef::Text(name)) = (column, value) {
            let end = name.iter().position(|byte| *byte == parts::BETWEEN as u8);
            value = ValueRef::Text(&name[..end.unwrap_or(name.len())]);
        }
        let (kind, number) = match value {
            ValueRef::Null => (0, 0),
            ValueRef::Integer(number) => (1, number.cast_unsigned()),
            ValueRef::Real(number) => (2, number.to_bits()),
            ValueRef::Text(bytes) => (3, bytes.len() as u64),
            ValueRef::Blob(bytes) => (4, bytes.len() as u64),
        };
        hasher.update(&[kind]).update(&number.to_le_bytes());
        if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = value {
            hasher.update(bytes);
        }
    }
    let mut sum = Sum::default();
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(sum)
}
