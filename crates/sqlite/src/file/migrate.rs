//! Upgrades the schema of a file, or refuses a file that this program may not write.
//!
//! Migrations are numbered. New migrations are added, and old ones never change. Each file records two schema versions:
//! a program that knows version `min_reader` may read the file, and a program that knows version `min_writer` may also
//! write it. So older servers continue to work after a migration that only adds to the schema. An existing file is
//! copied before it is upgraded; the last two copies are kept.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::{Error, Result};
use crate::file::store_file::whole;
use tiro_base::error::{Context, Kind, quoted};
use tiro_base::private;
use tiro_store::Flavour;
use tiro_text::chunk::index_text;

/// `Tiro` in ASCII: the application id of a SQLite file that belongs to Tiro.
const APPLICATION_ID: i32 = 0x5469_726f;

/// How many copies are kept beside the file.
const BACKUPS_KEPT: usize = 2;

struct Migration {
    sql: &'static str,
    /// After the migration, a program may read the file only if it knows this schema version. To write the file, a
    /// program must know `min_writer`.
    min_reader: i32,
    min_writer: i32,
}

const MEMORIES: Migration =
    Migration { sql: include_str!("../../migrations/0001_memories.sql"), min_reader: 1, min_writer: 1 };
const SESSIONS: Migration =
    Migration { sql: include_str!("../../migrations/0002_sessions.sql"), min_reader: 1, min_writer: 1 };
const CONTEXT: Migration =
    Migration { sql: include_str!("../../migrations/0003_context.sql"), min_reader: 1, min_writer: 1 };
const QUARTERS: Migration =
    Migration { sql: include_str!("../../migrations/0004_quarters.sql"), min_reader: 1, min_writer: 1 };
const LINKS: Migration =
    Migration { sql: include_str!("../../migrations/0005_links.sql"), min_reader: 1, min_writer: 1 };
const STORE: Migration =
    Migration { sql: include_str!("../../migrations/0006_store.sql"), min_reader: 1, min_writer: 1 };
const WEAK_LINKS: Migration =
    Migration { sql: include_str!("../../migrations/0007_weak_links.sql"), min_reader: 1, min_writer: 1 };
const SUPERSEDED: Migration =
    Migration { sql: include_str!("../../migrations/0008_superseded.sql"), min_reader: 1, min_writer: 1 };
const THREADS: Migration =
    Migration { sql: include_str!("../../migrations/0009_threads.sql"), min_reader: 1, min_writer: 1 };
const STASH: Migration =
    Migration { sql: include_str!("../../migrations/0010_stash.sql"), min_reader: 1, min_writer: 1 };
const EMBEDDING_CACHE: Migration = Migration {
    sql: include_str!("../../migrations/0011_embedding_cache.sql"),
    min_reader: 1,
    min_writer: 1,
};
const SUMS: Migration =
    Migration { sql: include_str!("../../migrations/0012_sums.sql"), min_reader: 1, min_writer: 1 };
const ROW_SUMS: Migration =
    Migration { sql: include_str!("../../migrations/0013_row_sums.sql"), min_reader: 1, min_writer: 1 };
const AUTHORS: Migration =
    Migration { sql: include_str!("../../migrations/0014_authors.sql"), min_reader: 1, min_writer: 1 };
const CORRECTIONS: Migration =
    Migration { sql: include_str!("../../migrations/0015_corrections.sql"), min_reader: 1, min_writer: 1 };
const DOCUMENTS: Migration =
    Migration { sql: include_str!("../../migrations/0016_documents.sql"), min_reader: 16, min_writer: 16 };
const COUNTS: Migration =
    Migration { sql: include_str!("../../migrations/0017_counts.sql"), min_reader: 16, min_writer: 16 };
const EXCHANGE: Migration =
    Migration { sql: include_str!("../../migrations/0018_exchange.sql"), min_reader: 16, min_writer: 16 };
