//! Reads and stores chunks and their vectors.

use async_trait::async_trait;

use crate::{ChunkRange, PendingChunk, PreparedChunk};
use tiro_base::error::Result;
use tiro_base::memory::{Content, Draft, Memory, MemoryKey};
use tiro_base::scope::Scope;

/// Reads chunks and their vectors.
#[async_trait]
pub trait ReadEmbeddings: Send + Sync {
    /// Returns how many chunks of the scope's owner wait for an embedding.
    async fn pending(&self, scope: &Scope) -> Result<usize>;

    /// Returns up to `limit` chunks of the scope's owner that wait for an embedding, the oldest first. If `content` is
    /// `Some`, only chunks of this content are returned.
    ///
    /// Two callers at once may get the same chunks. To avoid this, callers take a [lease](crate::Bookkeeping::lease).
    async fn pending_chunks(
        &self,
        scope: &Scope,
        content: Option<Content>,
        limit: usize,
    ) -> Result<Vec<PendingChunk>>;

    /// Returns up to `limit` living derived facts and decisions of the owner that have no chunk. An earlier version of
    /// Tiro stored them without a chunk.
    async fn derived_without_chunk(&self, scope: &Scope, limit: usize) -> Result<Vec<Memory>>;

    /// Returns, for each of `keys`, the owner's embedding that
    /// [`Bookkeeping::cache_embeddings`](crate::Bookkeeping::cache_embeddings) stored under this key.
    async fn cached_embeddings(&self, scope: &Scope, keys: Vec<[u8; 32]>) -> Result<Vec<Option<Vec<f32>>>>;

    /// Returns the chunks of the owner's memories in `keys`, each with the key of its memory. The chunks of a memory
    /// are in the order of the text.
    async fn chunks_of(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<(MemoryKey, ChunkRange)>>;
}

/// Stores chunks and their vectors.
#[async_trait]
pub trait WriteEmbeddings: Send + Sync {
    /// Stores embeddings of the vector space `space`. A chunk is ignored if it was removed, or embedded by
    /// another caller, after it was read.
    async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        embeddings: Vec<(PendingChunk, Vec<f32>)>,
    ) -> Result<()>;

    /// Removes the owner's embeddings of other vector spaces than `prose` (for prose) and `code` (for code). The chunks
    /// then wait for new embeddings. Returns the number of these chunks.
    async fn mark_other_spaces_pending(&self, scope: &Scope, prose: &str, code: &str) -> Result<usize>;

    /// Stores chunks for memories that have none. Each item of `found` is a memory's key, its draft and its
    /// chunks. A memory that is forgotten, or has chunks already, is skipped.
    async fn add_chunks(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>,
    ) -> Result<()>;
}
