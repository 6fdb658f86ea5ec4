//! The error type within this engine: errors of SQLite in Tiro's words, and Tiro's own errors. Outside of the engine,
//! errors are of the type [`tiro_base::error::Error`].
//!
//! The error types of SQLite and of Tiro are both defined in other crates, so `?` can convert between them only through
//! a type of this crate.

use std::fmt;
use std::ops::Deref;

use tiro_base::error::Kind;

/// The hint for errors caused by a failure of the disk.
pub(super) const FAILED_DISK: &str = "repeat the call; if it fails again, ask the user to check the disk";

/// The result of the functions of this engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this engine.
pub struct Error(tiro_base::error::Error);

impl Error {
    /// Returns an error with this message; see [`tiro_base::error::Error::new`].
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(tiro_base::error::Error::new(kind, message))
    }

    /// Returns a [`Kind::BadInput`] error.
    pub fn bad_input(message: impl Into<String>) -> Error {
        Error::new(Kind::BadInput, message)
    }

    /// Returns a [`Kind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message)
    }

    /// Adds the hint: what the reader can try next.
    pub fn hint(self, hint: impl Into<String>) -> Error {
        Error(self.0.hint(hint))
    }

    /// Adds the cause. The kind of the cause is shown, but never its text.
    pub fn source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error(self.0.source(source))
    }
}

impl Deref for Error {
    type Target = tiro_base::error::Error;

    fn deref(&self) -> &tiro_base::error::Error {
        &self.0
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<tiro_base::error::Error> for Error {
    fn from(error: tiro_base::error::Error) -> Error {
        Error(error)
    }
}

impl From<Error> for tiro_base::error::Error {
    fn from(error: Error) -> tiro_base::error::Error {
        error.0
    }
}

/// If this error is the cause of another error, the wrapped error becomes the cause.
impl From<Error> for Box<dyn std::error::Error + Send + Sync> {
    fn from(error: Error) -> Box<dyn std::error::Error + Send + Sync> {
        error.0.into()
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode::*;
        let (kind, message, hint) = match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked) => (
                Kind::Busy,
                "another process writes to the store",
                "try again when it is done; other servers and imports of the project write to the same store",
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
            Some(NotADatabase) => (
                Kind::Store,
                "the file is not a database, or its beginning is damaged",
                "leave it as it is, and ask the user to run `tiro doctor`",
            ),
            Some(DatabaseCorrupt) => (
                Kind::Store,
                "a part of the store could not be read",
                "leave its files as they are, and ask the user to run `tiro doctor`",
            ),
            Some(SystemIoFailure) => {
                (Kind::Store, "the disk failed while the store was read or written", FAILED_DISK)
            }
            _ => (Kind::Store, "the store failed", "`tiro doctor` checks the store"),
        };
        // SQLite's message may quote a stored text, so only the words for its code are shown.
        let code = error.sqlite_error().filter(|_| message == "the store failed");
        let words = code.map_or(String::new(), |code| {
            format!(" ({})", rusqlite::ffi::code_to_str(code.extended_code).to_lowercase())
        });
        Error::new(kind, format!("{message}{words}")).source(error).hint(hint)
    }
}
