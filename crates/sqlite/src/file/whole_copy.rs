//! Makes, checks and adapts copies of whole stores, and puts them in place. Such copies are used for backups of an
//! installation.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::connect::connect;
use super::{counts, damage, migrate, sums, verify};
use crate::SqliteStore;
use crate::connection::{blocking, moves_log_at_close};
use crate::error::{Error, Result};
use crate::file::backup::owned_tables;
use crate::file::store_file::{self, whole};
use crate::read::parts;
use tiro_base::error::{self, Context, Kind, quoted};
use tiro_base::file;
use tiro_base::scope::{Scope, TenantId};
use tiro_store::{Contents, Flavour};

impl SqliteStore {
    /// Copies everything in the file, as it is at one moment, to the new file `target`. Only cached answers and the
    /// leases of running processes are left out.
    ///
    /// Errors if `target` exists.
    pub async fn copy_whole(&self, scope: &Scope, target: &Path) -> error::Result<()> {
        self.admit(scope)?;
        let (store, target) = (self.clone(), target.to_owned());
        blocking(move || {
            store.inner.store_file.check()?;
            whole::make(&target, |copy| {
                store.inner.copy_to(copy)?;
                let connection = open(copy)?;
                moves_log_at_close(&connection)?;
                connection.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF")?;
                connection.execute_batch("DELETE FROM context_cache; DELETE FROM leases;")?;
                Ok(())
            })
        })
        .await
    }

