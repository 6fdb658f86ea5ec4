//! Reads and records counts, progress and cached answers.

use async_trait::async_trait;

use crate::{CacheStats, Check, Expired, Growth, Measurement, Savings, Sizes, Stats};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

/// Reads counts, progress and cached answers.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// Returns the cursor that [`WriteRecords::set_import_cursor`] last stored for the owner and `source`; `None` if
    /// there is none.
    async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>>;

    /// Returns whether the owner has a cursor for a source whose name ends with `end`.
    async fn has_import_cursor(&self, scope: &Scope, end: &str) -> Result<bool>;

    /// Returns the owner's answer under `key`, unless it has expired at `now`.
    ///
    /// Setting the clock back doesn't make answers last longer: if an earlier use of the answer had a later time than
    /// `now`, that time is used instead. An answer may be missing right after a call to
    /// [`Bookkeeping::cache`](crate::Bookkeeping::cache), because that call may have skipped it.
    async fn cached(&self, scope: &Scope, key: [u8; 32], now: Millis) -> Result<Option<String>>;

    /// Returns the size of the owner's cache, and its hits and misses.
    async fn cache_stats(&self, scope: &Scope) -> Result<CacheStats>;

    /// Returns how many commits, messages, notes, sessions and stashed memories the scope's owner has.
    async fn sizes(&self, scope: &Scope) -> Result<Sizes>;

    /// Returns whether the store holds no living memory of the scope's owner.
    async fn is_empty(&self, scope: &Scope) -> Result<bool>;

    /// Returns all measured durations of the owner, ordered by name and bucket.
    async fn measurements(&self, scope: &Scope) -> Result<Vec<Measurement>>;

    /// Returns the owner's savings so far.
    async fn savings(&self, scope: &Scope) -> Result<Savings>;

    /// Returns counts and sizes for the scope's owner. `now` is the end of the week for which
    /// [`Stats::stored_lately`](crate::Stats::stored_lately) counts.
    async fn stats(&self, scope: &Scope, now: Millis) -> Result<Stats>;

    /// Returns how many memories of each kind the scope's owner has of each day, and how many sessions began on it.
    async fn growth(&self, scope: &Scope) -> Result<Growth>;

    /// Checks, for all owners, whether the file, the text index and the vectors agree, and whether the texts match
    /// their hashes. Reads everything, which takes seconds for 100,000 memories.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if the text index can't be checked because another
    /// connection writes to the store.
    async fn check(&self, scope: &Scope) -> Result<Check>;

    /// Returns how many answers have expired at `now`, and how many queue entries and replaced summaries are
    /// older than `before`.
    async fn expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired>;
}

/// Records counts, progress and cached answers.
#[async_trait]
pub trait WriteRecords: Send + Sync {
    /// Stores the cursor of the owner's import of `source` with the date `now`. If several callers store a cursor, the
    /// last one wins.
    async fn set_import_cursor(&self, scope: &Scope, source: &str, cursor: &str, now: Millis) -> Result<()>;

    /// Adds `measurements` and `savings` to the stored amounts of the owner, so the amounts of several processes are
    /// summed.
    async fn measure(&self, scope: &Scope, measurements: Vec<Measurement>, savings: Savings) -> Result<()>;

    /// Removes the rows that [`ReadRecords::expired`] counts. Returns how many were removed.
    async fn remove_expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired>;
}
