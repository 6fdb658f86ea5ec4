//! Decides whether a store is damaged, after SQLite said so.
//!
//! SQLite calls a file damaged as soon as one page doesn't fit, which a passing fault of the disk may also cause. So
//! "damaged" is said only after a check of the whole file found damage, and nothing is written until a check found
//! none.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
use rusqlite::OpenFlags;

use super::connect::connect;
use crate::error::{Error, Kind, Result, quoted};

/// What a reader can do about damage. A model may read it, so it doesn't say how to replace the file.
const WAY_OUT: &str = "leave its files as they are, and ask the user to run `tiro doctor`";

/// Whether SQLite reported damage in an open store since the last check that found none.
#[derive(Debug, Default)]
pub(in crate::store::sqlite) struct Damage {
    is_suspected: AtomicBool,
}

impl Damage {
    /// Errors with [`Kind::Store`] if SQLite reported damage in the store at `path`, and a check finds some or fails.
    pub(in crate::store::sqlite) fn check(&self, path: &Path) -> Result<()> {
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

    /// Returns `error`, unless SQLite reports damage in it: then checks the store at `path`, and returns an error that
    /// says what the check found.
    pub(in crate::store::sqlite) fn judge(&self, path: &Path, error: Error) -> Error {
        if !is_reported(&error) {
            return error;
        }
        self.is_suspected.store(true, Ordering::Release);
        match self.check(path) {
            Ok(()) => {
                let message = format!(
                    "the store `{}` could not be read for a moment; a check found no damage",
                    quoted(path.display())
                );
                Error::new(Kind::Store, message)
                    .source(error)
                    .hint("repeat the call; if it fails again, ask the user to run `tiro doctor`")
            }
            Err(found) => found,
        }
    }
}

/// Returns whether SQLite reports damage in `error`.
pub(in crate::store::sqlite) fn is_reported(error: &Error) -> bool {
    let code = error.root::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(DatabaseCorrupt | NotADatabase))
}

/// Checks the whole file, through a connection of its own. Returns whether there is damage.
fn find(path: &Path) -> Result<bool> {
    let state = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|connection| Ok(connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?))
        .map(|state: String| state != "ok");
    match state {
        Err(error) if is_reported(&error) => Ok(true),
        state => state,
    }
}

fn damaged(path: &Path) -> Error {
    let message = format!("the store `{}` is damaged, so nothing is written to it", quoted(path.display()));
    Error::new(Kind::Store, message).hint(WAY_OUT)
}

fn unchecked(path: &Path, error: Error) -> Error {
    let path = quoted(path.display());
    let message =
        format!("the store `{path}` may be damaged, and it could not be checked, so nothing is written");
    Error::new(Kind::Store, message).source(error).hint(WAY_OUT)
}
