//! Reads the stash of a backup.

use rusqlite::OptionalExtension;

use super::{BackupReader, LATEST, LONGEST_NAME, read};
use crate::columns;
use crate::error::Result;
use tiro_base::memory::Millis;
use tiro_store::{ForeignStash, StashCause};

impl BackupReader {
    /// Returns the state of the memory in the row `seq` in the stash.
    pub(super) fn stashed(&self, seq: i64) -> Result<Option<ForeignStash>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause FROM stashed
             WHERE memory = ?1 AND coalesce(octet_length(topic), 0) <= ?2",
        )?;
        let row = statement.query_row((seq, LONGEST_NAME as i64), |row| {
            let (at, expires): (Millis, Option<Millis>) = (row.get(0)?, row.get(1)?);
            Ok(ForeignStash {
                stashed_at: at.clamp(0, LATEST),
                expires_at: expires.map(|at| at.clamp(0, LATEST)),
                is_protected: row.get(2)?,
                is_held_out: row.get(3)?,
                is_given: row.get(4)?,
                topic: row.get(5)?,
                cause: columns::word(row, 6, StashCause::parse)?,
            })
        });
        row.optional().map_err(read)
    }
}
