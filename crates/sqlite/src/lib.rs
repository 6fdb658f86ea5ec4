//! The store in SQLite: one database file for each project, in WAL mode, shared by many processes.
//!
//! Rows, text index and vectors change in one transaction, and a write returns only after it is durable. Every write is
//! one short `BEGIN IMMEDIATE` transaction, in which nothing slow happens. With many writers, a deferred transaction,
//! which begins by reading, would often fail with "database is locked" at its first write. SQLite's calls block, so
//! they run on blocking threads.

#![allow(
    clippy::missing_docs_in_private_items,
    reason = "what a method promises is in the traits of `tiro-store`, and is not said twice"
)]

mod columns;
mod connection;
mod errno;
mod error;
mod exchange;
mod file;
mod files;
mod foreign;
mod forget;
mod imports;
mod keys;
mod leases;
mod links;
mod read;
mod registry;
mod search;
mod stash;
mod statements;
mod store;
mod summaries;
mod superseded;
#[cfg(test)]
mod tests;
mod threads;
mod transactions;
pub mod tuning;
pub mod vectors;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use connection::{LOOK_AGAIN, blocking, moves_log_at_close, opening};
use file::connect::connect;
use file::damage::Damage;
use file::{damage, migrate, readers, store_file};
use rusqlite::{Connection, OpenFlags};
use search::admitted::AdmittedChunks;
use search::stems::CommonTerms;
use search::vector_cache::VectorCaches;
use stash::chunks::StashedChunks;

use crate::error::{Error, Result};
use tiro_base::error::{Kind, quoted};
use tiro_base::private;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::Flavour;
use tiro_store::clock::Clock;

pub use files::SqliteFiles;
pub use foreign::SqliteBackup;
pub use registry::SqliteRegistry;

/// The first version of SQLite without the checkpoint race, which can corrupt a database in WAL mode.
const OLDEST_SOUND_SQLITE: i32 = 3_051_003;

/// The stores that this process opened.
static OPENED: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// One open file of memories. Clones share its connections and its cache of vectors.
///
/// The documentation of [the crate](crate) says what all methods of a store promise.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    store_file: store_file::StoreFile,
    damage: Damage,
    flavour: Flavour,
    project: ProjectId,
    writer: Mutex<Connection>,
    readers: readers::Readers,
    vectors: Mutex<VectorCaches>,
    common_terms: Mutex<CommonTerms>,
    stashed_chunks: Mutex<StashedChunks>,
    admitted_chunks: Mutex<AdmittedChunks>,
    cache_use: Mutex<CacheUse>,
    clock: Clock,
}

/// Counts of cache hits and misses of this process that are not stored yet.
#[derive(Clone, Copy, Debug, Default)]
struct CacheUse {
    hits: i64,
    misses: i64,
}

impl SqliteStore {
    /// Opens the file at `path`. Creates the file, or brings its schema up to date, if necessary.
    ///
    /// If several processes open the file at once, one of them creates or upgrades the file, and the others wait.
    /// Errors with [`Kind::Store`] if the file can't be opened, is not a store, or was upgraded by a newer Tiro so that
    /// this program may not write to it. Errors with [`Kind::Busy`] if an upgrade takes longer than five minutes. The
    /// file is never renamed, replaced or repaired.
    pub fn open(path: &Path, flavour: Flavour, project: ProjectId) -> Result<SqliteStore> {
        if rusqlite::version_number() < OLDEST_SOUND_SQLITE {
            let version = rusqlite::version();
            return Err(Error::new(Kind::Store, format!("SQLite {version} can corrupt a shared database"))
                .hint("build Tiro with its bundled SQLite"));
        }
        if let Some(parent) = path.parent() {
            private::create_dir(parent)?;
        }
        /// The number of attempts to open a file that is replaced during the opening.
        const ATTEMPTS: usize = 3;
        SqliteStore::close_former(path)?;
        let turn = SqliteStore::turn(path)?;
        let open = || SqliteStore::open_in_turn(path, flavour, project.clone(), &turn);
        for _ in 1..ATTEMPTS {
            let store = open().map_err(|error| damage::judge_opening(path, error))?;
            if store.is_current() {
                return Ok(store);
            }
        }
        open().map_err(|error| damage::judge_opening(path, error))
    }

