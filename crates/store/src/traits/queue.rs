//! Reads the queue of summaries, and leases. Gives entries of the queue to processes that work on them.

use async_trait::async_trait;

use crate::{Pace, QueueCounts, QueueKey, Queued};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

/// Reads the queue of summaries, and leases.
#[async_trait]
pub trait ReadQueue: Send + Sync {
    /// Returns whether the queue of the scope's owner has an entry that is due at `now`, so that
    /// [`WorkQueue::next_queued`] would return it.
    async fn is_queue_due(&self, scope: &Scope, now: Millis) -> Result<bool>;

    /// Returns how many entries of the owner's queue are in each state.
    async fn queue_counts(&self, scope: &Scope) -> Result<QueueCounts>;

    /// Returns the tokens and times of the last `most` attempts of a provider's model in the owner's sessions, newest
    /// first.
    async fn paces(&self, scope: &Scope, provider: String, model: String, most: usize) -> Result<Vec<Pace>>;

    /// Returns whether somebody has the owner's lease `name` now.
    async fn is_leased(&self, scope: &Scope, name: &str) -> Result<bool>;
}

/// Gives entries of the queue of summaries to processes that work on them.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// Takes for `holder` the next entry of the scope that is due at `now`; returns `None` if no entry is due. Entries
    /// that the user asked for come first, and among entries of the same kind, the oldest.
    ///
    /// The holder has the entry for `lease` milliseconds by the store's own clock. Afterwards another holder may take
    /// it. The holder gives the entry back with [`WorkQueue::finish`], [`WorkQueue::fail`] or
    /// [`WorkQueue::drop_queued`]. If several callers take entries at once, each gets a different one. If the lease of
    /// an entry ends during the fifth try, the entry is given up.
    async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> Result<Option<Queued>>;

    /// Records that the summary of the entry was made. Does nothing if another holder has taken the entry.
    async fn finish(&self, scope: &Scope, entry: QueueKey, holder: &str, now: Millis) -> Result<()>;

    /// Records that a try failed. The entry then waits until `not_before`, or is given up after five tries. Does
    /// nothing if another holder has taken the entry.
    async fn fail(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        error: &str,
        not_before: Millis,
        now: Millis,
    ) -> Result<()>;

    /// Removes the entry, because its messages are gone. Does nothing if another holder has taken the entry.
    async fn drop_queued(&self, scope: &Scope, entry: QueueKey, holder: &str) -> Result<()>;
}
