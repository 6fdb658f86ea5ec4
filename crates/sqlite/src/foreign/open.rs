//! Opens an untrusted database read-only. SQLite runs nothing that the file defines, such as triggers.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode::CannotOpen;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::Result;
use tiro_base::memory::LONGEST_TEXT;

/// The maximum time of one statement. Arbitrary: enough for the check for damage, which reads a whole table in one
/// statement.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of steps of SQLite's virtual machine between two checks of the clock.
const LOOK: i32 = 100_000;

/// Opens the file read-only. SQLite runs nothing that the file defines, such as triggers.
pub(super) fn connect(source: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |immutable: bool| -> rusqlite::Result<Connection> {
        let connection = match immutable {
            true => Connection::open_with_flags(uri(source), flags | OpenFlags::SQLITE_OPEN_URI)?,
            false => Connection::open_with_flags(source, flags)?,
        };
        for (setting, is_on) in [
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            connection.set_db_config(setting, is_on)?;
        }
        // This leaves room for the longest text and the other columns of its row.
        let longest = 2 * LONGEST_TEXT + (1 << 20);
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, longest as i32),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
            (Limit::SQLITE_LIMIT_COLUMN, 200),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        ] {
            connection.set_limit(limit, most)?;
        }
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // A file with a log may be in use, so it is first opened as a file that may change. A file without a log may be in
    // a folder in which SQLite can't make a log, so SQLite is told that the file doesn't change.
    let mut log = source.as_os_str().to_owned();
    log.push("-wal");
    match Path::new(&log).exists() {
        true => match open(false) {
            Err(error) if error.sqlite_error_code() == Some(CannotOpen) => open(true),
            opened => opened,
        },
        false => open(true),
    }
}

/// Returns the URI by which SQLite opens a file that doesn't change while it is read.
pub(crate) fn uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    #[cfg(windows)]
    uri.push('/');
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b':' => {
                uri.push(char::from(*byte))
            }
            #[cfg(windows)]
            b'\\' => uri.push('/'),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri + "?immutable=1"
}

/// Makes the connection end statements that take too long.
pub(super) fn watch(connection: &mut Connection) -> Result<()> {
    let (mut began, mut last) = (Instant::now(), Instant::now());
    connection.progress_handler(
        LOOK,
        Some(move || {
            // This function is called only while a statement runs. So a pause between two calls means that a new
            // statement has begun.
            if last.elapsed() > Duration::from_secs(1) {
                began = Instant::now();
            }
            last = Instant::now();
            began.elapsed() > PATIENCE
        }),
    )?;
    Ok(())
}

/// Returns whether `name` is a plain table without computed columns; `None` if nothing has that name.
pub(super) fn plain_table(connection: &Connection, name: &str) -> Result<Option<bool>> {
    let found: Option<(String, i64)> = connection
        .query_row("SELECT type, rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((kind, root)) = found else { return Ok(None) };
    if kind != "table" || root <= 0 {
        return Ok(Some(false));
    }
    let computed: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0)",
        [name],
        |row| row.get(0),
    )?;
    Ok(Some(!computed))
}
