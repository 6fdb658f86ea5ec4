//! The store in SQLite: one database file for each project, in WAL mode, shared by many processes.
//!
//! Rows, text index and vectors change in one transaction, and a write returns only after it is durable. Every
//! write is one short `BEGIN IMMEDIATE` transaction, in which nothing slow happens. A deferred transaction,
//! which begins by reading, would often fail with "database is locked" at its first write if there are many
//! writers. SQLite's calls block, so they run on blocking threads.

mod columns;
mod connection;
mod file;
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
mod summaries;
mod superseded;
#[cfg(test)]
mod tests;
mod threads;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use connection::{BUSY_TIMEOUT, LOOK_AGAIN, Unsynced, blocking, lock, moves_log_at_close, opening};
use file::connect::connect;
use file::{migrate, place, readers};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use search::admitted::AdmittedChunks;
use search::stems::CommonTerms;
use search::vector_cache::VectorCaches;
use stash::chunks::StashedChunks;

use crate::error::{Error, Kind, Result};
use crate::private;
use crate::scope::{ProjectId, Scope};
use crate::store::Flavour;
use crate::store::clock::Clock;

pub use foreign::Foreign;
pub use registry::Registry;

/// The maximum number of bytes that the WAL may have after a write; a longer WAL is emptied. With small writes,
/// the WAL stays a little shorter than that.
const LONGEST_LOG: u64 = 4_350_000;

/// The oldest SQLite that is free of the checkpoint race, which can corrupt a database in WAL mode.
const OLDEST_SOUND_SQLITE: i32 = 3_051_003;

/// One open file of memories. Clones share its connections and its cache of vectors.
///
/// [The module](crate::store) says what all methods of a store promise.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// Whether this handle refuses to change what is stored.
    only_reads: bool,
}

struct Inner {
    path: PathBuf,
    place: place::Place,
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

/// How often this process found, or didn't find, an answer in the cache. These counts are not stored yet.
#[derive(Clone, Copy, Debug, Default)]
struct CacheUse {
    hits: i64,
    misses: i64,
}

impl Store {
    /// Opens the file at `path`, creating it and bringing its schema up to date as needed.
    ///
    /// If several processes open it at once, one creates or upgrades it and the others wait. Errors with
    /// [`Kind::Store`] if the file can't be opened, is not a store, or comes from a newer Tiro and this one may
    /// not write to it. Errors with [`Kind::Busy`] if an upgrade takes longer than five minutes. The file is
    /// never renamed, replaced or repaired.
    pub fn open(path: &Path, flavour: Flavour, project: ProjectId) -> Result<Store> {
        if rusqlite::version_number() < OLDEST_SOUND_SQLITE {
            let version = rusqlite::version();
            return Err(Error::new(Kind::Store, format!("SQLite {version} can corrupt a shared database"))
                .hint("build Tiro with its bundled SQLite"));
        }
        if let Some(parent) = path.parent() {
            private::create_dir(parent)?;
        }
        /// How many times to try to open a file that is replaced during the opening.
        const ATTEMPTS: usize = 3;
        // One process at a time makes a file or changes its schema; the others wait for it.
        let turn = place::Turn::take(path)?;
        for _ in 1..ATTEMPTS {
            let store = Store::open_in_turn(path, flavour, project.clone(), &turn)?;
            if store.is_current() {
                return Ok(store);
            }
        }
        Store::open_in_turn(path, flavour, project, &turn)
    }

    fn open_in_turn(path: &Path, flavour: Flavour, project: ProjectId, turn: &place::Turn) -> Result<Store> {
        // SQLite would create the file with the permissions that the umask leaves, and it gives the log the
        // same permissions. So `fill` gets an empty file that already exists and is private.
        let fill = |new: &Path| {
            let mut writer = connect(new, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            moves_log_at_close(&writer)?;
            migrate::migrate(&mut writer, path, flavour)?;
            writer.close().map_err(|(_, error)| error.into())
        };
        let entered = place::Entered::enter(path, turn, fill).map_err(|error| opening(path, error))?;
        let mut writer =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| opening(path, error))?;
        migrate::migrate(&mut writer, path, flavour)?;
        let place = entered.opened(&writer)?;
        Ok(Store::of(path.to_owned(), flavour, project, place, writer))
    }

    /// Makes an empty store in memory, called `name` within this process. It is gone when the process ends.
    pub fn blank(name: &str, flavour: Flavour, project: ProjectId) -> Result<Store> {
        let path = PathBuf::from(format!("file:/{name}-{flavour:?}?vfs=memdb"));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut writer = connect(&path, flags)?;
        migrate::migrate(&mut writer, &path, flavour)?;
        let place = place::Place::blank(path.clone());
        Ok(Store::of(path, flavour, project, place, writer))
    }

