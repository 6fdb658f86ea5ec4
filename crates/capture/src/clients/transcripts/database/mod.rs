//! Reads the sessions in the database of opencode, each as a transcript of its own.
//!
//! The transcript of the session `ses_1` in `opencode.db` has the path `opencode.db/ses_1.jsonl`. It isn't a file: its
//! lines are made from the rows of the session while it is read, and nothing is written to the disk. Its first line is
//! about the session, each further line is a message with its parts. A line has only values that no longer change: no
//! title, no summary of changes, no mark that an output was dropped from the conversation. And a message has a line only
//! when it is complete: an answer that ended, or a message that was followed by an answer. So the text only grows, like
//! that of a file.
//!
//! opencode may write at the same moment, so nothing is ever created, locked against writers or written. If the database
//! has a write-ahead log, it is read together with the log and its index, both as they are. Otherwise it is read as a
//! file that doesn't change, and read again if it did.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use serde_json::{Value, json};

use tiro_base::error::{Context, Error, Kind, Result, quoted};

/// The extension of the name of a transcript.
const EXTENSION: &str = ".jsonl";

/// The longest part of a message that is read, in bytes. Arbitrary: a larger part is a pasted file or a picture.
const LONGEST_PART: i64 = 16 * 1024 * 1024;

/// How long reading waits for a writer that has locked the whole database.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often a message is read again because the database changed meanwhile.
const TRIES: usize = 5;

/// A session in the database.
pub struct Session {
    /// The id that opencode gave to it.
    pub id: String,
    /// The size of its parts in bytes. The text of the transcript has about this length.
    pub bytes: u64,
    /// A number that changes whenever the session changes.
    pub modified: u64,
}

/// Returns the path of the transcript of the session with the id `id`.
pub fn path_of(database: &Path, id: &str) -> PathBuf {
    database.join(format!("{id}{EXTENSION}"))
}

/// Returns the database and the id of the session whose transcript is `path`. Returns `None` for all other paths.
pub fn split(path: &Path) -> Option<(&Path, &str)> {
    let id = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?;
    path.parent().filter(|database| database.is_file()).map(|database| (database, id))
}

/// Returns the sessions in the database at `path` that have messages.
///
/// # Errors
///
/// [`Kind::Io`] if the database can't be read.
pub fn sessions(path: &Path) -> Result<Vec<Session>> {
    let mut database = Database::open(path)?;
    database.read(|connection| {
        let mut statement = connection.prepare(
            "SELECT session.id, session.time_updated + messages.updated, coalesce(parts.bytes, 0) FROM session
             JOIN (SELECT session_id, sum(time_updated) AS updated FROM message GROUP BY session_id) AS messages
               ON messages.session_id = session.id
             LEFT JOIN (SELECT session_id, sum(octet_length(data)) AS bytes FROM part GROUP BY session_id) AS parts
               ON parts.session_id = session.id
             ORDER BY session.id",
        )?;
        let sessions = statement.query_map([], |row| {
            Ok(Session {
                id: row.get(0)?,
                modified: row.get::<_, i64>(1)?.unsigned_abs(),
                bytes: row.get::<_, i64>(2)?.unsigned_abs(),
            })
        })?;
        sessions.collect()
    })
}

/// A connection to the database that only reads.
struct Database {
    path: PathBuf,
    /// Never locked: readers of transcripts are passed between threads, which a bare connection can't be.
    connection: Mutex<Connection>,
    /// The state of the file when it was opened. `None` if it has a write-ahead log, which keeps readers and writers
    /// apart.
    still: Option<(u64, Option<SystemTime>)>,
}

impl Database {
    fn open(path: &Path) -> Result<Database> {
        let still = still(path);
        // Without this, SQLite would create the log and its index if they are missing.
        let how = if still.is_some() { "immutable=1" } else { "readonly_shm=1" };
        let address = format!("file:{}?mode=ro&{how}", escaped(path));
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(address, flags)
            .and_then(|connection| connection.busy_timeout(PATIENCE).map(|()| connection));
        let connection = opened.map_err(|error| failed(path, error))?;
        Ok(Database { path: path.to_owned(), connection: Mutex::new(connection), still })
    }

    /// Reads with `read`. If the file was changed meanwhile, reads again.
    fn read<T>(&mut self, mut read: impl FnMut(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            let found = read(self.connection.get_mut().unwrap_or_else(PoisonError::into_inner));
            if self.still.is_none() || self.still == still(&self.path) {
                return found.map_err(|error| failed(&self.path, error));
            }
            *self = Database::open(&self.path)?;
        }
        Err(Error::new(Kind::Io, format!("`{}` changes too often to be read", quoted(self.path.display()))))
    }
}

/// Returns the length of the file and the time of its last change, if it has no write-ahead log that matters.
fn still(path: &Path) -> Option<(u64, Option<SystemTime>)> {
    let mut log = OsString::from(path);
    log.push("-wal");
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let metadata = fs::metadata(path).ok();
    Some(metadata.map_or((0, None), |metadata| (metadata.len(), metadata.modified().ok())))
}

/// Returns `path` as a part of a URI.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    text.replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn failed(path: &Path, error: rusqlite::Error) -> Error {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has locked it; the next look reads on"
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => "it is damaged, or only partly copied",
        Some(ErrorCode::CannotOpen) => {
            "its write-ahead log has no index: start opencode once, which repairs it"
        }
        _ => "another version of opencode may have written it",
    };
    let failed: Result<()> =
        Err(error).context(Kind::Io, || format!("cannot read the sessions in `{}`", quoted(path.display())));
    failed.expect_err("it failed").hint(hint)
}

