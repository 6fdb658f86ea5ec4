//! Statements whose values can be compared, and memories that later memories replaced.

use crate::{ChunkKey, SubjectKey};
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::SessionId;

/// A statement of a value, such as "the API answers within 250 ms", in the text of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The memory.
    pub memory: MemoryKey,
    /// The place of the statement among those of its memory, from 0.
    pub number: i64,
    /// The byte of the memory's text at which the statement begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The one who stated it. Statements of different voices are not compared.
    pub voice: String,
    /// The value, in a normalised form: equal values have the same text.
    pub value: String,
    /// The words, separated by spaces, that name the thing with this value.
    pub words: String,
    /// When it was stated.
    pub time: Millis,
    /// The subject of the statement; `None` if the statement is the only one about its subject, or isn't stored yet.
    pub subject: Option<SubjectKey>,
}

/// A statement to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStatement {
    /// The statement.
    pub statement: Statement,
    /// Another statement about the same subject, named by its memory and its number. The other statement is stored
    /// already, or comes earlier in the same call.
    pub same_as: Option<(MemoryKey, i64)>,
}

/// A memory that a later memory replaced, as a whole or in one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// The replaced memory.
    pub memory: MemoryKey,
    /// The range of bytes in the memory's text that the replaced statement takes; `None` if the whole memory is
    /// replaced.
    pub statement: Option<(usize, usize)>,
    /// The words that say what the replaced value belongs to; `None` if the whole memory is replaced.
    pub words: Option<String>,
    /// The id of the later memory.
    pub by: MemoryId,
    /// The key of the later memory.
    pub by_key: MemoryKey,
    /// When the later memory was made.
    pub by_time: Millis,
    /// The session of the later memory.
    pub by_session: Option<SessionId>,
    /// The ordinal of the later memory in its session.
    pub by_ordinal: Option<i64>,
    /// The range of bytes that the new statement takes in the text of the later memory; `None` if the statement is the
    /// whole text.
    pub by_statement: Option<(usize, usize)>,
    /// The chunk with the new statement; `None` if the later memory has no chunk.
    pub by_chunk: Option<ChunkKey>,
}
