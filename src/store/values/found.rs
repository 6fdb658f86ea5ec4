//! What searches and readers return of memories.

use crate::memory::{Group, Kind, Memory, MemoryId, MemoryKey, Millis};
use crate::scope::SessionId;
use crate::store::{ChunkKey, SessionKey};

/// A chunk near to the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
}

/// A chunk that holds some of the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
    /// The group of kinds it belongs to.
    pub group: Group,
    /// BM25, higher is better.
    pub score: f64,
}

/// In how many documents of a store the words of a question stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// How many documents there are.
    pub documents: i64,
    /// In how many of them each word stands, in the order of the words.
    pub counts: Vec<i64>,
}

impl Vocabulary {
    /// Returns what each word says of what is asked for, by how rare it is in all of `stores`: above 0, a word that stands
    /// nowhere the most.
    pub fn rarity(stores: &[Vocabulary]) -> Vec<f64> {
        let words = stores.iter().map(|store| store.counts.len()).max().unwrap_or(0);
        let all: i64 = stores.iter().map(|store| store.documents).sum();
        let rarity = |place: usize| {
            let with: i64 = stores.iter().filter_map(|store| store.counts.get(place)).sum();
            (1.0 + ((all - with).max(0) as f64 + 0.5) / (with as f64 + 0.5)).ln()
        };
        (0..words).map(rarity).collect()
    }
}

/// Where a candidate stands, for ranking: everything but its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its key.
    pub seq: MemoryKey,
    /// Its id.
    pub id: MemoryId,
    /// What it is.
    pub kind: Kind,
    /// Its session.
    pub session: Option<SessionKey>,
    /// Its place in the session.
    pub ordinal: Option<i64>,
    /// Who speaks.
    pub speaker: Option<String>,
    /// When it was made.
    pub time: Millis,
    /// Whether it was marked important.
    pub marked: bool,
    /// What its author thinks of it, 0 to 1.
    pub importance: Option<f64>,
    /// A hash of its text, equal for equal texts.
    pub text_hash: [u8; 8],
    /// The message that a derived fact or decision was taken from.
    pub taken_from: Option<MemoryKey>,
}

/// What an answer shows of a memory that was found.
#[derive(Clone, Debug)]
pub struct ShownMemory {
    /// Where in the list asked for it was.
    pub place: usize,
    /// The memory.
    pub memory: Memory,
    /// Its best chunk.
    pub chunk: ChunkRange,
    /// The ids under which git may know it, for a commit.
    pub commit_ids: Vec<String>,
    /// The sessions that a commit came of, the likeliest first.
    pub conversations: Vec<SessionId>,
    /// How sure that is of each of them, 0 to 1.
    pub confidences: Vec<f64>,
}

/// A piece of a memory's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// The chunk.
    pub seq: ChunkKey,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Tokens of the piece (o200k).
    pub tokens: i64,
}
