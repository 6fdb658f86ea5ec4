//! The store in SQLite: one database file for each project, in WAL mode, shared by many processes.
//!
//! Rows, text index and vectors change in one transaction, and a write returns only after it is durable. Every write is one
//! short `BEGIN IMMEDIATE` with nothing slow inside: deferred transactions that upgrade fail with "database is locked" under
//! many writers. SQLite's calls block, so they run on blocking threads.

mod columns;
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
mod summaries;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use file::{migrate, place, readers};
pub use foreign::Foreign;
pub use registry::Registry;
use search::{dense, vocabulary};
use summaries::cache;

use crate::error::{Error, Kind, Result};
use crate::private;
use crate::scope::{ProjectId, Scope};
use crate::store::Flavour;
use crate::store::clock::Clock;

/// How long a writer waits for other processes before it fails.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two looks at whether another call has finished its write.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The size from which on the WAL is emptied after a write, in bytes: a little more than it reaches by small writes.
const LONGEST_LOG: u64 = 4_350_000;

/// The page cache of the writing connection, in KiB. Arbitrary: about the pages that one transaction of an import changes.
const CACHE_KIB: i64 = 4 * 1024;

/// The first SQLite without the checkpoint race that can corrupt a WAL file.
const OLDEST_SOUND_SQLITE: i32 = 3_051_003;

/// One open file of memories. Clones share its connections and its cache of vectors.
///
/// The promises of all its methods are those of [the module](crate::store).
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    place: place::Place,
    flavour: Flavour,
    project: ProjectId,
    writer: Mutex<Connection>,
    readers: readers::Readers,
    vectors: Mutex<dense::VectorCache>,
    common_terms: Mutex<vocabulary::CommonTerms>,
    cache_use: Mutex<cache::CacheUse>,
    clock: Clock,
}

impl Store {
    /// Opens the file at `path`, creating it and bringing its schema up to date as needed.
    ///
    /// Of several processes that open it at once, one creates or upgrades it and the others wait. Errors with [`Kind::Store`]
    /// where the file is no store, comes from a newer Tiro that this one may not write, or cannot be opened, and with
    /// [`Kind::Busy`] where an upgrade takes longer than five minutes. The file is never renamed, replaced or repaired.
    pub fn open(path: &Path, flavour: Flavour, project: ProjectId) -> Result<Store> {
        if rusqlite::version_number() < OLDEST_SOUND_SQLITE {
            let version = rusqlite::version();
            return Err(Error::new(Kind::Store, format!("SQLite {version} can corrupt a shared database"))
                .hint("build Tiro with its bundled SQLite"));
        }
        if let Some(parent) = path.parent() {
            private::create_dir(parent)?;
        }
        /// How often to open the file again where it is replaced while it is opened.
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
        // SQLite gives the log the mode of its database, and a new database the mode that the umask leaves.
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

    /// Makes an empty store in memory, named `name` within this process; it ends with the process.
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
            cache_use: Mutex::default(),
            clock: Clock::default(),
        };
        Store { inner: Arc::new(inner) }
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

    /// Closes the store's connections and drops its caches; later calls fail. A connection that a call uses just now is closed
    /// when the call ends. When the last process closes the store, SQLite moves the log into the file.
    ///
    /// Returns whether the writing connection was closed.
    pub fn leave(&self) -> bool {
        self.inner.place.leave();
        self.inner.readers.close();
        if let Ok(mut vectors) = self.inner.vectors.try_lock() {
            *vectors = dense::VectorCache::default();
        }
        match (self.inner.writer.try_lock(), Connection::open_in_memory()) {
            (Ok(mut writer), Ok(empty)) => *writer = empty,
            _ => return false,
        }
        true
    }

