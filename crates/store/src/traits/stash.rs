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

    /// Returns how many memories of the stash the filter admits, and a page of groups by topic and session.
    async fn stash_contents(&self, scope: &Scope, page: StashPage) -> Result<StashContents>;

    /// Returns how many memories leave the stash by `now` or were made before `made_before`. Searches of the stash hide
    /// these memories.
    async fn expiring_stash(&self, scope: &Scope, now: Millis, made_before: Millis) -> Result<StashExpired>;

    /// Returns the time of the latest write, by the dates of the memories that were stored last; `None` if there is no
    /// memory.
    async fn newest(&self, scope: &Scope) -> Result<Option<Millis>>;
}

/// Puts memories into the stash and takes them out.
#[async_trait]
pub trait WriteStash: Send + Sync {
    /// Stashes memories of the scope, and stores and stashes new memories, in one transaction. A memory that is already
    /// stashed stays in the stash, with new terms as far as they are given. If contexts showed the memory, they leave
    /// it out again.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if a named memory is not a living memory of the
    /// scope, if a new memory was purged before, or if another text is stored under the id of a new memory. After such
    /// an error, nothing is stashed. A new memory that was forgotten before is living again.
    async fn stash(&self, scope: &Scope, stashing: Stashing, now: Millis) -> Result<StashReceipt>;

    /// Makes contexts show the named memories again. Unless `keep` is true, the memories also leave the stash. Returns
    /// the memories that were in the stash, in the order given, without repetitions.
    async fn unstash(&self, scope: &Scope, ids: &[MemoryId], keep: bool) -> Result<Vec<MemoryId>>;

    /// Removes up to `limit` texts that were given to the stash and expired more than a week before `now`. The texts
    /// are removed as the operation `operation`, so [`Forget::undo`](crate::Forget::undo) can restore them. Other
    /// memories only leave the stash; contexts show them again as soon as they expire. Protected memories stay in the
    /// stash. Memories that were stashed only to stay reachable leave the stash when a summary covers them.
    ///
    /// Texts that were removed in this way, but are not expired at `now`, are restored, because the clock was wrong. If
    /// `now` is more than a month later than everything in the store, nothing is removed, and the result says so. If
    /// there is nothing to do, nothing is written.
    async fn expire_stash(
        &self,
        scope: &Scope,
        times: (Millis, Millis),
        operation: &str,
        limit: usize,
    ) -> Result<StashExpired>;
}
