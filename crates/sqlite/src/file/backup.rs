//! Copies and checks a store.

use std::path::Path;

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, ReadOnly};
use rusqlite::{Connection, OpenFlags};

use crate::Inner;
use crate::SqliteStore;
use crate::connection::{blocking, lock};
use crate::error::{Error, Result};
use crate::file::store_file::whole;
use crate::file::{counts, damage, verify};
use crate::read::parts;
use tiro_base::error::{self, Kind, quoted};
use tiro_base::scope::Scope;
use tiro_store::{Check, Damage};

impl SqliteStore {
    /// Copies the memories of the scope's owner, as they are at one moment, to the new file `target`. Other
    /// callers can read and write the store during the copying. The copy gets the name `target` only when it is
    /// complete and on the disk.
    ///
    /// Returns the damage that was found. The copy has the same damage, but damaged memories are not restored from it.
    ///
    /// Errors if `target` exists. Also returns an error if the store is so damaged that a copy could not be restored.
    pub async fn back_up(&self, scope: &Scope, target: &Path) -> error::Result<Damage> {
        self.admit(scope)?;
        let (store, scope, target) = (self.clone(), scope.clone(), target.to_owned());
        blocking(move || {
            store.inner.store_file.check()?;
            let mut damage = Damage::default();
            let copied = whole::make(&target, |copy| {
                store.inner.copy_to(copy)?;
                keep_only(copy, &scope)?;
                damage = verify::damage(copy)?;
                Ok(())
            });
            copied.map(|()| damage).map_err(|error| {
                let hint = error.way_out().unwrap_or(
                    "name a folder that can be written and has room; `tiro doctor` checks the store",
                );
                let hint = hint.to_owned();
                let message = format!("cannot write the backup `{}`", quoted(target.display()));
                Error::new(error.kind(), message).source(error).hint(hint)
            })
        })
        .await
    }

    pub(crate) async fn check(&self, scope: &Scope) -> error::Result<Check> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        blocking(move || {
            let writer = lock(&store.inner.writer);
            let integrity = damage::lines(&writer, "PRAGMA integrity_check(20)")?;
            let mut check = Check { integrity, ..Check::default() };
            let indexed = writer.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')", []);
            if let Err(error) = indexed {
                // If the index can't be read now, it is unknown whether it is damaged.
                if matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | ReadOnly)) {
                    return Err(error.into());
                }
                check.text_index.push(Error::from(error).to_string());
            }
            let count = |sql: &str| -> Result<i64> { Ok(writer.query_row(sql, [], |row| row.get(0))?) };
            check.chunks_without_vector = count(
                "SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.chunk = c.seq)
                     AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.chunk = c.seq)",
            )?;
            check.chunks_unindexed = count(
                "SELECT (SELECT count(*) FROM chunks c JOIN memories m ON m.seq = c.memory
                         WHERE m.tombstoned_at IS NULL AND c.seq NOT IN (SELECT rowid FROM text_index))
                      + (SELECT count(*) FROM text_index WHERE rowid NOT IN (SELECT seq FROM chunks))",
            )?;
            check.counts_off = counts::off(&writer)?;
            check.damage = verify::damage(&store.inner.path)?;
            if parts::has_private(&writer)? {
                // The ids of private memories of others are not reported.
                let mut named = Vec::new();
                for id in check.damage.memories.drain(..) {
                    if parts::row_of(&writer, &scope, &id)?.is_some() {
                        named.push(id);
                    }
                }
                check.damage.memories = named;
            }
            Ok(check)
        })
        .await
    }
}

impl Inner {
    /// Writes the content of the store, as it is at one moment, into the empty file `target`. Free pages aren't
    /// copied.
    pub(super) fn copy_to(&self, target: &Path) -> Result<()> {
        // This needs a connection that can write: reading connections refuse to write even to other files.
        let source = crate::file::connect::connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        self.store_file.check()?;
        // A file name may be any bytes, so it is not passed as a string.
        source.execute("VACUUM INTO CAST(?1 AS TEXT)", [target.as_os_str().as_encoded_bytes()])?;
        Ok(())
    }
}

/// Removes everything that the reader doesn't see, including other tenants' memories, from the copied store. Then
/// checks the copy.
fn keep_only(copy: &Path, scope: &Scope) -> Result<()> {
    let connection = crate::file::connect::connect(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    crate::connection::moves_log_at_close(&connection)?;
    // The copy is not synced here: it is synced as a whole before it is renamed to `target`.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "journal_mode", "MEMORY")?;
    if let Some(found) = damage::lines(&connection, "PRAGMA quick_check")?.first() {
        return Err(Error::new(Kind::Store, format!("the store is damaged: {found}")));
    }
    let [shared, mine] = parts::both(scope);
    // Cached answers are left out, because they can be made again, and texts of files are left out, because they are
    // not restored.
    for sql in [
        "DELETE FROM context_cache",
        "DELETE FROM embedding_cache",
        "DELETE FROM file_tokens",
        "UPDATE blobs SET body = NULL, bytes = 0 WHERE body IS NOT NULL",
    ] {
        connection.execute(sql, [])?;
    }
    // Rows of other tables that belong to a memory or an operation are deleted with it.
    let mut left = 0;
    for sql in [
        "DELETE FROM text_index WHERE rowid IN
             (SELECT c.seq FROM chunks c JOIN memories m ON m.seq = c.memory WHERE m.owner NOT IN (?1, ?2))",
        "DELETE FROM operation_memories WHERE operation IN (SELECT id FROM operations WHERE owner NOT IN (?1, ?2))",
        "DELETE FROM operations WHERE owner NOT IN (?1, ?2)",
        "DELETE FROM memories WHERE owner NOT IN (?1, ?2)",
        "DELETE FROM sessions WHERE owner NOT IN (?1, ?2)",
    ] {
        left += connection.execute(sql, [&shared, &mine])?;
    }
    for table in owned_tables(&connection)? {
        left += connection
            .execute(&format!("DELETE FROM \"{table}\" WHERE owner NOT IN (?1, ?2)"), [&shared, &mine])?;
    }
    if left > 0 {
        connection.execute("INSERT INTO text_index (text_index) VALUES ('optimize')", [])?;
        connection.execute_batch("VACUUM")?;
    }
    Ok(())
}

/// Returns the tables with a column for the owner.
pub(super) fn owned_tables(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' AND c.name = 'owner' ORDER BY t.name",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
