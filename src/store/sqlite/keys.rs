//! Reads and writes keys and versions, which are stored as numbers.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};

use crate::memory::MemoryKey;
use crate::store::{ChunkKey, QueueKey, SessionKey, SubjectKey, Version};

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

column!(MemoryKey, ChunkKey, SessionKey, QueueKey, SubjectKey, Version);
