//! The error type within this engine: errors of PostgreSQL in Tiro's words, and Tiro's own errors. Outside of the
//! engine, errors are of the type [`tiro_base::error::Error`].
//!
//! The error types of the driver and of Tiro are both defined in other crates, so `?` can convert between them only
//! through a type of this crate.

use std::fmt;
use std::ops::Deref;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use tiro_base::error::Kind;

/// The result of the functions of this engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this engine.
pub struct Error {
    error: tiro_base::error::Error,
    /// Whether the same transaction may succeed if it is run again at once.
    is_passing: bool,
}

impl Error {
    /// Returns an error with this message; see [`tiro_base::error::Error::new`].
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        tiro_base::error::Error::new(kind, message).into()
    }

    /// Returns a [`Kind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message)
    }

    /// Adds the hint: what the reader can try next.
    pub fn hint(self, hint: impl Into<String>) -> Error {
        Error { error: self.error.hint(hint), ..self }
    }

    /// Adds the cause. The kind of the cause is shown, but never its text.
    pub fn source(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error { error: self.error.source(source), ..self }
    }

    /// Returns whether the same transaction may succeed if it is run again at once: two transactions waited for each
    /// other, or the connection was lost before the commit.
    pub fn is_passing(&self) -> bool {
        self.is_passing
    }
}

impl Deref for Error {
    type Target = tiro_base::error::Error;

    fn deref(&self) -> &tiro_base::error::Error {
        &self.error
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl From<tiro_base::error::Error> for Error {
    fn from(error: tiro_base::error::Error) -> Error {
        Error { error, is_passing: false }
    }
}

impl From<Error> for tiro_base::error::Error {
    fn from(error: Error) -> tiro_base::error::Error {
        error.error
    }
}

/// If this error is the cause of another error, the wrapped error becomes the cause.
impl From<Error> for Box<dyn std::error::Error + Send + Sync> {
    fn from(error: Error) -> Box<dyn std::error::Error + Send + Sync> {
        error.error.into()
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        #[cfg(test)]
        eprintln!("{error:?}");
        let code = error.code().cloned();
        let (kind, message, hint) = told(&error, code.as_ref());
        let is_lost = error.is_closed() || code.as_ref().is_some_and(is_shutdown) || is_broken(&error);
        let conflicts = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
        let is_passing = is_lost || code.as_ref().is_some_and(|code| conflicts.contains(code));
        // The message of the server may quote a stored text, so only its code is shown.
        let code = code.filter(|_| message == "the database failed");
        let words = code.map_or(String::new(), |code| format!(" ({})", code.code()));
        let told = tiro_base::error::Error::new(kind, format!("{message}{words}")).hint(hint).source(error);
        Error { error: told, is_passing }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Error {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(_) => Error::new(Kind::Busy, "all connections to the database are in use")
                .hint("repeat the call when the server has less to do"),
            other => Error::new(Kind::Store, "cannot connect to the database").source(other),
        }
    }
}

/// Returns the kind of the error, its message and its hint.
fn told(error: &tokio_postgres::Error, code: Option<&SqlState>) -> (Kind, &'static str, &'static str) {
    const GONE: (Kind, &str, &str) = (
        Kind::Store,
        "the database can't be reached",
        "repeat the call; if it fails again, check that PostgreSQL runs and that its address is right",
    );
    const FAILED: (Kind, &str, &str) = (Kind::Store, "the database failed", "the log of PostgreSQL says why");
    let Some(code) = code else {
        return if error.is_closed() || is_broken(error) { GONE } else { FAILED };
    };
    let is = |codes: &[SqlState]| codes.contains(code);
    if is_shutdown(code) {
        return GONE;
    }
    if is(&[
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ]) {
        let hint = "try again when it is done; other servers and imports write to the same project";
        return (Kind::Busy, "another process writes to the store", hint);
    }
    if is(&[SqlState::QUERY_CANCELED]) {
        let hint = "try again when the database has less to do, or ask for less";
        return (Kind::Busy, "reading the store took longer than a minute and was ended", hint);
    }
    if is(&[SqlState::TOO_MANY_CONNECTIONS]) {
        let hint = "repeat the call; `max_connections` of PostgreSQL may be too low for all replicas";
        return (Kind::Busy, "the database accepts no further connections", hint);
    }
    if is(&[SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY]) {
        let hint = "free some space on the database server, then repeat";
        return (Kind::Store, "the database is full: this write was not stored, earlier ones are kept", hint);
    }
    if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) {
        let hint = "it may be a standby: name the primary server in the address of the database";
        return (Kind::Store, "the database can't be written", hint);
    }
    if is(&[
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INVALID_CATALOG_NAME,
    ]) {
        let hint = "check the user, the password and the name of the database in its address";
        return (Kind::Store, "the database refuses the connection", hint);
    }
    if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
        let hint = "the user of the database must own the schema `tiro`, or may create it";
        return (Kind::Store, "the database refuses the statement", hint);
    }
    FAILED
}

/// Returns whether the server ended the connection because it is stopped, or is being started.
fn is_shutdown(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
}

/// Returns whether the connection failed, as opposed to a statement.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
}