/// The text of a session's transcript.
pub struct Text {
    database: Database,
    /// The ids of the messages whose lines were not made yet, in order.
    left: VecDeque<String>,
    /// The current line, and how many of its bytes were read.
    line: Vec<u8>,
    from: usize,
    /// How many bytes were read in all.
    pub read: u64,
}

impl Text {
    /// Opens the transcript of the session `id` in the database at `path`.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`] if the database can't be read, [`Kind::NotFound`] if there is no such session.
    pub fn open(path: &Path, id: &str) -> Result<Text> {
        let mut database = Database::open(path)?;
        let found = database.read(|connection| {
            let columns = "id, parent_id, directory, time_created";
            let session =
                connection.query_row(&format!("SELECT {columns} FROM session WHERE id = ?1"), [id], |row| {
                    let (id, parent): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                    let (cwd, created): (String, i64) = (row.get(2)?, row.get(3)?);
                    Ok(json!({"type": "session", "id": id, "parent": parent, "cwd": cwd, "time": created}))
                });
            Ok((session.optional()?, complete(connection, id)?))
        });
        let (session, left) = found?;
        let Some(session) = session else {
            return Err(Error::not_found(format!(
                "no session with id `{}` in `{}`",
                quoted(id),
                quoted(path.display())
            )));
        };
        Ok(Text { database, left, line: line(&session), from: 0, read: 0 })
    }

    /// Returns the line of the next message. Returns `None` if there is none.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        while let Some(id) = self.left.pop_front() {
            let message = self.database.read(|connection| message(connection, &id))?;
            if let Some(message) = message {
                return Ok(Some(line(&message)));
            }
        }
        Ok(None)
    }
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.from == self.line.len() {
            let Some(line) = self.next().map_err(io::Error::other)? else { return Ok(0) };
            (self.line, self.from) = (line, 0);
        }
        let count = into.len().min(self.line.len() - self.from);
        into[..count].copy_from_slice(&self.line[self.from..self.from + count]);
        self.from += count;
        self.read += count as u64;
        Ok(count)
    }
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

/// Returns the ids of the messages that no longer change, in order. While an answer is written, the user may already
/// have sent the next message, so a message of the user is complete only when an answer followed it.
fn complete(connection: &Connection, session: &str) -> rusqlite::Result<VecDeque<String>> {
    let mut statement = connection.prepare(
        "SELECT id, json_valid(data) AND json_extract(data, '$.role') = 'assistant',
           json_valid(data) AND json_extract(data, '$.time.completed') IS NOT NULL
         FROM message WHERE session_id = ?1 ORDER BY time_created, id",
    )?;
    let rows = statement.query_map([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let messages: Vec<(String, Option<bool>, Option<bool>)> = rows.collect::<rusqlite::Result<_>>()?;
    let last = messages.iter().rposition(|(_, is_answer, _)| *is_answer == Some(true));
    let count = last.map_or(0, |last| last + usize::from(messages[last].2 == Some(true)));
    Ok(messages.into_iter().take(count).map(|(id, ..)| id).collect())
}

/// Returns a message with its parts, as far as they no longer change. Returns `None` if it was deleted.
fn message(connection: &Connection, id: &str) -> rusqlite::Result<Option<Value>> {
    let mut statement = connection.prepare_cached("SELECT data FROM message WHERE id = ?1")?;
    let Some(data) = statement.query_row([id], |row| row.get::<_, String>(0)).optional()? else {
        return Ok(None);
    };
    let data: Value = serde_json::from_str(&data).unwrap_or_default();
    let mut statement = connection.prepare_cached(
        "SELECT id, octet_length(data), CASE WHEN octet_length(data) <= ?2 THEN data END
         FROM part WHERE message_id = ?1 ORDER BY id",
    )?;
    let rows = statement.query_map((id, LONGEST_PART), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut parts = Vec::new();
    for row in rows {
        let (id, bytes, data): (String, i64, Option<String>) = row?;
        let data = data.and_then(|data| serde_json::from_str::<Value>(&data).ok());
        parts.push(match data {
            Some(data) => part(&id, &data),
            None => json!({"type": "unread", "bytes": bytes}),
        });
    }
    Ok(Some(json!({
        "type": "message",
        "id": id,
        "role": data["role"],
        "time": data["time"]["created"],
        "ended": data["time"]["completed"],
        "cwd": data["path"]["cwd"],
        "summary": data["summary"] == true,
        "parts": parts,
    })))
}

/// Returns the values of a part that no longer change and that a reader needs.
fn part(id: &str, data: &Value) -> Value {
    let kind = data["type"].as_str().unwrap_or_default();
    let state = &data["state"];
    match kind {
        "text" => {
            let is_added = data["synthetic"] == true || data["ignored"] == true;
            json!({"type": kind, "text": data["text"], "added": is_added})
        }
        // The same call has the same time in a copy of the session. Ids of local models are not unique.
        "tool" => json!({
            "type": kind,
            "id": format!("{}:{}", data["callID"].as_str().unwrap_or(id), state["time"]["start"]),
            "name": data["tool"],
            "input": state["input"],
            "status": state["status"],
            "output": state["output"],
            "error": state["error"],
        }),
        "patch" => {
            let files = data["files"].as_array().into_iter().flatten();
            let files: Vec<Value> = files.map(|path| json!({"path": path})).collect();
            json!({"type": kind, "files": files})
        }
        "file" => json!({"type": kind, "name": data["filename"], "mime": data["mime"]}),
        "subtask" => json!({"type": kind, "prompt": data["prompt"]}),
        _ => json!({"type": kind}),
    }
}

#[cfg(test)]
mod tests;
