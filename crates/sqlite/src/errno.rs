//! Asks SQLite whether the disk failed to read a file.
//!
//! SQLite reports a failed read as damage (`SQLITE_CORRUPT`). The real error is known only to its file handles, which
//! are reached through its C interface (<https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html>), so this file
//! contains `unsafe`.

use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::{Connection, ffi};

use tiro_base::error::is_of_disk;

/// Returns the error that SQLite should have reported for a failed read.
pub(crate) fn failure_of_disk() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_READ), None)
}

/// Returns whether the last error of the operating system was a failure of the disk. Errors of opening and reading the
/// file and the log of `connection` are considered.
#[expect(unsafe_code, reason = "SQLite hands out its files by pointers")]
pub(crate) fn is_failure_of_disk(connection: &Connection) -> bool {
    let (mut of_file, mut of_log): (c_int, c_int) = (0, 0);
    let of_opening;
    let mut log: *mut ffi::sqlite3_file = ptr::null_mut();
    let main = c"main".as_ptr();
    // SAFETY: the handle lives as long as `connection`, which no other thread uses meanwhile; SQLite writes one `int` or
    // one pointer through the pointers that it gets; the file of the log is open as long as the connection, and a file
    // without methods is not open.
    unsafe {
        let handle = connection.handle();
        let out = ptr::from_mut(&mut of_file).cast::<c_void>();
        ffi::sqlite3_file_control(handle, main, ffi::SQLITE_FCNTL_LAST_ERRNO, out);
        of_opening = ffi::sqlite3_system_errno(handle);
        let out = ptr::from_mut(&mut log).cast::<c_void>();
        ffi::sqlite3_file_control(handle, main, ffi::SQLITE_FCNTL_JOURNAL_POINTER, out);
        let methods = log.as_ref().and_then(|log| log.pMethods.as_ref());
        if let Some(control) = methods.and_then(|methods| methods.xFileControl) {
            let out = ptr::from_mut(&mut of_log).cast::<c_void>();
            control(log, ffi::SQLITE_FCNTL_LAST_ERRNO, out);
        }
    }
    [of_file, of_opening, of_log].into_iter().any(is_of_disk)
}
