//! Connecting to a file that may not be writable.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::store_file;
use crate::connection::connect_to;
use crate::error::Result;
use crate::foreign::open::uri;

/// Opens a connection with the settings that every connection has. The connection is read-only if the file can't be
/// written. Closing it leaves the log unchanged, unless [`moves_log_at_close`](crate::connection::moves_log_at_close)
/// was called.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let opened = connect_to(path, flags);
    match &opened {
        Err(error) if store_file::is_fixed(path, error) => {
            Ok(connect_to(Path::new(&uri(path)), store_file::FIXED)?)
        }
        _ => Ok(opened?),
    }
}
