//! Turns of a thread with an assistant, as recorded and as listed.

use super::{PreparedMemory, Receipt};
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::thread::{Block, ContentHash, LedgerEntry, Spent, ThreadName};

/// A turn to record, with everything that it changes in its thread.
#[derive(Clone, Debug)]
pub struct TurnRecord {
    /// How many turns the thread had when the prompt was made; 0 for a new thread. The thread must still have this
    /// number of turns.
    pub expected_turns: u32,
    /// The epoch of the prompt: the thread's current epoch, or the next one. A new thread begins with epoch 1.
    pub epoch: u32,
    /// Whether the places of the thread's files are fixed from now on.
    pub is_fixed: bool,
    /// The context window for which the prompt was made, in tokens.
    pub window: u32,
    /// See [`tiro_base::thread::Thread::rules`].
    pub rules: u32,
    /// The paths that callers named as the thread's context so far, in order of their first use.
    pub context: Vec<String>,
    /// The blocks to append to the epoch; for a new epoch, all its blocks. The texts of messages are not taken from
    /// these blocks: the messages are stored already, or are in `memories`.
    pub blocks: Vec<Block>,
    /// The new and changed entries of the ledger.
    pub ledger: Vec<LedgerEntry>,
    /// The paths whose entries are removed from the ledger.
    pub ledger_removed: Vec<String>,
    /// Further texts by hash, which `blocks` does not contain. An example is the copy of a file of which only the
    /// changes were sent. A text is kept only if a block or an inline file of the ledger names it.
    pub blobs: Vec<(ContentHash, String)>,
    /// The maximum size of all compressed texts of the owner, in bytes.
    pub max_blob_bytes: i64,
    /// The memories of the turn, in order: the question, the answer, and memories derived from them.
    pub memories: Vec<PreparedMemory>,
    /// The question, which must be in `memories` or stored already.
    pub question: MemoryId,
    /// The answer, which must be in `memories` or stored already.
    pub answer: MemoryId,
    /// The name of the call. A repeated call finds its turn by this name.
    pub call_id: String,
    /// The answer of the call as JSON, which a repeated call returns. An answer longer than 64 KB is not kept.
    pub receipt: String,
    /// What the turn cost.
    pub spent: Spent,
    /// The model that answered.
    pub model: String,
    /// When the turn ended.
    pub time: Millis,
}

impl TurnRecord {
    /// The longest receipt that is kept, in bytes. Arbitrary: an MCP result has at most 100 KB. The text of the answer
    /// is stored as a message, so the receipt needs only the rest.
    pub const LONGEST_RECEIPT: usize = 64 << 10;
}

/// The result of recording a turn, which is returned only after the turn is durable.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The number of the turn.
    pub turn: u32,
    /// The results of storing its memories.
    pub receipt: Receipt,
    /// How many texts of the project were removed, because all texts together were too large.
    pub evicted: usize,
    /// The compressed size of the removed texts, in bytes.
    pub evicted_bytes: i64,
}

/// A turn as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// The number of the turn; the first turn of a thread has the number 1.
    pub number: u32,
    /// Its epoch.
    pub epoch: u32,
    /// The name of the call.
    pub call_id: String,
    /// The question. `None` if it was forgotten.
    pub question: Option<MemoryId>,
    /// The answer. `None` if it was forgotten.
    pub answer: Option<MemoryId>,
    /// The text of the answer, marked if it is damaged. `None` if it was forgotten.
    pub answer_text: Option<String>,
    /// The model that answered.
    pub model: String,
    /// When it ended.
    pub time: Millis,
    /// What it cost.
    pub spent: Spent,
    /// The receipt, in JSON. `None` if the receipt was too long, or if the question or the answer was forgotten.
    pub receipt: Option<String>,
}

/// A thread with its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The name of the thread, with the present name of its session.
    pub name: ThreadName,
    /// The number of its current epoch.
    pub epoch: u32,
    /// How many turns the thread has in all epochs.
    pub turns: u32,
    /// Whether the places of the thread's files are fixed.
    pub is_fixed: bool,
    /// The context window, in tokens, for which the last prompt was made.
    pub window: u32,
    /// How many files of the thread are in the prompt. Files that no longer exist aren't counted.
    pub files_inline: u32,
    /// How many files of the thread are searched instead. Files that no longer exist aren't counted.
    pub files_overflow: u32,
    /// How many tokens the blocks of the current epoch have.
    pub tokens: u64,
    /// When its first turn ended.
    pub first: Millis,
    /// When its last turn ended.
    pub last: Millis,
    /// The cost of all turns of the thread together.
    pub spent: Spent,
}

/// A question to an assistant and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The name of the assistant.
    pub assistant: String,
    /// When the turn ended.
    pub time: Millis,
    /// The text of the question, marked if it is damaged.
    pub question: String,
    /// The text of the answer, marked if it is damaged.
    pub answer: String,
    /// The memories of the question and the answer.
    pub ids: [MemoryId; 2],
}

/// The part of a thread that a reset removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// The files. The exchanges stay.
    Files,
    /// The whole thread. The messages of the thread stay memories of the project.
    Thread,
}

/// How much a reset of a thread removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetDone {
    /// How many files the ledger had.
    pub files: usize,
    /// How many blocks were removed.
    pub blocks: usize,
    /// How many turns were removed.
    pub turns: usize,
}
