//! Opens connections, runs blocking work, and turns SQLite's errors into Tiro's.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::errno;
use crate::error::{Error, FAILED_DISK, Result};
use tiro_base::error::{self, Kind, is_of_disk};

/// The time that a writer waits for other processes before it fails.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between two checks whether another call has finished its write.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The page cache of the writing connection, in KiB. Arbitrary: about the size of all pages that one transaction of an
/// import changes.
const CACHE_KIB: i64 = 4 * 1024;

/// Lets SQLite move the log into the file when the last connection is closed.
///
/// Call this function only if the log is known to belong to the file that the connection has open. If the connection
/// was opened just after another file was renamed to the path, SQLite would write the log of the old file into the new
/// file.
pub(crate) fn moves_log_at_close(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Makes SQLite leave the log and the file unchanged when the connection is closed, because another process may have
/// replaced them.
pub(crate) fn keeps_log_at_close(connection: &Connection) {
    // This can't fail for an open connection.
    drop(connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
}

pub(crate) fn connect_to(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Only a store in memory has a URI here. The path of a file is canonical, so it begins with `/`.
    let named = if path.starts_with("file:") { OpenFlags::SQLITE_OPEN_URI } else { OpenFlags::empty() };
    let opened = Connection::open_with_flags(path, flags | named | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    // SQLite doesn't say why it could not open the file. The file is not opened here to find out the reason, because
    // closing it again would release SQLite's locks.
    let connection = match opened {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) && is_writable(path) => {
            return Err(errno::failure_of_disk());
        }
        opened => opened?,
    };
    match set_up(&connection) {
        Err(_) if errno::is_failure_of_disk(&connection) => Err(errno::failure_of_disk()),
        set_up => set_up.map(|()| connection),
    }
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // SQLite doesn't move pages from the log into the file by itself: each write does this after it has checked the
    // log.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.set_prepared_statement_cache_capacity(64);
    // SQLite opens the file only when it runs the first statement.
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))
}

/// Returns whether the file and its folder can be written.
#[cfg(unix)]
pub(crate) fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, access};

    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    [path, folder].iter().all(|path| access(*path, Access::WRITE_OK).is_ok())
}

#[cfg(not(unix))]
pub(crate) fn is_writable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.permissions().readonly())
}

/// A connection whose writes don't wait for the disk until this value is dropped.
pub(crate) struct Unsynced<'c>(&'c mut Connection);

impl<'c> Unsynced<'c> {
    pub(crate) fn of(connection: &'c mut Connection) -> Result<Unsynced<'c>> {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(Unsynced(connection))
    }
}

impl Deref for Unsynced<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl DerefMut for Unsynced<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0
    }
}

impl Drop for Unsynced<'_> {
    fn drop(&mut self) {
        // This fails only within a transaction, and the work has ended its transaction.
        drop(self.0.pragma_update(None, "synchronous", "FULL"));
    }
}

/// The writing connection of a call. The call has already waited for other calls of this process. This time is
/// subtracted from [`BUSY_TIMEOUT`]: until this value is dropped, the connection waits for other processes only for the
/// rest.
pub(crate) struct Waiting<'c>(MutexGuard<'c, Connection>);

impl<'c> Waiting<'c> {
    /// The minimum time that a call waits for other processes, which may write only for a moment. Most writes take
    /// less.
    const LEAST: Duration = Duration::from_millis(100);

    /// `began` is the time when the call began to wait.
    pub(crate) fn since(began: Instant, connection: MutexGuard<'c, Connection>) -> Result<Waiting<'c>> {
        connection.busy_timeout(BUSY_TIMEOUT.saturating_sub(began.elapsed()).max(Self::LEAST))?;
        Ok(Waiting(connection))
    }
}

impl Deref for Waiting<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Waiting<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // This can't fail for an open connection.
        drop(self.0.busy_timeout(BUSY_TIMEOUT));
    }
}

/// Locks a mutex even if it is poisoned because a thread panicked. Ignoring the poison is safe because no code leaves
/// the value of such a mutex half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> error::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done
        .map_err(|error| Error::new(Kind::Store, "a call of the store ended unexpectedly").source(error))?;
    Ok(done?)
}

/// Returns an error that says that the store at `path` can't be opened. Its source is `error`.
pub(crate) fn opening(path: &Path, error: Error) -> Error {
    let number = error.root::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    let hint = match error.way_out() {
        Some(hint) => hint,
        None if number.is_some_and(is_of_disk) => FAILED_DISK,
        None => "check the folder's permissions and free space, or set TIRO_DATA_DIR",
    };
    let hint = hint.to_owned();
    Error::new(error.kind(), format!("cannot open the store `{}`", path.display())).source(error).hint(hint)
}
