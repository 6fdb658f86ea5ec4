//! What a question may leave beside the memories.

use async_trait::async_trait;

use crate::{Attempt, ShownLine, Wanted};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::ContentHash;

/// What a question may leave beside the memories: cached answers and counts, leases, what was paid for, what contexts
/// showed, and work for later. Nothing of it changes what another question finds.
#[async_trait]
pub trait Bookkeeping: Send + Sync {
    /// Stores embeddings under keys, in the place of those that are there. The oldest are removed when there are more
    /// than 20,000. A purge removes all.
    async fn cache_embeddings(&self, scope: &Scope, entries: Vec<([u8; 32], Vec<f32>)>) -> Result<()>;

    /// Adds a summary to the queue, to be made at `not_before` or later. If its entry exists already and is
    /// completed or failed, the entry becomes pending again. If the user asks for the summary, the entry is
    /// taken before those that the program added. If the program asks, the new entry replaces some entries that
    /// the program added earlier: those of the same level whose range has the same beginning, but is shorter.
    ///
    /// There is one entry for each range, level and provider. Errors with `Kind::NotFound` if the scope has no
    /// such session.
    async fn enqueue(&self, scope: &Scope, wanted: Wanted, not_before: Millis, now: Millis) -> Result<()>;

    /// Adds an attempt to the history. Does nothing if the session has been removed.
    async fn attempt(&self, scope: &Scope, attempt: Attempt) -> Result<()>;

    /// Takes or renews the owner's lease `name` for `holder`; returns `false` if another holder has it. The
    /// lease ends `lasts` milliseconds from now, by the store's own clock.
    ///
    /// If several callers try at once, one of them gets the lease. A holder that doesn't renew the lease in
    /// time, such as a process that died, loses it. Owners don't see each other's leases.
    async fn lease(&self, scope: &Scope, name: &str, holder: &str, lasts: Millis) -> Result<bool>;

    /// Ends the owner's lease `name` if `holder` has it; does nothing if another holder has taken it.
    async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()>;

    /// Records what the last context of `session` shows of its memories. `key` names the context: if it is the one that
    /// is recorded already, nothing is written.
    ///
    /// Waits for other writers, but not longer than half a second: then it is recorded after this method has returned.
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

    /// Notes how many tokens contents have. Of more than 100,000 counts, the oldest are removed.
    ///
    /// A count can be computed again. So this doesn't wait for the disk, and does nothing, without an error, if other
    /// processes write or if the store can't be written.
    async fn note_token_counts(&self, scope: &Scope, counts: &[(ContentHash, u32)]) -> Result<()>;

    /// Stores `body` under `key` for `ttl_ms` milliseconds. Then removes the owner's answers that were used
    /// longest ago, until the rest fit into `max_bytes`.
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
