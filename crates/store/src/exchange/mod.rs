//! Reads what changed in a store, for a peer, and merges what changed in the store of a peer.

pub(crate) mod stamp;
mod values;

use async_trait::async_trait;

pub use self::values::{
    Change, Changes, ExchangedChunk, ExchangedMemory, ExchangedState, Incoming, IncomingMemory, MergeOutcome,
    MergeRights, WantedChanges,
};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{AuthorId, Scope};

/// Reads what changed in a store, for a peer.
#[async_trait]
pub trait ReadChanges: Send + Sync {
    /// Returns those of the living memories `keys` that came from a peer and were not stored here first, by ascending
    /// key. What a peer makes of its own messages, such as the decisions in them, comes from that peer, too.
    async fn came_from_peers(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<MemoryKey>>;

    /// Returns up to `limit` changes with a number above `after`, of all memories that the scope's reader sees and that
    /// `wanted` admits: living, forgotten and purged ones. The sessions of the scope don't count.
    ///
    /// A page has fewer changes if their texts are long (about 8 MB), but at least one change if there is one. The next
    /// page begins after [`Changes::next`]. A memory that changes while a caller reads page after page appears on a
    /// later page. If `after` is larger than the number of the store's latest change, as after the store was replaced by
    /// an older copy, all changes are returned from the first one on.
    ///
    /// Only a living memory comes with its content.
    ///
    /// If `name` is `Some`, the peer is a server that knows the scope's reader by this name. Then the author of the
    /// reader's memories is `name`, their ids are those of [`exchange_id`], and their sessions those of
    /// [`sent_session`]. Memories of other authors travel under the name that the peer uses ([`sent_author`]), without
    /// their content, because only an author may send it. What the reader's machine extracted from messages that came
    /// from a peer is left out: the machine on which they were said extracts it, too. If `name` is `None`, this store is the server: ids, sessions
    /// and authors travel as they are.
    ///
    /// [`exchange_id`]: crate::decide::exchange::exchange_id
    /// [`sent_session`]: crate::decide::exchange::sent_session
    /// [`sent_author`]: crate::decide::exchange::sent_author
    async fn changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        wanted: &WantedChanges,
        after: i64,
        limit: usize,
    ) -> Result<Changes>;
}

/// Merges what changed in the store of a peer.
#[async_trait]
pub trait MergeChanges: Send + Sync {
    /// Merges changes of the peer `peer` in order, and returns what became of each. All of them are merged in one transaction,
    /// unless the content of one author's commit follows the purge of the same commit of another one.
    ///
    /// - A memory that is not known is stored with its author and its state. If only the state of a memory of the reader
    ///   came, the state is remembered, and is merged with the content when that arrives. Until then, storing a memory
    ///   with this id does nothing if the remembered state is forgotten or purged. The state of an unknown memory of
    ///   others is not remembered.
    /// - A message gets the ordinal that came along, also one before those of other messages of its session. If another
    ///   message has this ordinal here, it gets the next one.
    /// - The state of a known memory becomes [`ExchangedState::merged`] of both states. Its text, author, session and
    ///   visibility never change. A memory is known if the reader sees it, and its id, or the id under which it travels,
    ///   is the id of the change.
    /// - A change in another's name than that of the author neither forgets, restores nor purges a memory that is here: of a
    ///   commit that several people imported, each has their own.
    /// - If a memory becomes forgotten, so do all memories derived from it, as by
    ///   [`Forget::forget`](crate::Forget::forget), but no operation can undo it. A memory that was forgotten is living
    ///   again if the merged state says so.
    /// - If a memory becomes purged, it and all memories derived from it are forgotten in the same transaction, and
    ///   removed before the call returns, as by [`Forget::purge`](crate::Forget::purge). If the removal is interrupted,
    ///   [`Forget::finish_purges`](crate::Forget::finish_purges) ends it.
    ///
    /// Each change that has an effect gets a number, so that other peers get it. If the merged state is the state that
    /// came, `peer` itself doesn't get it back; otherwise it does, and learns what it didn't know. Merging the same
    /// changes again has no effect.
    ///
    /// `name` has the same meaning as in [`ReadChanges::changes`]: if it is `Some`, memories whose author is `name`
    /// become the reader's own, their sessions get the names that they have here ([`kept_session`]), and memories that
    /// this store gave out are recognised by the ids under which they travelled. Other authors get the names of
    /// [`kept_author`].
    ///
    /// `rights` says what the peer may change in memories of others. A change that it may not make is left out, and
    /// reported as [`MergeOutcome::Refused`].
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the prepared memory of a change has another
    /// id or another kind than the change, or if `name` is `Some` and the scope's reader isn't the tenant.
    ///
    /// [`ExchangedState::merged`]: crate::ExchangedState::merged
    /// [`kept_session`]: crate::decide::exchange::kept_session
    /// [`kept_author`]: crate::decide::exchange::kept_author
    async fn merge_changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        peer: &str,
        rights: MergeRights,
        incoming: Vec<Incoming>,
        now: Millis,
    ) -> Result<Vec<MergeOutcome>>;
}
