//! The pool of reading connections.
//!
//! A read waits for a connection without holding a thread. So thousands of reads at once take no more file descriptors
//! and memory than a few reads. A read uses the connection for one snapshot. The age of a snapshot is limited, because
//! SQLite can't reuse the WAL while a snapshot is open, and so the WAL grows. Connections that were idle for a while
//! are closed.
//!
//! If a signal has stopped a process, its snapshot stays until the process continues or ends. SQLite has no way to end
//! the snapshot of another process.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::{keeps_log_at_close, lock};
use crate::error::{Error, Result};
use crate::file::connect::connect;
use crate::search::lexical::rank;

/// The maximum number of snapshots that are open at the same time. Arbitrary: usually more than the machine has
/// processors. Each snapshot takes two file descriptors.
pub(crate) const AT_ONCE: usize = 8;

/// The number of idle connections that stay open. An ordinary search uses this many at once.
const KEPT: usize = 2;

/// The time that an idle connection stays open if there are more than [`KEPT`].
const IDLE: Duration = Duration::from_secs(10);

/// The maximum age of a snapshot. An older snapshot is ended, together with the read that uses it. Arbitrary:
/// many times the longest read on the slowest disk.
pub(crate) const OLDEST: Duration = Duration::from_secs(60);

/// The page cache of each connection, in KiB. Arbitrary: enough for the upper levels of every index of 100,000
/// memories. The operating system caches the rest. During 30,000 calls, the memory of a server grew by 42% with a cache
/// of 6 MiB, and by 24% with 2 MiB.
const CACHE_KIB: i64 = 2 * 1024;

/// The number of steps of SQLite's virtual machine between two checks of the clock. They take about a millisecond.
const STEPS: i32 = 20_000;

/// The reading connections of one file.
pub(crate) struct Readers {
    path: PathBuf,
    oldest: Duration,
    turns: Arc<Semaphore>,
    /// The idle connections; the one that was used last is at the end.
    idle: Mutex<Vec<Idle>>,
    is_closed: AtomicBool,
    keeps_log: AtomicBool,
    began: Instant,
    /// How many times a connection was lent, each time for one snapshot.
    lent: AtomicU64,
}

/// A permit for one of the connections.
pub(crate) struct ReaderTurn {
    _permit: OwnedSemaphorePermit,
}

struct Idle {
    connection: Connection,
    deadline: Arc<AtomicU64>,
    since: Instant,
}

/// A lent connection. The connection returns to the pool when this value is dropped.
pub(crate) struct LentConnection<'a> {
    readers: &'a Readers,
    /// `None` only while the value is being dropped.
    lent: Option<Idle>,
    _turn: ReaderTurn,
}

impl Readers {
    /// Returns an empty pool for the file at `path`. A snapshot is ended when it reaches the age `oldest`.
    pub fn new(path: PathBuf, oldest: Duration) -> Readers {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let (idle, is_closed, keeps_log) = (Mutex::default(), AtomicBool::new(false), AtomicBool::new(false));
        let lent = AtomicU64::new(0);
        Readers { path, oldest, turns, idle, is_closed, keeps_log, began: Instant::now(), lent }
    }

    /// Waits until a connection is free.
    pub async fn turn(&self) -> ReaderTurn {
        let permit = Arc::clone(&self.turns).acquire_owned().await;
        ReaderTurn { _permit: permit.expect("nothing closes the semaphore") }
    }

    /// Returns an idle connection, or a new connection if none is idle. Statements on the connection fail as soon as
    /// its snapshot is too old.
    pub fn lend(&self, turn: ReaderTurn) -> Result<LentConnection<'_>> {
        let idle = lock(&self.idle).pop();
        let lent = idle.map_or_else(|| self.open(), Ok)?;
        self.lent.fetch_add(1, Ordering::Relaxed);
        lent.deadline.store(self.millis(self.oldest), Ordering::Relaxed);
        Ok(LentConnection { readers: self, lent: Some(lent), _turn: turn })
    }

    /// Returns how many snapshots were read so far.
    pub fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// Closes the connections that are idle now.
    pub fn clear(&self) {
        lock(&self.idle).clear();
    }

    /// Closes the idle connections now, and each lent connection when it is returned. If `keeps_log` is true, closing
    /// them leaves the log and the file unchanged.
    pub fn close(&self, keeps_log: bool) {
        if keeps_log {
            self.keeps_log.store(true, Ordering::Release);
            lock(&self.idle).iter().for_each(|idle| keeps_log_at_close(&idle.connection));
        }
        self.is_closed.store(true, Ordering::Release);
        self.clear();
    }

    /// Returns whether a connection is lent or about to be lent.
    pub fn are_lent(&self) -> bool {
        self.turns.available_permits() < AT_ONCE
    }

    /// Closes connections that have been idle for a long time. A few connections stay open.
    pub fn rest(&self) {
        let mut idle = lock(&self.idle);
        // The connections that were used longest ago are at the beginning.
        let spare = idle.len().saturating_sub(KEPT);
        let rested = idle.iter().take(spare).take_while(|idle| idle.since.elapsed() >= IDLE).count();
        let closed: Vec<Idle> = idle.drain(..rested).collect();
        // The lock is released first, so that other reads don't wait while the connections are closed.
        drop(idle);
        drop(closed);
    }

    fn open(&self) -> Result<Idle> {
        let mut connection = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "query_only", true)?;
        rank::add_to(&connection)?;
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let (began, ends) = (self.began, Arc::clone(&deadline));
        let is_over = move || began.elapsed().as_millis() as u64 > ends.load(Ordering::Relaxed);
        connection.progress_handler(STEPS, Some(is_over)).map_err(Error::from)?;
        Ok(Idle { connection, deadline, since: Instant::now() })
    }

    /// Adds `later` to the current time. Returns the sum in milliseconds since the pool was made.
    fn millis(&self, later: Duration) -> u64 {
        (self.began.elapsed() + later).as_millis() as u64
    }

    /// Returns how many connections are idle.
    #[cfg(test)]
    pub fn idle(&self) -> usize {
        lock(&self.idle).len()
    }
}

