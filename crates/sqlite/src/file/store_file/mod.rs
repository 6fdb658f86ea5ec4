//! Checks whether an open store is still the file at its path, and decides which process may open or change
//! that file.
//!
//! A file that was removed, moved or replaced stays open in the processes that use it, and SQLite continues to write to
//! it. Processes that open the path later don't find these writes. So an open store remembers the file that it opened,
//! and the log of this file ([`StoreFile`]). The store checks the path before a write begins, before a commit, and
//! before a call returns. A check takes three system calls.
//!
//! SQLite finds the log and its index (`-wal`, `-shm`) only by their names. After a file is replaced, SQLite would use
//! the log of the old file with the new file, and mix their contents. So a log that is known to belong to another file
//! is removed before the store is opened. The file `<name>.open` says which file other processes have open.

mod log;
mod turn;
pub(crate) mod whole;

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

pub(crate) use log::{Checkpoint, Filled, is_lost};
pub(crate) use turn::OpeningTurn;

use crate::connection::{is_writable, lock};
use crate::error::{Error, Result};
use log::{Log, Noted};
use tiro_base::error::{Kind, quoted};
use tiro_base::private;

/// The suffixes of the files that SQLite keeps beside a database in use.
const LOGS: [&str; 2] = ["-wal", "-shm"];

/// The maximum number of bytes of `<name>.open` that are read.
const LONGEST: u64 = 64;

/// The flags for opening a file that doesn't change while it is read.
pub(crate) const FIXED: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_URI);

/// Identifies a file among all files that exist at the same time. On systems that don't number files, all files have
/// the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    #[cfg(unix)]
    fn of(found: &Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt;
        FileId { device: found.dev(), number: found.ino() }
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> FileId {
        FileId { device: 0, number: 0 }
    }
}

/// The path at which a store was opened, and the identity of the opened file.
pub(crate) struct StoreFile {
    path: PathBuf,
    /// `None` for a store in memory, which can't be replaced.
    file: Option<FileId>,
    /// `None` for a store without a log.
    log: Option<Log>,
    /// The size of the store's pages in bytes.
    page_bytes: u64,
    /// The id that the store got when it was made; `None` if the store had no id yet when it was opened.
    id: Option<String>,
    is_read_only: bool,
    is_left: AtomicBool,
    is_released: AtomicBool,
    /// Whether pages of the log are missing because the log was cut.
    is_cut: AtomicBool,
    /// The file `<name>.open`. This file is locked as long as the store is open, so that other processes see that the
    /// store is in use.
    open: Mutex<Option<File>>,
}

/// A store that is about to be opened. The store's file exists, and no log of another file lies beside it.
pub(crate) struct Entered {
    path: PathBuf,
    file: FileId,
    open: Option<File>,
}

impl Entered {
    /// Prepares the opening of the store at `path`. If the file is missing, removes the log of an earlier file, and
    /// makes the file with `fill`. Other processes see the file only when it is complete, so an empty file at this path
    /// has lost its content.
    ///
    /// Errors in the same cases as [`private::create`] and `fill`.
    pub(crate) fn enter(
        path: &Path,
        turn: &OpeningTurn,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Entered> {
        let is_missing = matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
        if is_missing {
            if turn.is_held() {
                whole::remove_unfinished_of(path);
            }
            remove_logs(path);
            whole::begin(path, fill)?;
        }
        private::create(path)?;
        let file = look(path)?;
        let open = if turn.is_held() { mark(path, file) } else { None };
        Ok(Entered { path: path.to_owned(), file, open })
    }

    /// Returns the store file of the file behind `connection`, and records the log of this file in `<name>.open`. The
    /// connection must have been opened after [`Entered::enter`] returned. If the file was replaced before the
    /// connection was opened, the returned store file is not current.
    pub(crate) fn opened(self, connection: &Connection) -> Result<StoreFile> {
        let Entered { path, file, mut open } = self;
        let is_read_only = connection.is_readonly("main")?;
        if look(&path).is_ok_and(|now| now == file) {
            crate::connection::moves_log_at_close(connection)?;
        }
        // SQLite makes the log at its first read.
        let id = id(connection)?;
        let log = Log::beside(&path).filter(|_| !is_read_only);
        if let Some(open) = &mut open {
            Noted::of(file, log).write(open);
        }
        let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        Ok(StoreFile {
            path,
            file: Some(file),
            log,
            page_bytes: page_bytes.max(0) as u64,
            id,
            is_read_only,
            is_left: AtomicBool::new(false),
            is_released: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            open: Mutex::new(open),
        })
    }
}

impl StoreFile {
    /// Returns the store file of a store in memory.
    pub(crate) fn blank(path: PathBuf) -> StoreFile {
        StoreFile {
            path,
            file: None,
            log: None,
            page_bytes: 0,
            id: None,
            is_read_only: false,
            is_left: AtomicBool::new(false),
            is_released: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            open: Mutex::new(None),
        }
    }

