//! What callers hand over to be stored, and what they are answered.

use crate::memory::{Draft, Kind, MemoryId, Millis, Role};
use crate::scope::SessionId;
use crate::store::ChunkKey;

/// A memory ready to be stored: redacted, chunked, counted, and embedded where the model was at hand.
#[derive(Clone, Debug)]
pub struct PreparedMemory {
    /// Its id, derived from what makes a second write of it the same write.
    pub id: MemoryId,
    /// What it says; the text is redacted.
    pub draft: Draft,
    /// Tokens of the text (o200k).
    pub tokens: i64,
    /// Its pieces, in order.
    pub chunks: Vec<PreparedChunk>,
}

/// A piece of a memory, ready to be indexed.
#[derive(Clone, Debug)]
pub struct PreparedChunk {
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Tokens of the piece (o200k).
    pub tokens: i64,
    /// The vector space and the embedding; `None` leaves it pending.
    pub embedding: Option<(String, Vec<f32>)>,
}

/// What became of one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored now.
    Stored,
    /// It was stored before, with the same text.
    AlreadyStored,
    /// Its id was stored before with another text, which stays.
    Conflict,
    /// It was forgotten before and stays so.
    Forgotten,
    /// Something like it is stored; that it came again is counted.
    Repeated,
}

/// What a write did; returned only after it is durable.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Each memory's id and fate, in the order given.
    pub outcomes: Vec<(MemoryId, Outcome)>,
    /// Chunks stored without an embedding.
    pub pending: usize,
}

impl Receipt {
    /// Returns how many memories met with `outcome`.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|(_, met)| *met == outcome).count()
    }
}

/// A chunk that waits for its embedding, with what its context is made of.
#[derive(Clone, Debug)]
pub struct PendingChunk {
    /// The chunk.
    pub seq: ChunkKey,
    /// The memory that it is a piece of.
    pub memory: MemoryId,
    /// Where in the memory's text it begins, in bytes.
    pub start: usize,
    /// The piece of text.
    pub text: String,
    /// What the memory is.
    pub kind: Kind,
    /// Who speaks.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// A line that names the memory.
    pub title: Option<String>,
    /// The file it speaks of.
    pub path: Option<String>,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The tag it carries.
    pub topic: Option<String>,
    /// When it was made.
    pub time: Millis,
}
