//! The chunks of the stash, cached by each process.
//!
//! A search of the whole stash needs the list of these chunks, and reading the list from the file takes longer than the
//! rest of the search.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::read::parts;
use tiro_base::scope::Scope;

/// The chunks of the memories in each owner's stash, in ascending order. They are valid for `version`.
#[derive(Default)]
pub(crate) struct StashedChunks {
    version: i64,
    by_reader: HashMap<[String; 2], Arc<[i64]>>,
}

impl StashedChunks {
    /// Returns the chunks of the stash that the reader sees in the snapshot of `connection`, in ascending order.
    pub fn of(&mut self, connection: &Connection, scope: &Scope) -> Result<Arc<[i64]>> {
        let version: i64 = connection
            .prepare_cached("SELECT value FROM meta WHERE key = 'stash_version'")?
            .query_row([], |row| row.get(0))
            .optional()?
            .unwrap_or(0);
        if version != self.version {
            *self = StashedChunks { version, ..StashedChunks::default() };
        }
        if let Some(chunks) = self.by_reader.get(&parts::both(scope)) {
            return Ok(chunks.clone());
        }
        let mut statement = connection.prepare_cached(
            "SELECT c.seq FROM stashed s JOIN chunks c ON c.memory = s.memory WHERE s.owner = ?1 ORDER BY c.seq",
        )?;
        let rows = statement.query_map([scope.tenant.as_str()], |row| row.get(0))?;
        let chunks: Arc<[i64]> = rows.collect::<Result<Vec<_>, _>>()?.into();
        self.by_reader.insert(parts::both(scope), chunks.clone());
        Ok(chunks)
    }
}
