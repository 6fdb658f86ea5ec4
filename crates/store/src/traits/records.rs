//! Reads counts, progress and cached answers. Records counts, progress and cached answers.

use async_trait::async_trait;

use crate::{CacheStats, Check, Expired, Measurement, Savings, Sizes, Stats};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

/// Reads counts, progress and cached answers.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// Returns the cursor that [`WriteRecords::set_import_cursor`] last stored for the owner and `source`; `None` if
    /// it never stored one.
    async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>>;

    /// Returns whether the owner has a cursor for a source whose name ends with `end`.
    async fn has_import_cursor(&self, scope: &Scope, end: &str) -> Result<bool>;

    /// Returns the owner's answer under `key`, unless it has expired at `now`.
    ///
    /// Answers don't last longer if the clock is set back: if an earlier use had a later time, that time counts instead
    /// of `now`. An answer may be missing right after a call to [`Bookkeeping::cache`](crate::Bookkeeping::cache),
    /// since that call may have skipped it.
    async fn cached(&self, scope: &Scope, key: [u8; 32], now: Millis) -> Result<Option<String>>;

    /// Returns the size of the owner's cache, and its hits and misses.
    async fn cache_stats(&self, scope: &Scope) -> Result<CacheStats>;

    /// Returns how many commits, messages, notes and sessions the scope's owner has, and how much is stashed.
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

    /// Checks the file, the text index and the vectors against each other, and the texts against their hashes, for all
    /// owners. Reads everything, which takes seconds at 100,000 memories.
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
    /// Stores the cursor of the owner's import of `source` with the date `now`; if several callers store one,
    /// the last one wins.
    async fn set_import_cursor(&self, scope: &Scope, source: &str, cursor: &str, now: Millis) -> Result<()>;

    /// Adds `measurements` and `savings` to those that are stored for the owner, so the amounts of several
    /// processes add up.
    async fn measure(&self, scope: &Scope, measurements: Vec<Measurement>, savings: Savings) -> Result<()>;

    /// Removes the rows that [`ReadRecords::expired`] counts, and returns their counts.
    async fn remove_expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired>;
}