    /// Returns counts of the content of the store at `path`, and its damage. No process may have the store open. Reads
    /// the whole store.
    ///
    /// Errors with [`Kind::Store`] if the store is so damaged that SQLite can't read all of it.
    pub async fn contents(path: &Path) -> error::Result<Contents> {
        let path = path.to_owned();
        blocking(move || {
            let connection = open(&path)?;
            moves_log_at_close(&connection)?;
            if !damage::lines(&connection, "PRAGMA integrity_check(1)")?.is_empty() {
                let message = format!("the store `{}` is damaged", quoted(path.display()));
                return Err(Error::new(Kind::Store, message));
            }
            let count = |table: &str| -> Result<u64> {
                let sql = format!("SELECT count(*) FROM {table}");
                Ok(connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
            };
            let (memories, threads) = (count("memories")?, count("threads")?);
            Ok(Contents { memories, threads, damage: verify::damage(&path)? })
        })
        .await
    }

    /// Adapts the store at `path`, which came from elsewhere. No process may have it open. Brings the schema of the
    /// store up to date. If everything in the store belongs to a single other owner, gives it to `owner`.
    ///
    /// Errors with [`Kind::BadInput`] if the file has triggers, views or virtual tables that a store doesn't have.
    pub async fn settle(path: &Path, flavour: Flavour, owner: &TenantId) -> error::Result<()> {
        let (path, owner) = (path.to_owned(), owner.clone());
        blocking(move || {
            let mut connection = open(&path)?;
            moves_log_at_close(&connection)?;
            migrate::migrate(&mut connection, &path, flavour)?;
            refuse_code(&connection, flavour)?;
            give(&mut connection, &path, &owner)?;
            connection.execute_batch("PRAGMA journal_mode = WAL")?;
            connection.close().map_err(|(_, error)| error.into())
        })
        .await
    }

    /// Moves the store `staged`, which no process has open, to `path` on the same file system, in one step. If there is
    /// a store already, it is kept as `kept`. Processes that have the old store open use the new store from their next
    /// call on.
    ///
    /// Errors with [`Kind::Busy`] if other processes read or write the present store during the whole time that a
    /// writer waits.
    pub async fn put_in_place(staged: &Path, path: &Path, kept: &Path) -> error::Result<()> {
        let (staged, path, kept) = (staged.to_owned(), path.to_owned(), kept.to_owned());
        blocking(move || {
            let failed = || format!("cannot put a store at `{}`", quoted(path.display()));
            let turn = SqliteStore::turn(&path)?;
            if path.symlink_metadata().is_ok() {
                let mut present = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                // Without this, the log of the present store could be applied to the new store.
                let is_held: bool =
                    present.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
                let changes = present.transaction_with_behavior(TransactionBehavior::Immediate)?;
                if is_held || store_file::beside(&path, "-wal").metadata().is_ok_and(|log| log.len() > 0) {
                    return Err(Error::new(
                        Kind::Busy,
                        "other programs use the store that is to be replaced",
                    )
                    .hint("end them (servers of Tiro), then repeat the command"));
                }
                if fs::hard_link(&path, &kept).is_err() {
                    fs::copy(&path, &kept).context(Kind::Io, failed)?;
                }
                fs::rename(&staged, &path).context(Kind::Io, failed)?;
                // The log is empty. Without this removal, the next process would report that it removes the log of
                // another store.
                ["-wal", "-shm"].iter().for_each(|log| drop(fs::remove_file(store_file::beside(&path, log))));
                drop(changes);
            } else {
                fs::rename(&staged, &path).context(Kind::Io, failed)?;
            }
            drop(turn);
            file::sync_folder(path.parent().unwrap_or(Path::new(".")));
            Ok(())
        })
        .await
    }
}

fn open(path: &Path) -> Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Errors with [`Kind::BadInput`] unless the file defines the same triggers, views and virtual tables as a new store.
/// Otherwise, SQLite would run what the file defines.
fn refuse_code(connection: &Connection, flavour: Flavour) -> Result<()> {
    let defined = |connection: &Connection| -> Result<Vec<(String, String)>> {
        let mut statement = connection.prepare(
            "SELECT name, coalesce(sql, '') FROM sqlite_schema
             WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%' ORDER BY name",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let mut blank = Connection::open_in_memory()?;
    migrate::migrate(&mut blank, Path::new("blank.db"), flavour)?;
    if defined(connection)? == defined(&blank)? {
        return Ok(());
    }
    Err(Error::bad_input("a store of the backup doesn't have the tables of Tiro")
        .hint("give a file that `tiro backup --all FILE` wrote"))
}

/// If everything in the file at `path` belongs to a single other owner, gives it to `owner`: another machine has other
/// names for its users.
fn give(connection: &mut Connection, path: &Path, owner: &TenantId) -> Result<()> {
    let owners: Vec<String> = {
        let mut statement = connection.prepare(
            "SELECT substr(owner, 1, instr(owner || char(31), char(31)) - 1) FROM memories
                 UNION SELECT substr(owner, 1, instr(owner || char(31), char(31)) - 1) FROM sessions LIMIT 2",
        )?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    match &owners[..] {
        [only] if only != owner.as_str() => {}
        _ => return Ok(()),
    }
    // The sum of a memory's row covers the owner, so the sums are computed again. Damaged rows keep their former sums,
    // so the damage is still noticed.
    let damaged: HashSet<String> = verify::damage(path)?.memories.into_iter().collect();
    let tables = owned_tables(connection)?;
    let changes = connection.transaction()?;
    changes.execute_batch("CREATE TEMP TABLE former_sums AS SELECT * FROM memory_sums")?;
    for table in tables {
        // Private memories of the former tenant become private memories of the new tenant. Private memories of others
        // stay theirs.
        let sql = format!(
            "UPDATE OR REPLACE \"{table}\" SET owner = iif(owner = ?2 || char(31) || ?2, ?1 || char(31) || ?1,
                 ?1 || substr(owner, length(?2) + 1)) WHERE {}",
            parts::of_tenant("owner", 2)
        );
        changes.execute(&sql, [owner.as_str(), &owners[0]])?;
    }
    {
        let sql = "SELECT m.seq, m.id, f.sum FROM former_sums f JOIN memories m ON m.seq = f.memory";
        let mut statement = changes.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (seq, id, sum): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            match damaged.contains(&id) {
                false => sums::of_memory(&changes, seq)?,
                true => {
                    let put = "INSERT OR REPLACE INTO memory_sums (memory, sum) VALUES (?1, ?2)";
                    changes.prepare_cached(put)?.execute((seq, sum))?;
                }
            }
        }
    }
    // Triggers don't follow a row to another owner.
    counts::count_anew(&changes)?;
    changes.execute_batch("DROP TABLE former_sums")?;
    changes.commit()?;
    Ok(())
}