    /// Closes the store as [`Store::leave`] does, waiting up to `patience` for a call that writes.
    pub fn close(&self, patience: Duration) {
        let began = Instant::now();
        while !self.leave() && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Returns the clock that leases are measured by, for a test to set.
    #[cfg(test)]
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Returns the project whose memories the store holds.
    pub fn project(&self) -> &ProjectId {
        &self.inner.project
    }

    /// Runs `work` on a reading connection, on a blocking thread, in one snapshot of the file.
    ///
    /// Errors with [`Kind::Busy`] where `work` takes longer than [`readers::OLDEST`].
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
            // Checked after the connection was opened too, since the file may have been replaced before.
            store.inner.place.check()?;
            moves_log_at_close(&reader)?;
            let snapshot = reader.transaction().map_err(Error::from)?;
            work(&store.inner, &snapshot, &scope)
        })
        .await
    }

    /// Runs `work` in one immediate transaction on the writing connection, on a blocking thread.
    ///
    /// Its changes are durable when this returns; where it fails, none are kept.
    async fn write<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        blocking(move || {
            let mut writer = lock(&store.inner.writer);
            store.inner.place.check()?;
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            store.inner.may_write(&transaction)?;
            let answer = work(&transaction, &scope)?;
            store.inner.place.check()?;
            transaction.commit()?;
            store.inner.place.acknowledge()?;
            store.inner.shorten_log(&writer, LONGEST_LOG);
            Ok(answer)
        })
        .await
    }

    /// Closes reading connections that were idle for a while.
    pub fn close_idle_readers(&self) {
        self.inner.readers.rest();
    }

    /// Waits until a write could begin, for `patience` at most.
    ///
    /// Errors with [`Kind::Busy`] where other processes, or other calls of this one, write all that time.
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

    /// Errors with [`Kind::NotFound`] for a scope of another project.
    fn admit(&self, scope: &Scope) -> Result<()> {
        if scope.project == self.inner.project {
            return Ok(());
        }
        Err(Error::not_found("the scope is of another project than the store"))
    }

    /// Moves the log into the file, so that a copy of the file alone is complete. Does nothing where another call reads or
    /// writes just now.
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
    /// Errors with [`Kind::Store`] where a newer Tiro upgraded the file beyond this one, or the file holds another store now.
    ///
    /// Part of each write's transaction, since a server may run for weeks.
    fn may_write(&self, transaction: &Connection) -> Result<()> {
        migrate::may_write(transaction, self.flavour)?;
        self.place.check_content(transaction)
    }

    /// Empties the WAL where it is longer than `most` bytes; without this it keeps the size of the longest write. Does nothing
    /// where others read.
    fn shorten_log(&self, writer: &Connection, most: u64) {
        let mut log = self.path.as_os_str().to_owned();
        log.push("-wal");
        if !std::fs::metadata(&log).is_ok_and(|log| log.len() > most) {
            return;
        }
        // A failure is no harm: the next write tries again.
        drop(writer.busy_timeout(Duration::ZERO));
        drop(writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(writer.busy_timeout(BUSY_TIMEOUT));
    }
}

/// Lets SQLite move the log into the file when the last connection is closed.
///
/// Called once the connection is known to belong to the same file as the log: a connection that was opened just after another
/// file was renamed into place would write the log of the old file into the new one.
fn moves_log_at_close(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Opens a connection with the settings of every connection: for reading alone where the file can't be written. It doesn't touch
/// the log when it closes, until [`moves_log_at_close`] allows it.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let opened = connect_to(path, flags);
    match &opened {
        Err(error) if place::is_fixed(path, error) => {
            Ok(connect_to(Path::new(&foreign::uri(path)), place::FIXED)?)
        }
        _ => Ok(opened?),
    }
}

fn connect_to(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Only a store in memory is named by a URI: the path of a file is canonical and begins with `/`.
    let named = if path.starts_with("file:") { OpenFlags::SQLITE_OPEN_URI } else { OpenFlags::empty() };
    let connection = Connection::open_with_flags(path, flags | named | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    // SQLite opens the file with the first statement.
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    Ok(connection)
}

/// Locks a mutex that a panicking thread may have poisoned: no user leaves its value half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a blocking thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(Kind::Store, "a call of the store ended unexpectedly").source(error))
    })
}

/// Adds to an error that the store at `path` was being opened.
fn opening(path: &Path, error: Error) -> Error {
    let hint =
        error.way_out().unwrap_or("check the folder's permissions and free space, or set TIRO_DATA_DIR");
    let hint = hint.to_owned();
    Error::new(error.kind(), format!("cannot open the store `{}`", path.display())).source(error).hint(hint)
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode::*;
        let (kind, message, hint) = match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => (
                Kind::Busy,
                "another process writes to the store",
                "try again when it is done; other servers and imports of the project write to it",
            ),
            Some(OperationInterrupted) => (
                Kind::Busy,
                "reading the store took longer than a minute and was ended",
                "try again when the machine has less to do, or ask for less",
            ),
            Some(DiskFull) => (
                Kind::Store,
                "the disk is full: this write was not stored, earlier ones are kept",
                "free some space, then repeat",
            ),
            Some(ReadOnly | CannotOpen | PermissionDenied) => (
                Kind::Store,
                "the store can't be written",
                "make its folder writable, or name another data directory in TIRO_DATA_DIR",
            ),
            Some(NotADatabase | DatabaseCorrupt) => (
                Kind::Store,
                "the file is damaged or is not a database",
                "move it away and `tiro restore` a backup; Tiro leaves it untouched",
            ),
            _ => (Kind::Store, "the store failed", "`tiro doctor` checks the store"),
        };
        // SQLite's message may quote a text; its code can't.
        let code = error.sqlite_error().filter(|_| message == "the store failed");
        let code = code.map_or(String::new(), |code| format!(" with code {} of SQLite", code.extended_code));
        Error::new(kind, format!("{message}{code}")).source(error).hint(hint)
    }
}
