//! The data of threads.

use std::collections::{BTreeMap, BTreeSet};

use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::thread::{ContentHash, LedgerEntry, Part, Spent};
use tiro_store::SessionKey;

/// A thread with an assistant.
#[derive(Clone, Debug)]
pub struct ThreadData {
    /// Its session.
    pub session: SessionKey,
    /// The name of the assistant.
    pub assistant: String,
    /// Its current epoch.
    pub epoch: u32,
    /// How many turns it has.
    pub turns: u32,
    /// Whether the places of its files are fixed.
    pub is_fixed: bool,
    /// The context window for which its last prompt was made.
    pub window: u32,
    /// The version of the rules that redacted its files.
    pub rules: u32,
    /// When its last turn ended.
    pub updated: Millis,
    /// The paths that callers named as its context.
    pub context: Vec<String>,
    /// The blocks of the current epoch.
    pub blocks: Vec<Piece>,
    /// Its files, by path.
    pub ledger: BTreeMap<String, LedgerEntry>,
    /// The copies of files that no block has.
    pub copies: BTreeSet<ContentHash>,
    /// The turns of all epochs.
    pub history: Vec<Turn>,
}

/// A block of a thread.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The turn that it belongs to.
    pub turn: u32,
    /// What it is.
    pub part: Part,
    /// The file that it is about.
    pub path: Option<String>,
    /// How many tokens it takes.
    pub tokens: u32,
    /// Where its text is.
    pub text: PieceText,
}

/// Where the text of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceText {
    /// It is the text of a memory.
    Message(MemoryKey),
    /// It is among the blobs.
    Blob(ContentHash),
}

/// A turn of a thread.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its number.
    pub number: u32,
    /// Its epoch.
    pub epoch: u32,
    /// The name of the call.
    pub call_id: String,
    /// The question, unless it was purged.
    pub question: Option<MemoryKey>,
    /// The answer, unless it was purged.
    pub answer: Option<MemoryKey>,
    /// The model that answered.
    pub model: String,
    /// When it ended.
    pub time: Millis,
    /// What it cost.
    pub spent: Spent,
    /// The answer of the call.
    pub receipt: Option<String>,
}

/// A text of threads.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Its place in the order of storing.
    pub number: i64,
    /// `None` if it was removed to save space, or never passed.
    pub text: Option<String>,
    /// The size of the compressed text.
    pub bytes: i64,
}