    fn of(
        path: PathBuf,
        flavour: Flavour,
        project: ProjectId,
        place: place::Place,
        writer: Connection,
    ) -> Store {
        let inner = Inner {
            path: path.clone(),
            place,
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
        Store { inner: Arc::new(inner), only_reads: false }
    }

    /// Returns a handle on the same store that only reads: writes are refused. Caches, leases and what contexts show are
    /// recorded all the same.
    pub fn reader(&self) -> Store {
        Store { only_reads: true, ..self.clone() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns whether the open file is still the one at its path: it wasn't removed, moved or replaced.
    pub fn is_current(&self) -> bool {
        self.inner.place.is_current()
    }

    /// Returns whether both stores have the same file open.
    pub fn is_same_file(&self, other: &Store) -> bool {
        self.inner.place.is_same(&other.inner.place)
    }

    /// Closes the store's connections and drops its caches; later calls fail. A connection that a call is using is
    /// closed when the call ends. When the last process closes the store, SQLite moves the log into the file.
    ///
    /// Returns whether the writing connection was closed.
    pub fn leave(&self) -> bool {
        self.inner.place.leave();
        self.inner.readers.close();
        if let Ok(mut vectors) = self.inner.vectors.try_lock() {
            *vectors = VectorCaches::default();
        }
        match (self.inner.writer.try_lock(), Connection::open_in_memory()) {
            (Ok(mut writer), Ok(empty)) => *writer = empty,
            _ => return false,
        }
        true
    }

    /// Closes the store as [`Store::leave`] does, waiting up to `patience` for calls that read and for one that writes.
    pub fn close(&self, patience: Duration) {
        let began = Instant::now();
        self.inner.readers.close();
        // SQLite moves the log into the file only if no other connection is open when the writing one is closed.
        while self.inner.readers.are_lent() && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
        while !self.leave() && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Returns the clock that leases are measured by, for a test to set.
    #[cfg(test)]
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Returns all rows of the file, by table.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> std::collections::BTreeMap<String, Vec<String>> {
        let writer = lock(&self.inner.writer);
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

    /// Runs `work` on a reading connection, on a blocking thread, in one snapshot of the file.
    ///
    /// Errors with [`Kind::Busy`] if `work` takes longer than [`readers::OLDEST`].
    async fn read<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        let turn = self.inner.readers.turn().await;
        blocking(move || {
            let mut reader = store.inner.readers.lend(turn)?;
            // The place is checked only after the connection was opened, since the file may have been replaced
            // before that.
            store.inner.place.check()?;
            moves_log_at_close(&reader)?;
            let snapshot = reader.transaction().map_err(Error::from)?;
            work(&store.inner, &snapshot, &scope)
        })
        .await
    }

    /// Runs `work` in one immediate transaction on the writing connection, on a blocking thread.
    ///
    /// The changes of `work` are durable when this method returns. If `work` fails, none of its changes are
    /// kept.
    ///
    /// Errors with [`Kind::Store`] if the handle only reads.
    async fn write<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.only_reads {
            return Err(Error::new(Kind::Store, "a call that only reads may not change what is stored"));
        }
        self.write_beside(scope, work).await
    }

    /// Like [`Store::write`], for what is beside the memories, such as a cache. A handle that only reads does it too.
    async fn write_beside<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        blocking(move || store.inner.write(&mut lock(&store.inner.writer), |changes| work(changes, &scope)))
            .await
    }

    /// Like [`Store::write`], but doesn't wait for the disk: after a power failure the changes may be gone, though not
    /// after the end of a process. Other processes see them when this method returns.
    async fn write_unsynced<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        blocking(move || {
            let mut writer = lock(&store.inner.writer);
            let mut writer = Unsynced::of(&mut writer)?;
            store.inner.write(&mut writer, |changes| work(changes, &scope))
        })
        .await
    }

    /// Closes reading connections that were idle for a while.
    pub fn close_idle_readers(&self) {
        self.inner.readers.rest();
    }

    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`] if other processes, or other calls of this process, write during all that
    /// time.
    pub async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()> {
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let began = Instant::now();
            let busy = || Error::new(Kind::Busy, "another call writes to the store").hint("try again later");
            let mut writer = loop {
                match store.inner.writer.try_lock() {
                    Ok(writer) => break writer,
                    Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Err(busy()),
                    Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
                }
            };
            store.inner.place.check()?;
            writer.busy_timeout(patience.saturating_sub(began.elapsed()))?;
            let turn = writer.transaction_with_behavior(TransactionBehavior::Immediate).map(drop);
            writer.busy_timeout(BUSY_TIMEOUT)?;
            Ok(turn?)
        })
        .await
    }

    /// Errors with [`Kind::NotFound`] if the scope is of another project.
    fn admit(&self, scope: &Scope) -> Result<()> {
        if scope.project == self.inner.project {
            return Ok(());
        }
        Err(Error::not_found("the scope is of a project that the store doesn't hold"))
    }

    /// Moves the log into the file, so that a copy of only this file is complete. Does nothing while another
    /// call reads or writes.
    pub async fn rest(&self, scope: &Scope) -> Result<()> {
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

impl Inner {
    /// Runs `work` in one immediate transaction of `writer`.
    fn write<T>(&self, writer: &mut Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.place.check()?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.may_write(&transaction)?;
        let answer = work(&transaction)?;
        self.place.check()?;
        transaction.commit()?;
        self.place.acknowledge()?;
        self.shorten_log(writer, LONGEST_LOG);
        Ok(answer)
    }

    /// Errors with [`Kind::Store`] if a newer Tiro upgraded the file so that this one may not write to it, or
    /// if another store overwrote the file.
    ///
    /// Each write checks this in its transaction, since the file may change while a server runs for weeks.
    fn may_write(&self, transaction: &Connection) -> Result<()> {
        migrate::may_write(transaction, self.flavour)?;
        self.place.check_content(transaction)
    }

    /// Empties the WAL if it is longer than `most` bytes; otherwise the WAL would keep the size that the
    /// longest write gave it. Does nothing while others read.
    fn shorten_log(&self, writer: &Connection, most: u64) {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        if !std::fs::metadata(&log).is_ok_and(|log| log.len() > most) {
            return;
        }
        // If this fails, the next write tries again.
        drop(writer.busy_timeout(Duration::ZERO));
        drop(writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(writer.busy_timeout(BUSY_TIMEOUT));
    }
}
