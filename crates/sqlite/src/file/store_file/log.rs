//! The log of an open store. The log consists of the file `-wal` and its index, the file `-shm`. Other programs may
//! remove, replace or cut these files.
//!
//! SQLite opens the log by its name, and keeps it open. If the log is removed, the processes that have it open continue
//! to share it. But a process that opens the store later makes a new log, and the two groups of processes don't see
//! each other's writes. So an open store remembers the files of its log ([`Log`]). If other files have these names, the
//! first process that notices this moves the content of the log into the store's file ([`rescue`]). Until then, no
//! other process opens the store ([`is_lost`]). Afterwards, all processes open it again.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::turn::{self, OpeningTurn};
use super::{FileId, LOGS, LONGEST, beside, remove_logs};
use crate::connection::LOOK_AGAIN;
use crate::error::{Error, Result};
use tiro_base::error::Kind;
use tiro_base::private;

/// The size in bytes of the log's header, and of the header of each frame. See
/// <https://sqlite.org/fileformat2.html#walformat>.
const HEADERS: (u64, u64) = (32, 24);

/// The time to wait for the right to move the log into the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The files of the log of an open store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    wal: FileId,
    index: FileId,
}

impl Log {
    /// Returns the log beside the store at `path`; `None` if a part of the log is missing.
    pub(super) fn beside(path: &Path) -> Option<Log> {
        let id = |suffix: &str| beside(path, suffix).metadata().ok().map(|found| FileId::of(&found));
        Some(Log { wal: id(LOGS[0])?, index: id(LOGS[1])? })
    }

    fn numbers(self) -> [u64; 2] {
        [self.wal.number, self.index.number]
    }
}

/// The number of pages of the log, and how many of them have been moved into the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    pages: u64,
    moved: u64,
}

/// The treatment of the pages of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Checkpoint {
    /// The pages are only counted.
    Count,
    /// The pages that no reader needs in the log are moved into the file.
    Passive,
    /// All pages are moved into the file, and readers are waited for.
    Full,
}

impl Checkpoint {
    /// Runs the checkpoint through `connection`, which must not be in a transaction.
    ///
    /// Errors with [`Kind::Busy`] if another process is moving pages.
    pub(crate) fn run(self, connection: &Connection) -> Result<Filled> {
        let sql = match self {
            Checkpoint::Count => "PRAGMA wal_checkpoint(NOOP)",
            Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Checkpoint::Full => "PRAGMA wal_checkpoint(FULL)",
        };
        let began = Instant::now();
        let mut statement = connection.prepare_cached(sql)?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        };
        loop {
            match statement.query_row([], row)? {
                // Counting is blocked only for a moment, so it is tried again.
                (true, ..0, _) if matches!(self, Checkpoint::Count) && began.elapsed() < PATIENCE => {
                    std::thread::sleep(LOOK_AGAIN);
                }
                (true, ..0, _) => {
                    return Err(Error::new(Kind::Busy, "another process moves the log into the store"));
                }
                // SQLite returns -1 for a file without a log.
                (_, pages, moved) => {
                    return Ok(Filled { pages: pages.max(0) as u64, moved: moved.max(0) as u64 });
                }
            }
        }
    }
}

impl Filled {
    /// Returns whether the pages that the log had in the state `wanted` are now in the file. If the log has fewer pages
    /// now, SQLite has begun a new log, and it does so only after all pages are in the file.
    pub(crate) fn has_moved(self, wanted: Filled) -> bool {
        self.moved >= wanted.pages || self.pages < wanted.pages
    }

    /// Returns whether all pages are in the file.
    pub(crate) fn is_moved(self) -> bool {
        self.moved >= self.pages
    }
}

/// Returns whether a program cut the log beside the store at `path`, so that pages are missing that are not in the file
/// yet. If a process has written after the cut, there is a hole where the missing pages were.
pub(super) fn is_cut(path: &Path, filled: Filled, page_bytes: u64) -> bool {
    if filled.is_moved() {
        return false;
    }
    // The log itself has no locks, so closing it releases none.
    let Ok(mut wal) = File::open(beside(path, LOGS[0])) else { return false };
    let mut is_written = |at: u64| {
        let mut number = [0; 4];
        let read = wal.seek(SeekFrom::Start(at)).and_then(|_| wal.read_exact(&mut number));
        read.is_ok() && number != [0; 4]
    };
    // The header begins with a constant, and each frame with the number of its page, which is never 0.
    let frame = |number: u64| HEADERS.0 + number * (HEADERS.1 + page_bytes);
    let begins = std::iter::once(0).chain((filled.moved..filled.pages).map(frame));
    !begins.into_iter().all(&mut is_written)
        || !wal.metadata().is_ok_and(|found| found.len() >= frame(filled.pages))
}