/// The same migrations for `owner.db`, beginning with [`SESSIONS`]. In `owner.db`, the versions of these migrations are
/// higher, because they come after the migration [`REGISTRY`].
const OWNER_SESSIONS: Migration = Migration { min_reader: 2, min_writer: 2, ..SESSIONS };
const OWNER_CONTEXT: Migration = Migration { min_reader: 2, min_writer: 2, ..CONTEXT };
const OWNER_QUARTERS: Migration = Migration { min_reader: 2, min_writer: 2, ..QUARTERS };
const OWNER_LINKS: Migration = Migration { min_reader: 2, min_writer: 2, ..LINKS };
const OWNER_STORE: Migration = Migration { min_reader: 2, min_writer: 2, ..STORE };
const OWNER_WEAK_LINKS: Migration = Migration { min_reader: 2, min_writer: 2, ..WEAK_LINKS };
const OWNER_SUPERSEDED: Migration = Migration { min_reader: 2, min_writer: 2, ..SUPERSEDED };
const OWNER_THREADS: Migration = Migration { min_reader: 2, min_writer: 2, ..THREADS };
const OWNER_STASH: Migration = Migration { min_reader: 2, min_writer: 2, ..STASH };
const OWNER_EMBEDDING_CACHE: Migration = Migration { min_reader: 2, min_writer: 2, ..EMBEDDING_CACHE };
const OWNER_SUMS: Migration = Migration { min_reader: 2, min_writer: 2, ..SUMS };
const OWNER_ROW_SUMS: Migration = Migration { min_reader: 2, min_writer: 2, ..ROW_SUMS };
const OWNER_AUTHORS: Migration = Migration { min_reader: 2, min_writer: 2, ..AUTHORS };
const OWNER_CORRECTIONS: Migration = Migration { min_reader: 2, min_writer: 2, ..CORRECTIONS };
const OWNER_COUNTS: Migration = Migration { min_reader: 2, min_writer: 2, ..COUNTS };
const OWNER_EXCHANGE: Migration = Migration { min_reader: 2, min_writer: 2, ..EXCHANGE };
const REGISTRY: Migration =
    Migration { sql: include_str!("../../migrations/registry_0001.sql"), min_reader: 2, min_writer: 2 };
const LEDGER: Migration = Migration {
    sql: include_str!("../../migrations/registry_0002_ledger.sql"),
    min_reader: 2,
    min_writer: 2,
};
const SENT: Migration =
    Migration { sql: include_str!("../../migrations/registry_0003_sent.sql"), min_reader: 2, min_writer: 2 };
const MEMBERS: Migration = Migration {
    sql: include_str!("../../migrations/registry_0004_members.sql"),
    min_reader: 2,
    min_writer: 2,
};

fn migrations(flavour: Flavour) -> &'static [Migration] {
    match flavour {
        Flavour::Project => &[
            MEMORIES,
            SESSIONS,
            CONTEXT,
            QUARTERS,
            LINKS,
            STORE,
            WEAK_LINKS,
            SUPERSEDED,
            THREADS,
            STASH,
            EMBEDDING_CACHE,
            SUMS,
            ROW_SUMS,
            AUTHORS,
            CORRECTIONS,
            DOCUMENTS,
            COUNTS,
            EXCHANGE,
        ],
        Flavour::Owner => &[
            MEMORIES,
            REGISTRY,
            OWNER_SESSIONS,
            LEDGER,
            OWNER_CONTEXT,
            OWNER_QUARTERS,
            OWNER_LINKS,
            OWNER_STORE,
            OWNER_WEAK_LINKS,
            OWNER_SUPERSEDED,
            OWNER_THREADS,
            OWNER_STASH,
            OWNER_EMBEDDING_CACHE,
            OWNER_SUMS,
            SENT,
            OWNER_ROW_SUMS,
            OWNER_AUTHORS,
            OWNER_CORRECTIONS,
            OWNER_COUNTS,
            MEMBERS,
            OWNER_EXCHANGE,
        ],
    }
}

/// Returns the newest schema version that this program knows.
pub(crate) fn newest(flavour: Flavour) -> i32 {
    migrations(flavour).len() as i32
}

/// Upgrades the file behind `connection` to the newest schema. Writes nothing if the file already has this schema.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, flavour: Flavour) -> Result<()> {
    let version = check(connection, path, flavour)?;
    if version >= newest(flavour) {
        return Ok(());
    }
    if version > 0 {
        back_up(connection, path, version)?;
    } else {
        enter_wal(connection)?;
    }
    upgrade(connection, flavour)
}

fn upgrade(connection: &mut Connection, flavour: Flavour) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have upgraded the file since its version was checked.
    let version: i32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for migration in migrations(flavour).iter().skip(version.max(0) as usize) {
        transaction.execute_batch(migration.sql)?;
        for (key, value) in [("min_reader", migration.min_reader), ("min_writer", migration.min_writer)] {
            transaction.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, value))?;
        }
    }
    if version <= 0 {
        let put = "INSERT OR REPLACE INTO meta (key, value) VALUES ('text_version', ?1)";
        transaction.execute(put, [index_text::VERSION])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest(flavour).max(version))?;
    transaction.commit()?;
    Ok(())
}

