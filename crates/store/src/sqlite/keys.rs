//! Reads and writes keys and versions, which are stored as numbers.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};

use crate::{ChunkKey, QueueKey, SessionKey, SubjectKey, Version};
use tiro_base::memory::MemoryKey;

macro_rules! column {
    ($($name:ident),+) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.in_store().into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<$name> {
                value.as_i64().map($name::from_store)
            }
        }

        impl From<$name> for Value {
            fn from(key: $name) -> Value {
                key.in_store().into()
            }
        }
    )+};
}

column!(ChunkKey, SessionKey, QueueKey, SubjectKey, Version);

/// Returns the memory that a column names. Its key is a type of another crate, so it can't be read as the others.
pub(in crate::sqlite) fn memory_key(row: &Row<'_>, column: usize) -> rusqlite::Result<MemoryKey> {
    row.get(column).map(MemoryKey::from_store)
}
