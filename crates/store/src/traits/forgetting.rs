//! Reads forgotten memories, and memories that would be forgotten. Forgets memories, restores them, and removes them
//! for good.

use async_trait::async_trait;

use crate::{Forgotten, Operation, Reach, Selection};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};

/// Reads forgotten memories, and memories that would be forgotten.
#[async_trait]
pub trait ReadForgotten: Send + Sync {
    /// Returns the memories that [`Forget::undo`] would restore, without restoring them. Errors in the same cases as
    /// [`Forget::undo`].
    async fn undoable(&self, scope: &Scope, operation: Option<&str>) -> Result<Forgotten>;

    /// Returns up to `limit` operations of the scope's owner, the newest first.
    async fn operations(&self, scope: &Scope, limit: usize) -> Result<Vec<Operation>>;

    /// Returns the memories within `reach` that `selection` names, and all memories within `reach` that are
    /// derived from them. Doesn't forget them.
    async fn selected(&self, scope: &Scope, selection: &Selection, reach: Reach) -> Result<Forgotten>;

    /// Returns up to `most` forgotten memories of the scope that contain all of `words`, with their texts, in
    /// the order they were stored. Also returns how many more such memories there are. `words` must be in lower
    /// case.
    ///
    /// No index is used. The texts of all forgotten memories are read, a thousand at a time, each thousand in a
    /// separate snapshot.
    async fn forgotten_with(
        &self,
        scope: &Scope,
        words: Vec<String>,
        most: usize,
    ) -> Result<(Vec<(MemoryId, String)>, usize)>;

    /// Returns the message at an ordinal of a session, if it is forgotten but not purged.
    async fn forgotten_at(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
    ) -> Result<Option<MemoryId>>;

    /// Returns whether the owner purged the memory `id`.
    async fn is_purged(&self, scope: &Scope, id: &MemoryId) -> Result<bool>;
}

/// Forgets memories, restores them, and removes them for good.
#[async_trait]
pub trait Forget: Send + Sync {
    /// Forgets the living memories of the scope that `selection` names, and all memories derived from them, as
    /// the operation `operation`. Returns the memories that it forgot; [`Forget::undo`] restores them.
    ///
    /// From then on, no call returns these memories, and storing them again does nothing. If a message is forgotten,
    /// the summaries of ranges that contain it, and the memory that summarises its session, are removed for good. If
    /// the message was said in a thread, the quotations of earlier turns and of other assistants in the threads of its
    /// session are removed as well. All these summaries and quotations can be made again from the remaining messages.
    /// The memories are selected once, at the beginning. More than 5,000 memories are forgotten in several
    /// transactions. If a transaction fails, a repeated call forgets the rest. If nothing is selected, the result is
    /// empty and no operation is recorded.
    async fn forget(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten>;

    /// Like [`Forget::forget`], but forgets a session because of its age. The summary of the session's quarter,
    /// which was made to replace the session, stays until the user forgets the session.
    async fn retire(
        &self,
        scope: &Scope,
        session: &SessionId,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten>;

    /// Restores the memories that `operation` forgot, and returns them. If `operation` is `None`, undoes the owner's
    /// latest operation that the user asked for. An operation with a date after `now` counts as earlier than all
    /// others, because its process had a wrong clock. Texts of the stash that were removed because they expired don't
    /// expire again.
    ///
    /// Memories are not restored if they have been purged, or if they are derived from a memory that another operation
    /// forgot. If a range of messages gets a message back, the summaries of this range are removed. If two callers undo
    /// at once, each memory is restored by only one of them. If one of several transactions fails, a repeated call
    /// restores the rest. Errors with `Kind::NotFound` if there is no such operation, or if it can't be undone.
    async fn undo(&self, scope: &Scope, operation: Option<&str>, now: Millis) -> Result<Forgotten>;

    /// Removes for good the memories that `operation` forgot, and returns them. The rows, index entries, vectors,
    /// summaries and cached answers of the memories are removed, and also the automatic backups of the file. A purge
    /// can't be undone.
    ///
    /// When this method returns, no file of the store contains the texts of the memories. The ids of the memories stay
    /// known, so storing the memories again does nothing. The purge takes many short transactions. If one transaction
    /// fails, the remaining memories stay forgotten and can't be restored; [`Forget::finish_purges`] removes them.
    async fn purge(&self, scope: &Scope, operation: &str, now: Millis) -> Result<Forgotten>;

    /// Forgets and purges the memories that `selection` names, like [`Forget::forget`] followed by
    /// [`Forget::purge`]. Memories that are already forgotten are purged too.
    async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten>;

    /// Finishes interrupted purges of the owner that began before `before`. Returns the removed memories. A purge that
    /// seems to have begun more than an hour after `before` was dated with a wrong clock, and is finished too.
    async fn finish_purges(&self, scope: &Scope, before: Millis) -> Result<Forgotten>;
}