/// Turns write-ahead logging on. Waits for other processes that do the same; SQLite's own timeout doesn't cover
/// this wait.
fn enter_wal(connection: &Connection) -> Result<()> {
    const ATTEMPTS: u32 = 200;
    for attempt in 1.. {
        match connection.pragma_update(None, "journal_mode", "WAL").map_err(Error::from) {
            Err(error) if error.kind() == Kind::Busy && attempt < ATTEMPTS => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            done => return done,
        }
    }
    unreachable!("the loop ends by returning")
}

/// Which program a database belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Tiro's.
    Ours,
    /// No program: the database has no tables yet.
    Nobodys,
    /// Another program's.
    Anothers,
}

/// Returns which program the database behind `connection` belongs to.
pub(crate) fn whose(connection: &Connection) -> rusqlite::Result<Whose> {
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (tables, application) {
        (0, _) => Whose::Nobodys,
        (_, APPLICATION_ID) => Whose::Ours,
        _ => Whose::Anothers,
    })
}

/// Returns the schema version of the file; 0 for an empty file. Errors with [`Kind::Store`] if the file belongs to
/// another program, or if a newer Tiro upgraded it so that this program may not write to it.
pub(crate) fn check(connection: &mut Connection, path: &Path, flavour: Flavour) -> Result<i32> {
    let refused = |error| crate::connection::opening(path, Error::from(error));
    // Everything is read in one snapshot, because another process may be creating the tables.
    let connection = connection.transaction().map_err(refused)?;
    let version: i32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(refused)?;
    match whose(&connection).map_err(refused)? {
        Whose::Nobodys => return Ok(0),
        Whose::Ours => {}
        Whose::Anothers => {
            let message = format!("`{}` is a database of another program", path.display());
            return Err(Error::new(Kind::Store, message)
                .hint("move it away, or name another data directory in TIRO_DATA_DIR"));
        }
    }
    if version > newest(flavour) {
        let min_writer: Option<i32> = connection
            .query_row("SELECT value FROM meta WHERE key = 'min_writer'", [], |row| row.get(0))
            .optional()?;
        if min_writer.is_none_or(|min| min > newest(flavour)) {
            let message = format!("`{}` was written by a newer Tiro (schema {version})", path.display());
            return Err(
                Error::new(Kind::Store, message).hint("update this Tiro; the file was left untouched")
            );
        }
    }
    Ok(version)
}

/// Errors with [`Kind::Store`] if a newer Tiro upgraded the file so that this program may no longer write to it.
pub(crate) fn may_write(transaction: &Connection, flavour: Flavour) -> Result<()> {
    let min_writer: i32 = transaction
        .prepare_cached("SELECT value FROM meta WHERE key = 'min_writer'")?
        .query_row([], |row| row.get(0))?;
    if min_writer <= newest(flavour) {
        return Ok(());
    }
    Err(Error::new(Kind::Store, "a newer Tiro changed the store since this one opened it")
        .hint("restart the client, so that it starts the newer Tiro; this write was not stored"))
}

/// Copies the file into a folder beside it, and removes all but the last two copies. Called before a migration changes
/// the file.
///
/// A copy gets its name only when it is complete. Only one process at a time makes a copy, so any unfinished copy was
/// left by a process that died.
fn back_up(connection: &Connection, path: &Path, version: i32) -> Result<()> {
    let folder = backups_folder(path);
    private::create_dir(&folder)?;
    whole::remove_unfinished(&folder);
    let name = |number: i32| folder.join(format!("schema-{version:04}-{number:04}.db"));
    let target = (1..).map(name).find(|name| !name.exists()).expect("some number is free");
    whole::make(&target, |copy| whole::copy_pages(connection, copy))?;
    let mut kept = backups(path)?;
    while kept.len() > BACKUPS_KEPT {
        remove(&kept.remove(0))?;
    }
    Ok(())
}

/// Removes an automatic copy. Succeeds even if another process has already removed it.
fn remove(backup: &Path) -> Result<()> {
    match std::fs::remove_file(backup) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => Ok(done
            .context(Kind::Io, || format!("cannot remove the old backup `{}`", quoted(backup.display())))?),
    }
}

/// Removes all automatic copies of the file at `path`, including unfinished ones.
pub(crate) fn remove_backups(path: &Path) -> Result<()> {
    let folder = backups_folder(path);
    backups(path)?.iter().chain(&whole::unfinished(&folder)).try_for_each(|backup| remove(backup))
}

/// Returns the automatic copies of the file at `path`, oldest first.
fn backups(path: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(backups_folder(path)) else { return Ok(Vec::new()) };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "db"));
    found.sort();
    Ok(found)
}

fn backups_folder(path: &Path) -> PathBuf {
    let mut name = path.file_name().expect("a store is a file").to_owned();
    name.push(".backups");
    path.with_file_name(name)
}
