//! A thread: the conversation of a session with one assistant, as an append-only list of blocks.
//!
//! A thread is divided into epochs. A prompt consists of the blocks of the current epoch, in order, followed by the
//! blocks that the new call adds. So each prompt begins with the bytes of the previous prompt. A new epoch begins only
//! if files have to be sent again or the history has to be shortened. The ledger says which copy of each file the
//! assistant has. The ledger can be derived from the blocks of the current epoch.
//!
//! This module defines plain values. The crate `inline` decides what belongs into a prompt, and the store keeps
//! threads.

use std::fmt;

use crate::memory::{MemoryId, Millis, words};
use crate::scope::SessionId;

/// The name of a thread within a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadName {
    /// The session.
    pub session: SessionId,
    /// The name of the assistant.
    pub assistant: String,
}

/// The hash of a text or file: the first 16 bytes of its BLAKE3 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    /// Returns the hash of `content`.
    pub fn of(content: &[u8]) -> ContentHash {
        let mut first = [0; 16];
        first.copy_from_slice(&blake3::hash(content).as_bytes()[..16]);
        ContentHash(first)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

words! {
    /// The kind of a block of a thread.
    Part {
        /// A text at the beginning of an epoch: it repeats what other assistants said, and says what was shortened.
        Opening = "opening",
        /// A file, whole.
        File = "file",
        /// The changes of a file since the copy that the assistant has, as a unified diff.
        Change = "change",
        /// A file that no longer exists.
        Removal = "removal",
        /// A note about the call, such as which files can be searched instead of read.
        Note = "note",
        /// The caller's instructions.
        Question = "question",
        /// The assistant's answer.
        Answer = "answer",
    }
}

/// The text of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BlockText {
    /// The text of a message, marked if it is damaged. `None` if the message was forgotten.
    Message(MemoryId, Option<String>),
    /// A text that is stored once for all threads of the project, by its hash. `None` if the text was removed to save
    /// space.
    Blob(ContentHash, Option<String>),
}

/// A block of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The turn that it belongs to. The first turn of a thread has the number 1.
    pub turn: u32,
    /// What it is.
    pub part: Part,
    /// The path of the file, if the block is about a file.
    pub path: Option<String>,
    /// The number of tokens of the block in a prompt, including the frame around its text.
    pub tokens: u32,
    /// Its text, redacted.
    pub text: BlockText,
}

/// The metadata of a file by which changes are noticed. If the metadata is equal at two times, and both times are long
/// enough after the last change, the file is unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stat {
    /// Its length in bytes.
    pub size: u64,
    /// When the file's content last changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When the file's content or metadata last changed, in nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Its inode.
    pub inode: u64,
}

words! {
    /// Where the assistant of a thread finds a file.
    FilePlace {
        /// In the prompt.
        Inline = "inline",
        /// In the index that the assistant searches during a call.
        Overflow = "overflow",
    }
}

/// The entry of a file in the ledger of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LedgerEntry {
    /// The path of the file, relative to the project's root.
    pub path: String,
    /// The place of the file. If the place changes, an answer reports the change.
    pub place: FilePlace,
    /// The metadata of the file when it was read. `None` if the file had changed just before; the next call must then
    /// compare the content.
    pub stat: Option<Stat>,
    /// The hash of the file's bytes when the file was read.
    pub raw: ContentHash,
    /// The hash of the redacted text that was sent or counted. The hash equals `raw` if nothing was replaced.
    pub sent: ContentHash,
    /// The number of tokens of the whole text.
    pub tokens: u32,
    /// Whether the assistant was told that the file no longer exists.
    pub is_removed: bool,
}

/// A thread as stored, with the blocks of its current epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The number of the current epoch. The first epoch has the number 1; 0 if nothing was recorded yet.
    pub epoch: u32,
    /// How many turns were recorded in all epochs.
    pub turns: u32,
    /// Whether the places of the files are fixed. The places are fixed as soon as some files did not fit into the
    /// prompt.
    pub is_fixed: bool,
    /// The context window, in tokens, for which the last prompt was made.
    pub window: u32,
    /// The version of the redaction rules that were applied to the files.
    pub rules: u32,
    /// The paths that callers named as the context of the thread, in order of their first use.
    pub context: Vec<String>,
    /// The blocks of the current epoch, in order.
    pub blocks: Vec<Block>,
    /// The files, by path.
    pub ledger: Vec<LedgerEntry>,
    /// When the last turn was recorded.
    pub updated: Option<Millis>,
}

/// What a turn cost and saved. All numbers are tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The tokens of the prompt, as counted before it was sent.
    pub prompt: u64,
    /// The tokens that this turn added to the thread's prompt.
    pub appended: u64,
    /// The tokens that would have been added if all inline files had been sent whole.
    pub whole: u64,
    /// The tokens that the provider reports as sent, in all rounds of the turn.
    pub input: u64,
    /// The tokens among `input` that the provider read from its cache.
    pub cached: u64,
    /// The tokens that the provider reports as received.
    pub output: u64,
    /// The cost in millionths of a dollar.
    pub micros: u64,
}
