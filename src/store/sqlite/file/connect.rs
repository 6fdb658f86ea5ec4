//! Connecting to a file that may not be writable.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::place;
use crate::error::Result;
use crate::store::sqlite::connection::connect_to;
use crate::store::sqlite::foreign::open::uri;

/// Opens a connection with the settings of every connection: for reading alone where the file can't be written. It doesn't touch
/// the log when it closes, until [`moves_log_at_close`](crate::store::sqlite::connection::moves_log_at_close) allows it.
pub(in crate::store::sqlite) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let opened = connect_to(path, flags);
    match &opened {
        Err(error) if place::is_fixed(path, error) => Ok(connect_to(Path::new(&uri(path)), place::FIXED)?),
        _ => Ok(opened?),
    }
}
