//! Runs work in transactions: a read in one snapshot, a write in one immediate transaction that is durable when it
//! returns.

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

/// The maximum number of bytes that the WAL may have after a write; a longer WAL is emptied. With small writes,
/// the WAL stays a little shorter than that.
const LONGEST_LOG: u64 = 4_350_000;

impl SqliteStore {
    /// Runs `work` on a reading connection, on a blocking thread, in one snapshot of the file. `work` sees what the reader
    /// of the scope may see ([`parts::show`]).
    ///
    /// Errors with [`Kind::Busy`] if `work` takes longer than [`OLDEST`](super::file::readers::OLDEST).
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Inner, &Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.read_parts(scope, work, |whole, _| whole).await
    }

    /// Does as [`SqliteStore::read`] for `work` of several parts, some of which may fail. Afterwards, `told` makes the
    /// answer of the parts; it also gets a function that returns what is behind the error of a part.
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

    /// Like [`SqliteStore::read`], but `work` reads the tables as they are, also what others keep private: it is upkeep,
    /// or says itself which rows it means.
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
        let (store, scope) = (self.clone(), scope.clone());
        let turn = self.inner.readers.turn().await;
        blocking(move || {
            let inner = &store.inner;
            inner.store_file.check()?;
            let mut reader = inner.readers.lend(turn)?;
            // Again, since the file may have been replaced before the connection was opened.
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
        let (store, scope, began) = (self.clone(), scope.clone(), Instant::now());
        blocking(move || {
            let mut writer = Waiting::since(began, lock(&store.inner.writer))?;
            store.inner.write(&mut writer, true, |changes| work(changes, &scope))
        })
        .await
    }

    /// Like [`SqliteStore::write`], but doesn't wait for the disk: after a power failure the changes may be gone,
    /// though not after the end of a process. Other processes see them when this method returns.
    pub(crate) async fn write_unsynced<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.admit(scope)?;
        let (store, scope, began) = (self.clone(), scope.clone(), Instant::now());
        blocking(move || {
            let mut writer = Waiting::since(began, lock(&store.inner.writer))?;
            let mut writer = Unsynced::of(&mut writer)?;
            store.inner.write(&mut writer, false, |changes| work(changes, &scope))
        })
        .await
    }

    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`] if other processes, or other calls of this process, write during all that
    /// time.
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
    /// Runs `work` in one immediate transaction of `writer`, and `moves` its pages into the file too. If the log was
    /// removed meanwhile, keeps what is in it.
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

    /// Keeps what is in the log, if it was removed, replaced or cut. Returns false if that is not possible yet.
    pub(crate) fn keep_log(&self, writer: &Connection) -> bool {
        // This finds out whether the log was cut.
        let whole = Checkpoint::Count.run(writer).and_then(|filled| self.store_file.check_length(filled));
        (whole.is_ok() && self.store_file.is_current()) || self.store_file.rescue(writer)
    }

    /// Returns `error`, unless SQLite reports damage or a failure of the disk in it: then finds out, through
    /// `connection`, whether the log was removed, replaced or cut, which looks like both, or the file is damaged.
    fn explained(&self, connection: &Connection, error: Error) -> Error {
        if !damage::may_be_cut(&error) {
            return error;
        }
        let filled = Checkpoint::Count.run(connection).ok();
        let lost = filled.map_or(Ok(()), |filled| self.store_file.check_length(filled));
        lost.and_then(|()| self.store_file.check_current()).err().unwrap_or_else(|| {
            let judged = self.damage.judge(&self.path, error);
            // The log may have been replaced just before the check, which then read what doesn't belong together.
            self.store_file.check_current().err().unwrap_or(judged)
        })
    }

    /// Once the pages of the transaction are in the file too, a log that is removed or cut takes nothing with it.
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
            // What would be moved from a log that was cut are zeros.
            self.store_file.check_length(filled)?;
            filled = self.move_pages(writer, filled);
        }
        self.store_file.acknowledge(filled)?;
        self.shorten_log(writer, LONGEST_LOG);
        Ok(answer)
    }

    /// Moves the pages that are in the log when it is `wanted` into the file. Waits a moment for readers that need some
    /// of them where they are, and for other processes that move them. Returns how the log is filled then; others may
    /// have added pages.
    ///
    /// The changes are in the log, also if they can't be moved, for example because the disk is full.
    fn move_pages(&self, writer: &Connection, wanted: Filled) -> Filled {
        /// Longer than most reads take.
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

    /// Errors with [`Kind::Store`] if a newer Tiro upgraded the file so that this one may not write to it, or
    /// if another store overwrote the file.
    ///
    /// Each write checks this in its transaction, since the file may change while a server runs for weeks.
    fn may_write(&self, transaction: &Connection) -> Result<()> {
        migrate::may_write(transaction, self.flavour)?;
        self.store_file.check_content(transaction)
    }

    /// Empties the WAL if it is longer than `most` bytes; otherwise the WAL would keep the size that the
    /// longest write gave it. Does nothing while others read.
    pub(crate) fn shorten_log(&self, writer: &Connection, most: u64) {
        if !store_file::beside(&self.path, "-wal").metadata().is_ok_and(|log| log.len() > most) {
            return;
        }
        // What would be moved from a log that was cut are zeros.
        if Checkpoint::Count.run(writer).and_then(|filled| self.store_file.check_length(filled)).is_err() {
            return;
        }
        // If this fails, the next write tries again.
        drop(writer.busy_timeout(Duration::ZERO));
        drop(writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        drop(writer.busy_timeout(BUSY_TIMEOUT));
    }
}