    /// Returns whether the open file and its log are still the files at their paths. Also returns false if the file is
    /// open read-only but can now be opened for writing.
    pub(crate) fn is_current(&self) -> bool {
        let is_whole = self.has_file() && !self.has_lost_log();
        !self.is_left.load(Ordering::Relaxed) && is_whole && !(self.is_read_only && can_be_used(&self.path))
    }

    /// Returns whether the open file is still the file at its path.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_none_or(|opened| look(&self.path).is_ok_and(|file| file == opened))
    }

    fn has_lost_log(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed) || (self.log.is_some() && Log::beside(&self.path) != self.log)
    }

    /// Errors with [`Kind::Store`] if the open file or its log is no longer the file at its path.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let message = format!("the {} was removed or replaced while it was open", self.lost());
        Err(Error::new(Kind::Store, message)
            .hint("this write was not stored; repeat the call, which opens the store that is there now"))
    }

    /// Like [`StoreFile::check`], but for a read, or for a write that may or may not have been stored.
    pub(crate) fn check_current(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let message = format!("the {} was removed or replaced while it was open", self.lost());
        Err(Error::new(Kind::Store, message).hint("repeat the call, which opens the store that is there now"))
    }

    /// Errors in the same cases as [`StoreFile::check`], and also if the log was cut. `filled` is the state of the log.
    /// Called right after each commit.
    pub(crate) fn acknowledge(&self, filled: Filled) -> Result<()> {
        self.check_length(filled)?;
        if self.is_current() {
            return Ok(());
        }
        let message = format!("the {} was removed or replaced while it was written to", self.lost());
        Err(Error::new(Kind::Store, message)
            .hint("repeat the call, which stores everything in the store that is there now"))
    }

    /// Errors with [`Kind::Store`] if the log was cut; the store is then no longer current. `filled` is the state of
    /// the log.
    pub(crate) fn check_length(&self, filled: Filled) -> Result<()> {
        // A log that was removed or replaced doesn't count as cut, because its pages can still be moved into the file.
        let is_there = self.log.is_some() && Log::beside(&self.path) == self.log;
        if !is_there || !log::is_cut(&self.path, filled, self.page_bytes) {
            return Ok(());
        }
        self.is_cut.store(true, Ordering::Relaxed);
        let message = format!("the log of the store `{}` was cut while it was open", self.path());
        Err(Error::new(Kind::Store, message)
            .hint("this write was not stored; repeat the call, which opens the store with what is left"))
    }

    /// If only the log was removed, replaced or cut, saves the log's content through `connection`, which has the log
    /// open. Returns false if the content can't be saved yet; the next call then tries again.
    pub(crate) fn rescue(&self, connection: &Connection) -> bool {
        let Some(log) = self.log.filter(|_| self.has_file() && self.has_lost_log()) else { return true };
        let kept = log::rescue(&self.path, log, self.is_cut.load(Ordering::Relaxed), connection);
        if let Err(error) = &kept {
            tracing::warn!(%error, "what is in the removed log of the store is not kept yet");
        }
        kept.unwrap_or(false)
    }

    /// Tells other processes that this process no longer uses the store. All connections must be closed before.
    ///
    /// If another file has taken the path, the note about the old file stays. Because of this note, a process that
    /// opens the other file removes the log of the old file.
    pub(crate) fn release(&self) {
        if self.has_file() {
            lock(&self.open).take();
        }
        self.is_released.store(true, Ordering::Release);
    }

    /// Returns whether [`StoreFile::release`] was called.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    /// Errors with [`Kind::Store`] if the file was overwritten with the content of another store.
    pub(crate) fn check_content(&self, connection: &Connection) -> Result<()> {
        if self.id.is_none() || id(connection)? == self.id {
            return Ok(());
        }
        let message = format!("the store `{}` was overwritten while it was open", self.path());
        Err(Error::new(Kind::Store, message)
            .hint("restart the programs that use it; this write was not stored"))
    }

    /// Returns a text that identifies the open file. The text is the same for two values of the same file.
    pub(crate) fn identity(&self) -> String {
        format!("{:?}", (&self.path, self.file))
    }

    /// Records that the store was closed. The store file is then no longer current.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    fn lost(&self) -> String {
        let what = if self.has_file() && self.has_lost_log() { "log of the store" } else { "store" };
        format!("{what} `{}`", self.path())
    }

    fn path(&self) -> String {
        quoted(self.path.display()).to_string()
    }
}

