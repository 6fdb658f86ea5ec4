//! Runs reads and writes in transactions. A read uses one snapshot. A write is one immediate transaction, and is
//! durable when the call returns.

use std::sync::TryLockError;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::connection::{BUSY_TIMEOUT, LOOK_AGAIN, Unsynced, Waiting, blocking, lock, moves_log_at_close};
use super::file::store_file::{Checkpoint, Filled};
use super::file::{damage, migrate, store_file};
use super::{Inner, SqliteStore};
use crate::error::{Error, Result};
use crate::read::parts;
use tiro_base::error::{self, Kind};
use tiro_base::scope::Scope;

/// The maximum number of bytes of the WAL after a write. A longer WAL is emptied. With small writes, the WAL stays a
/// little shorter than this.
const LONGEST_LOG: u64 = 4_350_000;

impl SqliteStore {
    /// Runs `work` on a reading connection, on a blocking thread, in one snapshot of the file. `work` sees only rows
    /// that the reader of the scope may see ([`parts::show`]).
    ///
    /// Errors with [`Kind::Busy`] if `work` takes longer than [`OLDEST`](super::file::readers::OLDEST).
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.read_parts(scope, work, |whole, _| whole).await
    }

    /// Like [`SqliteStore::read`], but for `work` that returns several parts, some of which may fail. Afterwards,
    /// `told` makes the result from the parts. `told` also gets a function that returns the real reason of a part's
    /// error.
    pub(crate) async fn read_parts<P, T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<P> + Send + 'static,
        told: impl FnOnce(P, &dyn Fn(Error) -> Error) -> T + Send + 'static,
    ) -> error::Result<T> {
        let seen = |inner: &Inner, connection: &Connection, scope: &Scope| {
            parts::show(connection, scope)?;
            work(inner, connection, scope)
        };
        self.read_tables(scope, seen, told).await
    }

    /// Like [`SqliteStore::read`], but `work` sees all rows of the tables, including private rows of others. This
    /// method is for upkeep, and for work that itself selects the rows that the reader may see.
    pub(crate) async fn read_all<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.read_tables(scope, work, |whole, _| whole).await
    }

    async fn read_tables<P, T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<P> + Send + 'static,
        told: impl FnOnce(P, &dyn Fn(Error) -> Error) -> T + Send + 'static,
    ) -> error::Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), parts::world(scope));
        let turn = self.inner.readers.turn().await;
        blocking(move || {
            let inner = &store.inner;
            inner.store_file.check()?;
            let mut reader = inner.readers.lend(turn)?;
            // This is checked again, because the file may have been replaced before the connection was opened.
            inner.store_file.check()?;
            moves_log_at_close(&reader)?;
            let snapshot = reader.transaction().map_err(Error::from);
            let read = snapshot.and_then(|snapshot| work(inner, &snapshot, &scope));
            let explained = |error| inner.explained(&reader, error);
            read.map(|parts| told(parts, &explained)).map_err(explained)
        })
        .await
    }

    /// Runs `work` in one immediate transaction on the writing connection, on a blocking thread.
    ///
    /// The changes of `work` are durable when this method returns. If `work` fails, none of its changes are
    /// kept.
    ///
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.admit(scope)?;
        let (store, scope, began) = (self.clone(), parts::world(scope), Instant::now());
        blocking(move || {
            let mut writer = Waiting::since(began, lock(&store.inner.writer))?;
            store.inner.write(&mut writer, true, |changes| work(changes, &scope))
        })
        .await
    }

    /// Like [`SqliteStore::write`], but doesn't wait for the disk. The changes may be lost after a power failure, but
    /// not after the end of a process. Other processes see the changes when this method returns.
    pub(crate) async fn write_unsynced<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.admit(scope)?;
        let (store, scope, began) = (self.clone(), parts::world(scope), Instant::now());
        blocking(move || {
            let mut writer = Waiting::since(began, lock(&store.inner.writer))?;
            let mut writer = Unsynced::of(&mut writer)?;
            store.inner.write(&mut writer, false, |changes| work(changes, &scope))
        })
        .await
    }

    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`] if other processes, or other calls of this process, write during this whole time.
    pub async fn await_turn(&self, scope: &Scope, patience: Duration) -> error::Result<()> {
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let began = Instant::now();
            let busy = || Error::new(Kind::Busy, "another call writes to the store").hint("try again later");
            let mut writer = loop {
                match store.inner.writer.try_lock() {
                    Ok(writer) => break writer,
                    Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Err(busy()),
                    Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
                }
            };
            store.inner.store_file.check()?;
            writer.busy_timeout(patience.saturating_sub(began.elapsed()))?;
            let turn = writer.transaction_with_behavior(TransactionBehavior::Immediate).map(drop);
            writer.busy_timeout(BUSY_TIMEOUT)?;
            Ok(turn?)
        })
        .await
    }
}

impl Inner {
    /// Runs `work` in one immediate transaction of `writer`. If `moves` is true, also moves the pages of the
    /// transaction into the file. If the log was removed meanwhile, saves its content.
    pub(crate) fn write<T>(
        &self,
        writer: &mut Connection,
        moves: bool,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let written = self.write_once(writer, moves, work).map_err(|error| self.explained(writer, error));
        if written.is_err() && !self.store_file.is_current() {
            self.store_file.rescue(writer);
        }
        written
    }

    /// Saves the content of the log if the log was removed, replaced or cut. Returns false if the content can't be
    /// saved yet.
    pub(crate) fn keep_log(&self, writer: &Connection) -> bool {
        // This finds out whether the log was cut.
        let whole = Checkpoint::Count.run(writer).and_then(|filled| self.store_file.check_length(filled));
        (whole.is_ok() && self.store_file.is_current()) || self.store_file.rescue(writer)
    }

    /// Finds the real reason of `error`, if SQLite reports damage or a failure of the disk. A log that was removed,
    /// replaced or cut causes the same errors, so the log is checked first, through `connection`; then the file is
    /// checked for damage. Returns other errors unchanged.
    fn explained(&self, connection: &Connection, error: Error) -> Error {
        if !damage::may_be_cut(&error) {
            return error;
        }
        let filled = Checkpoint::Count.run(connection).ok();
        let lost = filled.map_or(Ok(()), |filled| self.store_file.check_length(filled));
        lost.and_then(|()| self.store_file.check_current()).err().unwrap_or_else(|| {
            let judged = self.damage.judge(&self.path, error);
            // If the log was replaced just before the check, the check read pages that don't belong together.
            self.store_file.check_current().err().unwrap_or(judged)
        })
    }

    /// Runs the transaction once. As soon as the pages of the transaction are in the file too, nothing is lost if the
    /// log is removed or cut.
    fn write_once<T>(
        &self,
        writer: &mut Connection,
        moves: bool,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.store_file.check()?;
        self.damage.check(&self.path).or_else(|damaged| self.store_file.check().and(Err(damaged)))?;
        self.store_file.check_length(Checkpoint::Count.run(writer)?)?;
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.may_write(&transaction)?;
        let answer = work(&transaction)?;
        self.store_file.check()?;
        transaction.commit()?;
        let mut filled = Checkpoint::Count.run(writer)?;
        if moves {
            // If the log was cut, moving its pages would write zeros into the file.
            self.store_file.check_length(filled)?;
            filled = self.move_pages(writer, filled);
        }
        self.store_file.acknowledge(filled)?;
        self.shorten_log(writer, LONGEST_LOG);
        Ok(answer)
    }

    /// Moves the pages that the log has in the state `wanted` into the file. Waits a moment for readers that need some
    /// of these pages in the log, and for other processes that move pages. Returns the new state of the log, to which
    /// others may have added pages.
    ///
    /// Even if pages can't be moved, for example because the disk is full, the changes are in the log.
    fn move_pages(&self, writer: &Connection, wanted: Filled) -> Filled {
        /// The maximum time to wait. Most reads take less.
        const PATIENCE: Duration = Duration::from_millis(100);
        let (began, mut filled) = (Instant::now(), wanted);
        loop {
            let moved = Checkpoint::Passive.run(writer).or_else(|_| Checkpoint::Count.run(writer));
            filled = moved.unwrap_or(filled);
            if filled.has_moved(wanted) || began.elapsed() >= PATIENCE {
                return filled;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Errors with [`Kind::Store`] if a newer Tiro upgraded the file so that this program may not write to it, or if
    /// another store overwrote the file.
    ///
    /// Each write makes these checks in its transaction, because the file may change while a server runs for weeks.
    fn may_write(&self, transaction: &Connection) -> Result<()> {
        migrate::may_write(transaction, self.flavour)?;
        self.store_file.check_content(transaction)
    }

    /// Empties the WAL if it is longer than `most` bytes. Otherwise the WAL would keep the size that it had after the
    /// longest write. Does nothing while others read.
    pub(crate) fn shorten_log(&self, writer: &Connection, most: u64) {
        if !store_file::beside(&self.path, "-wal").metadata().is_ok_and(|log| log.len() > most) {
            return;
        }
        // If the log was cut, moving its pages would write zeros into the file.
        if Checkpoint::Count.run(writer).and_then(|filled| self.store_file.check_length(filled)).is_err() {
            return;
        }
        // If this fails, the next write tries again.
        drop(writer.busy_timeout(Duration::ZERO));
        drop(writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(writer.busy_timeout(BUSY_TIMEOUT));
    }
}
