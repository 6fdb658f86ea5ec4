//! Memories to store, and the receipts of writes.

use crate::ChunkKey;
use tiro_base::memory::{Draft, Kind, MemoryId, Millis, Role};
use tiro_base::scope::SessionId;

/// A memory ready to be stored: its text is redacted and chunked, and its tokens are counted. The memory is also
/// embedded if the model was loaded.
#[derive(Clone, Debug)]
pub struct PreparedMemory {
    /// The id. The same memory has the same id each time it is written.
    pub id: MemoryId,
    /// The fields of the memory, with secrets replaced.
    pub draft: Draft,
    /// How many tokens the text has (o200k).
    pub tokens: i64,
    /// Its chunks, in order.
    pub chunks: Vec<PreparedChunk>,
}

/// A piece of a memory, ready to be indexed.
#[derive(Clone, Debug)]
pub struct PreparedChunk {
    /// The byte of the text at which the piece begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How many tokens the piece has (o200k).
    pub tokens: i64,
    /// The vector space and the embedding; `None` stores the chunk as pending.
    pub embedding: Option<(String, Vec<f32>)>,
}

/// The result of storing one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The memory was stored.
    Stored,
    /// The memory was already there, with the same text.
    AlreadyStored,
    /// Another text was already stored under the id. The other text stays, and the memory was not stored.
    Conflict,
    /// The memory was not stored, because the memory or a source that it is derived from is forgotten.
    Forgotten,
    /// An output like this one was already stored; this occurrence was only counted.
    Repeated,
}

/// The results of a write, which are returned only after the write is durable.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Each memory's id and result, in the order given.
    pub outcomes: Vec<(MemoryId, Outcome)>,
    /// How many chunks were stored without an embedding.
    pub pending: usize,
}

impl Receipt {
    /// Returns how many memories had the result `outcome`.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|(_, met)| *met == outcome).count()
    }
}

/// A chunk that waits for its embedding, with the fields from which the text to embed is made.
#[derive(Clone, Debug)]
pub struct PendingChunk {
    /// The chunk.
    pub key: ChunkKey,
    /// The memory that it belongs to.
    pub memory: MemoryId,
    /// The byte of the memory's text at which the chunk begins.
    pub start: usize,
    /// The piece of text.
    pub text: String,
    /// The memory's kind.
    pub kind: Kind,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// The memory's title, one line.
    pub title: Option<String>,
    /// The file that the memory is about.
    pub path: Option<String>,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The memory's tag.
    pub topic: Option<String>,
    /// When it was made.
    pub time: Millis,
}