/// Returns whether the database at `path` can only be read. This is so if it has no log, and SQLite can't make one
/// because the folder can't be written or the disk is full. `error` is the error of SQLite.
pub(crate) fn is_fixed(path: &Path, error: &rusqlite::Error) -> bool {
    let has_log = beside(path, LOGS[0]).metadata().is_ok_and(|log| log.len() > 0);
    let is_refused = matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly)) && !is_writable(path);
    let is_full = error
        .sqlite_error()
        .is_some_and(|error| [SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE].contains(&error.extended_code));
    (is_refused || is_full) && !has_log && path.exists()
}

/// Returns whether the store at `path` can be opened for writing.
fn can_be_used(path: &Path) -> bool {
    let opened = || crate::connection::connect_to(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    is_writable(path) && opened().is_ok_and(|connection| matches!(connection.is_readonly("main"), Ok(false)))
}

/// Returns the id that the store got when its schema was made.
fn id(connection: &Connection) -> Result<Option<String>> {
    let sql = "SELECT value FROM meta WHERE key = 'store'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
}

fn look(path: &Path) -> Result<FileId> {
    match path.metadata() {
        Ok(found) => Ok(FileId::of(&found)),
        Err(error) => {
            let message = format!("cannot find the store `{}`", quoted(path.display()));
            Err(Error::new(Kind::Store, message).source(error))
        }
    }
}

/// Records in `<name>.open` that `file` is open. Returns `<name>.open`, locked; the caller must hold the lock while
/// `file` is open. If other processes have an older file of this path open, the log at this path belongs to the older
/// file and is removed. Returns `None` if `<name>.open` can't be written.
fn mark(path: &Path, file: FileId) -> Option<File> {
    let mut open = turn::open_beside(path, ".open")?;
    let is_alone = open.try_lock().is_ok();
    let (noted, wanted) = (Noted::read(&mut open), Noted::of(file, None));
    if !is_alone && noted.file.is_some() && noted.file != wanted.file {
        remove_logs(path);
    }
    if is_alone || noted.file != wanted.file {
        wanted.write(&mut open)?;
    }
    open.lock_shared().ok()?;
    Some(open)
}

/// Returns the path of the file beside the store at `path` whose name ends in `suffix`.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes the log, and its index, of a file that no longer exists.
fn remove_logs(path: &Path) {
    for log in LOGS {
        match std::fs::remove_file(beside(path, log)) {
            Ok(()) => tracing::warn!(log, "removed the log of a store that was replaced"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => tracing::warn!(log, "the log of a store that was replaced can't be removed"),
        }
    }
}