/// Returns whether other processes have the store at `path` open with a log that was removed, and none of them has
/// moved this log into the file yet. Only a process that holds the [`OpeningTurn`] may call this.
pub(crate) fn is_lost(path: &Path, turn: &OpeningTurn) -> bool {
    if !turn.is_held() || path.symlink_metadata().is_err() {
        return false;
    }
    let Some(mut open) = turn::open_beside(path, ".open") else { return false };
    match open.try_lock() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return false,
    }
    let noted = Noted::read(&mut open);
    let Ok(found) = path.metadata() else { return false };
    noted.log.is_some()
        && noted != Noted::of(FileId::of(&found), Log::beside(path))
        && noted.file == Some(FileId::of(&found).number)
}

/// Moves the content of the `log` of the store at `path` into the store's file, through `connection`, which has this
/// log open. If the log was cut, keeps the rest of it instead. Does nothing if another process has already moved or
/// kept the content. Returns whether the store can be opened again.
///
/// Errors with [`Kind::Busy`] if other processes open or read the store during the whole waiting time.
pub(super) fn rescue(path: &Path, log: Log, is_cut: bool, connection: &Connection) -> Result<bool> {
    let turn = OpeningTurn::take_within(path, PATIENCE)?;
    let Some(mut open) = turn::open_beside(path, ".open").filter(|_| turn.is_held()) else {
        return Ok(false);
    };
    let noted = Noted::read(&mut open);
    if noted.log != Some(log.numbers()) {
        return Ok(true);
    }
    if is_cut {
        keep_rest(path);
    } else {
        if !Checkpoint::Full.run(connection)?.is_moved() {
            return Ok(false);
        }
        // The files that have the names of the log now belong to another file.
        remove_logs(path);
    }
    tracing::warn!(is_cut, "the log of the store was removed, replaced or cut: what is left of it is kept");
    Ok(Noted { log: None, ..noted }.write(&mut open).is_some())
}

/// Copies the rest of a log that was cut into a new log. SQLite then uses all complete transactions of the new log. The
/// old index is not kept, because it would lead SQLite beyond the end of the log.
fn keep_rest(path: &Path) {
    let rest = fs::read(beside(path, LOGS[0])).unwrap_or_default();
    remove_logs(path);
    let wal = beside(path, LOGS[0]);
    let kept = private::create(&wal).ok().and_then(|()| {
        let mut file = File::options().write(true).open(&wal).ok()?;
        file.write_all(&rest).and_then(|()| file.sync_all()).ok()
    });
    if kept.is_none() {
        tracing::warn!("what is left of the store's log could not be kept");
    }
}

/// The content of `<name>.open`: the number of the file that processes have open, and the numbers of the files of its
/// log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) file: Option<u64>,
    /// `None` if no process has the store open yet, or if the content of the log was moved into the file.
    log: Option<[u64; 2]>,
}

impl Noted {
    /// Returns the content of the `open` file. Returns an empty note if it can't be read.
    pub(super) fn read(open: &mut File) -> Noted {
        let mut text = String::new();
        let read = open
            .seek(SeekFrom::Start(0))
            .and_then(|_| Read::by_ref(open).take(LONGEST).read_to_string(&mut text));
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        match (read, numbers.as_slice()) {
            (Ok(_), &[file]) => Noted { file: Some(file), log: None },
            (Ok(_), &[file, wal, index]) => Noted { file: Some(file), log: Some([wal, index]) },
            _ => Noted::default(),
        }
    }

    /// Writes this note into the `open` file. Returns `None` if this fails.
    pub(super) fn write(self, open: &mut File) -> Option<()> {
        let numbers = self.file.into_iter().chain(self.log.into_iter().flatten());
        let text = numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        // The file is overwritten and then cut, because an emptied file can't grow again if the disk is full.
        let written = open.seek(SeekFrom::Start(0)).and_then(|_| open.write_all(text.as_bytes()));
        written.and_then(|()| open.set_len(text.len() as u64)).ok()
    }

    /// Returns the note of a process that has `file` open with `log`.
    pub(super) fn of(file: FileId, log: Option<Log>) -> Noted {
        // The device number of the same file can differ between containers, so only the inode is compared.
        Noted { file: Some(file.number), log: log.map(Log::numbers) }
    }
}