    /// Closes the connections that this process opened to a former file at `path`. SQLite shares the index of the log
    /// among all connections of a process to a file, so an old connection would lead new ones to a removed log.
    ///
    /// Errors with [`Kind::Busy`] if calls still use such a connection.
    fn close_former(path: &Path) -> Result<()> {
        /// The time to wait for calls that still use such a connection. Most calls use a connection for a shorter time.
        /// The time is limited because further calls wait until the store is open.
        const PATIENCE: Duration = Duration::from_secs(3);
        let opened = connection::lock(&OPENED).clone();
        for inner in opened.iter().filter_map(Weak::upgrade).filter(|inner| inner.path == path) {
            let former = SqliteStore { inner };
            if former.inner.store_file.has_file() && !former.is_current() && !former.close(PATIENCE) {
                let path = quoted(path.display());
                return Err(Error::new(
                    Kind::Busy,
                    format!("calls still use the former log of the store `{path}`"),
                )
                .hint("repeat the call"));
            }
        }
        Ok(())
    }

    /// Waits until this process may make the file or change its schema, which only one process may do at a time. If the
    /// log was removed, also waits until one of the processes that have it open has moved its content into the file.
    fn turn(path: &Path) -> Result<store_file::OpeningTurn> {
        /// The maximum waiting time. The idle worker of a server notices within a shorter time that the log was
        /// removed.
        const PATIENCE: Duration = Duration::from_secs(15);
        let began = Instant::now();
        loop {
            let turn = store_file::OpeningTurn::take(path)?;
            if !store_file::is_lost(path, &turn) {
                return Ok(turn);
            }
            if began.elapsed() >= PATIENCE {
                let path = quoted(path.display());
                let message =
                    format!("the log of the store `{path}` was removed, and a program still has it open");
                return Err(Error::new(Kind::Busy, message).hint(
                    "end the other programs that use the store (servers of Tiro), then repeat the call",
                ));
            }
            drop(turn);
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn open_in_turn(
        path: &Path,
        flavour: Flavour,
        project: ProjectId,
        turn: &store_file::OpeningTurn,
    ) -> Result<SqliteStore> {
        // SQLite would create the file with the permissions that the umask leaves, and it gives the log the same
        // permissions. So an empty private file is made first, and `fill` writes into it.
        let fill = |new: &Path| {
            let mut writer = connect(new, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            moves_log_at_close(&writer)?;
            migrate::migrate(&mut writer, path, flavour)?;
            writer.close().map_err(|(_, error)| error.into())
        };
        let entered = store_file::Entered::enter(path, turn, fill).map_err(|error| opening(path, error))?;
        let mut writer =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| opening(path, error))?;
        migrate::migrate(&mut writer, path, flavour)?;
        let store_file = entered.opened(&writer)?;
        Ok(SqliteStore::of(path.to_owned(), flavour, project, store_file, writer))
    }

    /// Makes an empty store in memory. The store is called `name` within this process, and disappears when the process
    /// ends.
    pub fn blank(name: &str, flavour: Flavour, project: ProjectId) -> Result<SqliteStore> {
        let path = PathBuf::from(format!("file:/{name}-{flavour:?}?vfs=memdb"));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut writer = connect(&path, flags)?;
        migrate::migrate(&mut writer, &path, flavour)?;
        let store_file = store_file::StoreFile::blank(path.clone());
        Ok(SqliteStore::of(path, flavour, project, store_file, writer))
    }

    fn of(
        path: PathBuf,
        flavour: Flavour,
        project: ProjectId,
        store_file: store_file::StoreFile,
        writer: Connection,
    ) -> SqliteStore {
        let inner = Inner {
            path: path.clone(),
            store_file,
            damage: Damage::default(),
            flavour,
            project,
            writer: Mutex::new(writer),
            readers: readers::Readers::new(path, readers::OLDEST),
            vectors: Mutex::default(),
            common_terms: Mutex::default(),
            stashed_chunks: Mutex::default(),
            admitted_chunks: Mutex::default(),
            cache_use: Mutex::default(),
            clock: Clock::default(),
        };
        let inner = Arc::new(inner);
        let mut opened = connection::lock(&OPENED);
        opened.retain(|other| other.strong_count() > 0);
        opened.push(Arc::downgrade(&inner));
        SqliteStore { inner }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns whether the open file is still the file at its path, so that it was not removed, moved or replaced.
    pub fn is_current(&self) -> bool {
        self.inner.store_file.is_current()
    }

    /// Closes the store's connections and drops its caches. Later calls fail. A connection that a call is using is
    /// closed when the call ends. When the last process closes the store, SQLite moves the log into the file. If the
    /// log was removed, its content is moved into the file first; if the content can't be moved yet, nothing is closed.
    ///
    /// Returns whether the writing connection was closed.
    pub fn leave(&self) -> bool {
        if self.inner.store_file.is_released() {
            return true;
        }
        // If a call is using the writing connection, the content of the log is saved when this call fails.
        if let Ok(writer) = self.inner.writer.try_lock()
            && !self.inner.keep_log(&writer)
        {
            return false;
        }
        let keeps_log = !self.is_current();
        self.inner.store_file.leave();
        self.inner.readers.close(keeps_log);
        if let Ok(mut vectors) = self.inner.vectors.try_lock() {
            *vectors = VectorCaches::default();
        }
        let (Ok(mut writer), Ok(empty)) = (self.inner.writer.try_lock(), Connection::open_in_memory()) else {
            return false;
        };
        if keeps_log {
            connection::keeps_log_at_close(&writer);
        }
        *writer = empty;
        self.inner.store_file.release();
        true
    }

    /// Like [`SqliteStore::leave`], but waits up to `patience` for running calls that read or write. Returns whether
    /// all connections are closed.
    pub fn close(&self, patience: Duration) -> bool {
        let began = Instant::now();
        self.inner.readers.close(!self.is_current());
        // SQLite moves the log into the file only if no other connection is open when the writing connection is closed.
        while self.inner.readers.are_lent() && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
        while !self.leave() && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
        self.inner.store_file.is_released() && !self.inner.readers.are_lent()
    }

    /// Returns the clock that is used for leases. Tests can set it.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Returns how many snapshots of the file at `path` this process has read. Used by tests.
    pub fn reads(path: &Path) -> u64 {
        let opened = connection::lock(&OPENED).clone();
        let own = opened.iter().filter_map(Weak::upgrade).filter(|inner| inner.path == path);
        own.map(|inner| inner.readers.lent()).sum()
    }

    /// Returns all rows of the file, by table.
    pub fn rows(&self) -> std::collections::BTreeMap<String, Vec<String>> {
        let writer = connection::lock(&self.inner.writer);
        let named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'text_index%'";
        let mut statement = writer.prepare(named).unwrap();
        let names: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        let read = |name: String| {
            let mut statement = writer.prepare(&format!("SELECT * FROM {name}")).unwrap();
            let columns = statement.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                let values = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at));
                Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
            };
            let rows = statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
            (name, rows)
        };
        names.into_iter().map(read).collect()
    }

    /// Returns the project whose memories the store holds.
    pub fn project(&self) -> &ProjectId {
        &self.inner.project
    }

    /// Closes reading connections that were idle for a while.
    pub fn close_idle_readers(&self) {
        self.inner.readers.rest();
    }

    /// Errors with [`Kind::NotFound`] if the scope names another project.
    fn admit(&self, scope: &Scope) -> tiro_base::error::Result<()> {
        tiro_store::decide::scope::admits(&self.inner.project, scope)
    }

    /// Moves the log into the file, so that a copy of the file alone is complete. Does nothing while another call reads
    /// or writes.
    pub async fn rest(&self, scope: &Scope) -> tiro_base::error::Result<()> {
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            if let Ok(writer) = store.inner.writer.try_lock() {
                store.inner.shorten_log(&writer, 0);
            }
            Ok(())
        })
        .await
    }
}
