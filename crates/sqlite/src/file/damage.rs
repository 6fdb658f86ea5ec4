//! Decides whether a store is really damaged after SQLite reported damage.
//!
//! SQLite reports damage as soon as one page is inconsistent, which can also be caused by a temporary fault of the
//! disk. So an error says "damaged" only if a check of the whole file found damage. Until a check has found no damage,
//! nothing is written.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SystemIoFailure};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::connect::connect;
use crate::errno;
use crate::error::{Error, Result};
use tiro_base::error::{Kind, quoted};

/// The hint for errors about damage. The hint doesn't say how to replace the file, because a model may read the hint
/// and follow it.
const WAY_OUT: &str = "leave its files as they are, and ask the user to run `tiro doctor`";

/// Records whether SQLite has reported damage in an open store since the last check without findings.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    is_suspected: AtomicBool,
}

impl Damage {
    /// Errors with [`Kind::Store`] if SQLite reported damage in the store at `path`, and a check finds damage or fails.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        if !self.is_suspected.load(Ordering::Acquire) {
            return Ok(());
        }
        match find(path) {
            Ok(false) => {
                self.is_suspected.store(false, Ordering::Release);
                Ok(())
            }
            Ok(true) => Err(damaged(path)),
            Err(error) => Err(unchecked(path, error)),
        }
    }

    /// If `error` is a report of damage by SQLite, checks the store at `path`, and returns an error with the result of
    /// the check. Otherwise returns `error`.
    pub(crate) fn judge(&self, path: &Path, error: Error) -> Error {
        if !is_reported(&error) {
            return error;
        }
        self.is_suspected.store(true, Ordering::Release);
        match self.check(path) {
            Ok(()) => passing(path, error),
            Err(found) => found,
        }
    }
}

/// Handles an `error` that occurred when the store at `path` was opened. If SQLite reports damage, but a check finds no
/// damage or fails, returns another error. Otherwise returns `error`.
pub(crate) fn judge_opening(path: &Path, error: Error) -> Error {
    if code(&error) != Some(DatabaseCorrupt) {
        return error;
    }
    match find(path) {
        Ok(true) => error,
        Ok(false) => passing(path, error),
        Err(failed) => unchecked(path, failed),
    }
}

/// Returns whether `error` is a report of damage by SQLite.
pub(crate) fn is_reported(error: &Error) -> bool {
    matches!(code(error), Some(DatabaseCorrupt | NotADatabase))
}

/// Returns whether SQLite's `error` may be caused by a log that was cut, so that SQLite reads less than it expects.
pub(crate) fn may_be_cut(error: &Error) -> bool {
    is_reported(error) || code(error) == Some(SystemIoFailure)
}

fn code(error: &Error) -> Option<ErrorCode> {
    error.root::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code)
}

/// Checks the whole file, through a connection of its own. Returns whether there is damage.
fn find(path: &Path) -> Result<bool> {
    let found = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|connection| lines(&connection, "PRAGMA quick_check"));
    match found {
        Err(error) if is_reported(&error) => Ok(true),
        found => found.map(|lines| !lines.is_empty()),
    }
}

/// Runs `check`, one of SQLite's checks of a file. Returns its lines about damage.
///
/// Errors if the disk failed during this check, or earlier on `connection`. In this case, the check would report
/// unreadable pages as damaged.
pub(crate) fn lines(connection: &Connection, check: &str) -> Result<Vec<String>> {
    let checked = connection.prepare(check).and_then(|mut statement| {
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        lines.filter(|line| !matches!(line.as_deref(), Ok("ok"))).collect()
    });
    if errno::is_failure_of_disk(connection) {
        return Err(errno::failure_of_disk().into());
    }
    Ok(checked?)
}

fn passing(path: &Path, error: Error) -> Error {
    let path = quoted(path.display());
    let message = format!("the store `{path}` could not be read for a moment; a check found no damage");
    Error::new(Kind::Store, message)
        .source(error)
        .hint("repeat the call; if it fails again, ask the user to run `tiro doctor`")
}

fn damaged(path: &Path) -> Error {
    let message = format!("the store `{}` is damaged, so nothing is written to it", quoted(path.display()));
    Error::new(Kind::Store, message).hint(WAY_OUT)
}

fn unchecked(path: &Path, error: Error) -> Error {
    let path = quoted(path.display());
    let message = format!("the store `{path}` must be checked for damage first, which failed");
    Error::new(Kind::Store, message).source(error).hint(WAY_OUT)
}
