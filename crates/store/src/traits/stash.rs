//! Reads the stash. Puts memories into the stash and takes them out.

use async_trait::async_trait;

use crate::{StashContents, StashExpired, StashPage, StashReceipt, StashedMemory, Stashing};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::Scope;

/// Reads the stash.
#[async_trait]
pub trait ReadStash: Send + Sync {
    /// Returns those of `keys` that are living memories of the scope and in the stash, in the order of their keys.
    async fn stashed(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<StashedMemory>>;

    /// Returns up to `limit` memories of the stash that `filter` admits and whose keys are greater than `after`, in the
    /// order of their keys.
    async fn list_stash(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<StashedMemory>>;

    /// Returns how much of the stash the filter admits, and a page of it by topic and session.
    async fn stash_contents(&self, scope: &Scope, page: StashPage) -> Result<StashContents>;

    /// Returns what leaves the stash by `now`, or is made before `made_before`: searches of the stash hide it.
    async fn expiring_stash(&self, scope: &Scope, now: Millis, made_before: Millis) -> Result<StashExpired>;

    /// Returns the latest time at which one of the memories stored last was stored; `None` if there is no memory.
    async fn newest(&self, scope: &Scope) -> Result<Option<Millis>>;
}

/// Puts memories into the stash and takes them out.
#[async_trait]
pub trait WriteStash: Send + Sync {
    /// Stashes memories of the scope, and stores and stashes new ones, in one transaction. A memory that is stashed
    /// already stays so, on the new terms where they are given; if it was shown in contexts, they leave it out again.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if a named memory is not a living memory of the
    /// scope, or if a given one was purged, or stands under its id with another text; then nothing is stashed. A given
    /// memory that was forgotten is living again.
    async fn stash(&self, scope: &Scope, stashing: Stashing, now: Millis) -> Result<StashReceipt>;

    /// Ends the holding out of the named memories from contexts; if not `keep`, they also leave the stash. Returns
    /// those that were in the stash, in the order given, without repetitions.
    async fn unstash(&self, scope: &Scope, ids: &[MemoryId], keep: bool) -> Result<Vec<MemoryId>>;

    /// Removes up to `limit` texts that were given to the stash, whose time was over a week before `now`, as the
    /// operation `operation`, which [`Forget::undo`](crate::Forget::undo) brings back. Other memories only leave the
    /// stash then; contexts show them again as soon as their time is over. Protected ones stay. Memories that were
    /// stashed to be reachable, and that a summary covers now, leave too.
    ///
    /// Texts that were removed so, and whose time is not over at `now`, come back: the clock was wrong. If `now` is
    /// more than a month later than everything in the store, nothing is removed, and the result says so. Does not write
    /// if there is nothing to do.
    async fn expire_stash(
        &self,
        scope: &Scope,
        times: (Millis, Millis),
        operation: &str,
        limit: usize,
    ) -> Result<StashExpired>;
}
