//! Writes that are allowed while a question is answered.

use async_trait::async_trait;

use crate::{Attempt, ShownLine, Wanted};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::ContentHash;

/// Stores data other than memories while a question is answered: cached answers and counts, leases, attempts that were
/// paid for, records of contexts, and work for later. None of these writes changes what another question finds.
#[async_trait]
pub trait Bookkeeping: Send + Sync {
    /// Stores embeddings under keys, and replaces embeddings with the same keys. If the owner has more than 20,000
    /// stored embeddings, the oldest are removed. A purge removes all of them.
    async fn cache_embeddings(&self, scope: &Scope, entries: Vec<([u8; 32], Vec<f32>)>) -> Result<()>;

    /// Adds a summary to the queue, to be made at `not_before` or later. If its entry exists already and is completed
    /// or failed, the entry becomes pending again. If the user asks for the summary, the entry is taken before those
    /// that the program added. If the program itself asks for it, the new entry replaces entries that the program added
    /// earlier for shorter ranges with the same beginning and level.
    ///
    /// The queue has at most one entry for each range, level and provider. Errors with `Kind::NotFound` if the scope
    /// has no such session.
    async fn enqueue(&self, scope: &Scope, wanted: Wanted, not_before: Millis, now: Millis) -> Result<()>;

    /// Adds an attempt to the history. Does nothing if the session has been removed.
    async fn attempt(&self, scope: &Scope, attempt: Attempt) -> Result<()>;

    /// Takes or renews the owner's lease `name` for `holder`. Returns `false` if another holder has the lease. The
    /// lease ends after `lasts` milliseconds by the store's own clock.
    ///
    /// If several callers try at once, only one caller gets the lease. A holder that doesn't renew the lease in time,
    /// such as a process that died, loses it. Owners don't see each other's leases.
    async fn lease(&self, scope: &Scope, name: &str, holder: &str, lasts: Millis) -> Result<bool>;

    /// Ends the owner's lease `name` if `holder` has it. Does nothing if another holder has taken the lease.
    async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()>;

    /// Records which memories the last context of `session` shows. `key` identifies the context. If this context is
    /// recorded already, nothing is written.
    ///
    /// Waits up to half a second for other writers. After this time the method returns, and the context is recorded
    /// later.
    ///
    /// # Errors
    ///
    /// Errors if the store can't be written.
    async fn record_assembly(
        &self,
        scope: &Scope,
        session: &SessionId,
        key: [u8; 32],
        lines: Vec<ShownLine>,
    ) -> Result<()>;

    /// Stores the numbers of tokens of contents. If there are more than 100,000 counts, the oldest are removed.
    ///
    /// A count can always be computed again. So this method doesn't wait for the disk. If other processes write, or if
    /// the store can't be written, it does nothing and returns no error.
    async fn note_token_counts(&self, scope: &Scope, counts: &[(ContentHash, u32)]) -> Result<()>;

    /// Stores `body` under `key` for `ttl_ms` milliseconds. Afterwards removes the owner's least recently used answers
    /// until the rest fit into `max_bytes`.
    ///
    /// Stores nothing, and returns no error, if other processes write, if the store can't be written, or if
    /// `body` is larger than `max_bytes`.
    async fn cache(
        &self,
        scope: &Scope,
        key: [u8; 32],
        body: String,
        now: Millis,
        ttl_ms: Millis,
        max_bytes: i64,
    ) -> Result<()>;
}
