//! Reads and stores memories.

use async_trait::async_trait;

use crate::{Before, ChunkKey, PreparedMemory, Receipt, ShownMemory};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};

/// Reads memories.
#[async_trait]
pub trait ReadMemories: Send + Sync {
    /// Returns the living memory of the scope with the id `id`, or `None`.
    async fn memory(&self, scope: &Scope, id: &MemoryId) -> Result<Option<Memory>>;

    /// Returns the memories in `keys`, in the order of `keys`. Memories that are not living or not in the scope
    /// are left out.
    async fn memories(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<Memory>>;

    /// Returns the keys of the memories in `ids`, in order. The result is `None` for an id that no living memory of the
    /// scope has.
    async fn keys_of(&self, scope: &Scope, ids: Vec<MemoryId>) -> Result<Vec<Option<MemoryKey>>>;

    /// Returns up to `limit` ids of living memories of the scope that begin with `beginning`, in order.
    async fn ids_beginning(&self, scope: &Scope, beginning: &str, limit: usize) -> Result<Vec<MemoryId>>;

    /// Returns up to `limit` living memories that `filter` admits, the last stored first. If `after` is `Some`,
    /// the list begins with the memory that was stored before `after`.
    ///
    /// Memories that are stored while a caller reads page after page don't appear on later pages.
    async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<Memory>>;

    /// Returns up to `limit` living memories that `filter` admits, the latest first. Of memories of the same time, the
    /// last stored comes first.
    async fn latest(&self, scope: &Scope, filter: &Filter, limit: usize) -> Result<Vec<Memory>>;

    /// Returns the memories of `found` in the form in which answers show them. `found` has pairs of a memory and its
    /// best chunk. Memories that are forgotten or out of scope are left out. The field `place` of each result is its
    /// place in `found`.
    async fn shown(&self, scope: &Scope, found: Vec<(MemoryKey, ChunkKey)>) -> Result<Vec<ShownMemory>>;

    /// Returns the texts of the memories in `keys`, in the order of `keys`. Memories that are not living or not
    /// in the scope are left out.
    async fn texts(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<(MemoryKey, String)>>;

    /// Like [`texts`](ReadMemories::texts), but also returns whether each text is damaged, that is, no longer the text
    /// that was stored.
    async fn checked_texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<(MemoryKey, String, bool)>>;

    /// Returns living messages of the session in order: up to `before` messages before `ordinal`, the message
    /// at `ordinal`, and up to `after` messages after it.
    async fn surroundings(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
        before: usize,
        after: usize,
    ) -> Result<Vec<Memory>>;

    /// Returns the living messages right before and right after each of the messages in `keys`. Each message is
    /// returned only once, and the result is ordered by key. Also returns the living messages nearest before the
    /// message that `before` names, in order.
    async fn beside(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
        before: Option<Before>,
    ) -> Result<(Vec<Memory>, Vec<Memory>)>;

    /// Returns the living memories of the scope that `memory` refers to, and the ones that refer to `memory`, ordered
    /// by key.
    async fn references(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>>;

    /// Returns the living memories of the scope that `memory` refers to, ordered by key.
    async fn refers_to(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>>;

    /// Returns the living memories of the scope that `memory` replaced because a caller asked for it, directly or through
    /// others, ordered by key.
    async fn supersedes(&self, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>>;
}

/// Stores memories.
#[async_trait]
pub trait WriteMemories: Send + Sync {
    /// Stores `memories` in order with the date `now`, and returns the result of each.
    ///
    /// Storing is idempotent: a memory whose id exists is not stored again, and a forgotten memory stays forgotten. A
    /// derived memory is stored only if all its sources are living. A message gets the next ordinal of its session. If
    /// two callers write to the same session at once, the ordinals follow the order of their transactions.
    ///
    /// If a memory names other memories that it replaces, they are superseded in the same transaction. Errors with
    /// [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if a replaced memory is not a living memory of the scope,
    /// and with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if a memory would replace itself, directly or
    /// through others. After such an error, nothing of the transaction is stored.
    ///
    /// Writes of more than 500 memories take several transactions, in order. After each transaction, `on_batch` gets
    /// the number of memories that are durable so far. If a transaction fails, the earlier ones stay, and a repeated
    /// call stores the rest.
    async fn save_reporting(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Receipt>;

    /// Like [`WriteMemories::save_reporting`], but without reports.
    async fn save(&self, scope: &Scope, memories: Vec<PreparedMemory>, now: Millis) -> Result<Receipt> {
        self.save_reporting(scope, memories, now, &mut |_| {}).await
    }

    /// Marks living memories of the scope as important, or removes the mark. Also sets their importance if `importance`
    /// is `Some`. Returns those of `ids` that exist, in the order in which the memories were stored.
    async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> Result<Vec<MemoryId>>;
}