impl Deref for LentConnection<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.lent.as_ref().expect("lent until it is dropped").connection
    }
}

impl DerefMut for LentConnection<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.lent.as_mut().expect("lent until it is dropped").connection
    }
}

impl Drop for LentConnection<'_> {
    fn drop(&mut self) {
        let Some(lent) = self.lent.take() else { return };
        if self.readers.keeps_log.load(Ordering::Acquire) {
            keeps_log_at_close(&lent.connection);
        }
        // A connection that is still in a transaction would keep its snapshot, so it is closed.
        if lent.connection.is_autocommit() {
            let mut idle = lock(&self.readers.idle);
            if !self.readers.is_closed.load(Ordering::Acquire) {
                idle.push(Idle { since: Instant::now(), ..lent });
            }
        }
        self.readers.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavour, SqliteStore};
    use tiro_base::error::Kind;
    use tiro_base::scope::ProjectId;

    fn store(folder: &tempfile::TempDir) -> PathBuf {
        let path = folder.path().join("tiro.db");
        SqliteStore::open(&path, Flavour::Project, ProjectId::from_random([7; 8])).unwrap();
        path
    }

    #[tokio::test]
    async fn a_hundred_reads_at_once_open_a_few_connections_and_idle_ones_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let readers = Arc::new(Readers::new(store(&folder), OLDEST));
        let reads = (0..100).map(|_| {
            let readers = Arc::clone(&readers);
            tokio::spawn(async move {
                let turn = readers.turn().await;
                let read = tokio::task::spawn_blocking(move || {
                    let reader = readers.lend(turn).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                    reader.query_row("SELECT count(*) FROM memories", [], |row| row.get::<_, i64>(0)).unwrap()
                });
                read.await.unwrap()
            })
        });
        for read in reads.collect::<Vec<_>>() {
            assert_eq!(read.await.unwrap(), 0);
        }
        let open = readers.idle();
        assert!((1..=AT_ONCE).contains(&open), "{open}");
        for idle in lock(&readers.idle).iter_mut() {
            idle.since -= IDLE;
        }
        readers.rest();
        assert!(readers.idle() <= KEPT, "{}", readers.idle());
    }

    /// Guards against a fault in which the log of a file was written into another file that had just replaced
    /// it.
    #[tokio::test]
    async fn a_connection_to_a_file_that_was_just_replaced_leaves_the_new_one_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = store(&folder);
        let older = folder.path().join("older.db");
        std::fs::copy(&path, &older).unwrap();
        let bytes = std::fs::read(&older).unwrap();
        let writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        writer.execute("INSERT INTO meta (key, value) VALUES ('x', zeroblob(90000))", []).unwrap();
        std::fs::rename(&older, &path).unwrap();
        let readers = Readers::new(path.clone(), OLDEST);
        drop(readers.lend(readers.turn().await).unwrap());
        readers.close(false);
        assert!(std::fs::read(&path).unwrap() == bytes, "the new file was written to");
    }

    /// Guards against a fault in which a read that took an hour kept SQLite from reusing the WAL for that hour.
    #[tokio::test]
    async fn a_snapshot_that_is_too_old_is_given_up_and_the_log_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let path = store(&folder);
        let readers = Readers::new(path.clone(), Duration::from_millis(300));
        let writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let began = Instant::now();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT count(*) FROM n, sqlite_schema";
        let mut reader = readers.lend(readers.turn().await).unwrap();
        let snapshot = reader.transaction().unwrap();
        let ended = snapshot.query_row(endless, [], |row| row.get::<_, i64>(0)).map_err(Error::from);
        assert_eq!(ended.unwrap_err().kind(), Kind::Busy);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        writer.execute("INSERT INTO meta (key, value) VALUES ('x', zeroblob(9000000))", []).unwrap();
        let empty = |writer: &Connection| {
            writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        writer.busy_timeout(Duration::ZERO).unwrap();
        assert_eq!(empty(&writer), 1, "the snapshot keeps the log");
        drop(snapshot);
        drop(reader);
        assert_eq!(empty(&writer), 0);
        // The same connection serves the next read, whose time limit begins anew.
        let reader = readers.lend(readers.turn().await).unwrap();
        let length = reader.query_row("SELECT length(value) FROM meta WHERE key = 'x'", [], |row| row.get(0));
        assert_eq!(length, Ok(9_000_000));
    }
}
