//! Memories that were read from another store.

use super::{Origin, PreparedMemory, SegmentRow, Summary};
use crate::memory::{CommitRecord, Memory, MemoryId, Millis};
use crate::scope::SessionId;

/// A memory read from another store, with what stands beside it.
#[derive(Clone, Debug)]
pub struct ForeignMemory {
    /// The memory.
    pub memory: Memory,
    /// What it refers to.
    pub references: Vec<MemoryId>,
    /// The beginning of the text that is embedded, in bytes, where that isn't all.
    pub lead: Option<usize>,
    /// The files it touches.
    pub files: Vec<String>,
    /// What a commit is beside its text.
    pub commit: Option<CommitRecord>,
    /// All full ids of the commit.
    pub shas: Vec<String>,
    /// Under which keys it came again.
    pub repeats: Vec<String>,
    /// The sessions that the commit came of, the likeliest first, with how sure that is, 0 to 1.
    pub links: Vec<(SessionId, f64)>,
    /// What a tool call did, as far as it tells which session a commit came of.
    pub evidence: ForeignEvidence,
    /// Whether it is found by its own words: what was derived of a message is found by that.
    pub is_indexed: bool,
    /// When it was forgotten, and by which operation, where that is known.
    pub forgotten: Option<(Option<String>, Millis)>,
}

/// Some of the memories of a file, in the order they were stored.
#[derive(Clone, Debug, Default)]
pub struct ForeignPage {
    /// Those that can be stored.
    pub memories: Vec<ForeignMemory>,
    /// How many others were longer than a memory may be.
    pub too_long: usize,
    /// How many others are no memories: of an unknown kind, without an id, at an impossible time.
    pub malformed: usize,
}

/// Which memories are read: what was derived from others comes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignPart {
    /// What was said, stored and committed.
    Original,
    /// What was derived from it, but for what stands for a session: that comes with the session.
    Derived,
}

/// A session as the backup has it.
#[derive(Clone, Debug)]
pub struct ForeignSession {
    /// Its name.
    pub session: SessionId,
    /// Where it was held, and its other names.
    pub origin: Origin,
    /// The branch it was last on.
    pub branch: Option<String>,
    /// The commit it was last at.
    pub head_sha: Option<String>,
    /// The runs that its messages fall into.
    pub segments: Vec<SegmentRow>,
    /// What ranges of them come down to, in the order it was made, and when that was.
    pub summaries: Vec<(Summary, Millis)>,
    /// The memory that stands for it.
    pub conversation: Option<ForeignConversation>,
}

/// The memory that stands for a session.
#[derive(Clone, Debug)]
pub struct ForeignConversation {
    /// The memory.
    pub memory: ForeignMemory,
    /// The ordinal of the last message it was made of.
    pub last: i64,
    /// The messages it was made of, as [`source_hash`](crate::store::source_hash) has them.
    pub source_hash: [u8; 32],
    /// When it was made.
    pub made_at: Millis,
}

/// What the backup says was forgotten and removed.
#[derive(Clone, Debug, Default)]
pub struct ForeignForgotten {
    /// Ids that were purged.
    pub purged: Vec<MemoryId>,
    /// Operations: their ids, when they were, and when they were undone.
    pub operations: Vec<(String, Millis, Option<Millis>)>,
    /// Sessions that were forgotten by their age, each with the memory that stood for it.
    pub retired: Vec<(SessionId, MemoryId)>,
}

/// How much of a session is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignDepth {
    /// Where it comes from.
    Origin,
    /// What was made of it.
    Made,
}

/// What is known of the work of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ForeignEvidence {
    /// The files it changed.
    pub writes: Vec<ForeignWrite>,
    /// The commits it made.
    pub calls: Vec<ForeignCall>,
}

/// A change of a file.
#[derive(Clone, Debug)]
pub struct ForeignWrite {
    /// When.
    pub time: Millis,
    /// The file, relative to the root of the work tree.
    pub path: String,
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// 32-bit hashes of lines put in and taken out; `None` where that isn't known, or there are more than are ever kept.
    pub lines: Option<Vec<u8>>,
}

/// A call by which a session committed.
#[derive(Clone, Debug)]
pub struct ForeignCall {
    /// When it began, and when it was answered.
    pub time: (Millis, Millis),
    /// The beginning of the commit's id; empty where git printed none.
    pub sha: String,
    /// The work tree.
    pub worktree: Option<String>,
}

/// A memory of a backup, ready to be stored.
#[derive(Clone, Debug)]
pub struct RestoredMemory {
    /// What is stored of every memory.
    pub memory: PreparedMemory,
    /// Its place in its conversation there.
    pub ordinal: Option<i64>,
    /// The operation that forgot it, and when, where it was forgotten.
    pub forgotten: Option<(String, Millis)>,
    /// Whether it was marked as important.
    pub is_marked: bool,
    /// All full ids of a commit.
    pub shas: Vec<String>,
    /// Under which keys it came again.
    pub repeats: Vec<String>,
    /// The sessions that a commit came of, the likeliest first, with how sure that is, 0 to 1.
    pub links: Vec<(SessionId, f64)>,
    /// What a tool call did, as far as it tells which session a commit came of.
    pub evidence: ForeignEvidence,
}
