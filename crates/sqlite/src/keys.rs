//! Reads keys and versions from columns. Keys and versions are stored as numbers, and statements get the number of a
//! key (`in_store`).

use rusqlite::Row;

use tiro_base::memory::MemoryKey;
use tiro_store::{ChunkKey, QueueKey, SessionKey, SubjectKey, Version};

/// A key or a version. This trait is needed because the types of keys and versions belong to another crate, and so
/// can't implement the trait of `rusqlite` for columns.
pub(crate) trait Key {
    /// Returns the key of the row that is stored under `number`.
    fn from_number(number: i64) -> Self;
}

macro_rules! key {
    ($($name:ident),+) => {$(
        impl Key for $name {
            fn from_number(number: i64) -> $name {
                $name::from_store(number)
            }
        }
    )+};
}

key!(ChunkKey, MemoryKey, QueueKey, SessionKey, SubjectKey, Version);

/// Returns the key in a column.
pub(crate) fn key<T: Key>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    row.get(column).map(T::from_number)
}

/// Returns the key in a column that may be empty.
pub(crate) fn optional_key<T: Key>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(T::from_number))
}

/// Returns the memory that a column names.
pub(crate) fn memory_key(row: &Row<'_>, column: usize) -> rusqlite::Result<MemoryKey> {
    key(row, column)
}
