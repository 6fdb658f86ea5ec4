//! Memories as searches find and show them.

use crate::{ChunkKey, SessionKey};
use tiro_base::memory::{Group, Kind, Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::SessionId;

/// A chunk near the query in the vector space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
}

/// A chunk that contains some words of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
    /// The group of kinds it belongs to.
    pub group: Group,
    /// Whether it belongs to a long answer: a message of an assistant that is longer than one chunk.
    pub is_answer: bool,
    /// The BM25 score; higher is better.
    pub score: f64,
}

/// How many documents of a store contain each word of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// How many documents there are.
    pub documents: i64,
    /// How many of them contain each word, in the order of the words.
    pub counts: Vec<i64>,
}

impl Vocabulary {
    /// Returns the weight of each word: the rarer it is in all of `stores`, the higher. It is BM25's inverse
    /// document frequency, so it is above 0, and highest for a word that no document contains.
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

/// The fields of a candidate that ranking needs: all except its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its key.
    pub key: MemoryKey,
    /// Its id.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its session.
    pub session: Option<SessionKey>,
    /// Its ordinal in the session.
    pub ordinal: Option<i64>,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's or author's name.
    pub speaker: Option<String>,
    /// The number of tokens (o200k) of its text.
    pub tokens: i64,
    /// When it was made.
    pub time: Millis,
    /// Whether it was marked important.
    pub marked: bool,
    /// The importance that its author gave it, 0 to 1.
    pub importance: Option<f64>,
    /// A hash of its text.
    pub text_hash: [u8; 8],
    /// The message that a derived fact or decision was taken from.
    pub taken_from: Option<MemoryKey>,
}

/// A memory that was found, as an answer shows it.
#[derive(Clone, Debug)]
pub struct ShownMemory {
    /// Its place in the list of memories that the caller asked for.
    pub place: usize,
    /// The memory.
    pub memory: Memory,
    /// The chunk that matches the query best.
    pub chunk: ChunkRange,
    /// If the memory is a commit, its full git ids. There is more than one after a rebase or a cherry-pick.
    pub commit_ids: Vec<String>,
    /// If the memory is a commit, the sessions that led to it, the likeliest first.
    pub conversations: Vec<SessionId>,
    /// The confidence, 0 to 1, that each session of `conversations` led to the commit.
    pub confidences: Vec<f64>,
}

/// A commit with its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorRow {
    /// The memory.
    pub key: MemoryKey,
    /// The commit's id.
    pub sha: String,
    /// The author's name.
    pub author: Option<String>,
}

/// What changes in a commit whose author gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The memory.
    pub key: MemoryKey,
    /// The author's new name.
    pub author: Option<String>,
    /// The text that is searched instead of the memory's own.
    pub indexed: Option<String>,
    /// The chunks, and how many tokens their excerpts have with the new name.
    pub tokens: Vec<(ChunkKey, i64)>,
}

/// A piece of a memory's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// The chunk.
    pub key: ChunkKey,
    /// Where it begins in the text, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How many tokens the piece has (o200k).
    pub tokens: i64,
}
