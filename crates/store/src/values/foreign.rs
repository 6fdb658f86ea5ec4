//! Memories that are read from the file of another store, such as a backup.

use super::{Origin, PreparedMemory, SegmentRow, StashCause, Summary};
use tiro_base::memory::{CommitRecord, Memory, MemoryId, Millis};
use tiro_base::scope::SessionId;

/// A memory of a backup, with its rows in other tables.
#[derive(Clone, Debug)]
pub struct ForeignMemory {
    /// The memory.
    pub memory: Memory,
    /// The memories that it refers to.
    pub references: Vec<MemoryId>,
    /// The memories that this memory replaces by request.
    pub supersedes: Vec<MemoryId>,
    /// The memories that replace this memory by request.
    pub superseded_by: Vec<MemoryId>,
    /// How many bytes at the beginning of the text are embedded; `None` if the whole text is embedded.
    pub lead: Option<usize>,
    /// The files it touches.
    pub files: Vec<String>,
    /// If the memory is a commit, its fields except the text.
    pub commit: Option<CommitRecord>,
    /// If the memory is a commit, all its full ids.
    pub shas: Vec<String>,
    /// The keys of all occurrences of the text; empty if occurrences are not counted.
    pub repeats: Vec<String>,
    /// If the memory is a commit, the sessions that led to it, the likeliest first, each with a confidence from
    /// 0 to 1.
    pub links: Vec<(SessionId, f64)>,
    /// If the memory is a tool call, the evidence that links its session to commits.
    pub evidence: ForeignEvidence,
    /// Whether the text index contains the memory. Some derived memories are not indexed and are found only
    /// through their source.
    pub is_indexed: bool,
    /// The operation that forgot the memory, and the time of forgetting; `None` for a living memory. The backup
    /// may lack the operation.
    pub forgotten: Option<(Option<String>, Millis)>,
    /// The state of the memory in the stash, if it is stashed.
    pub stashed: Option<ForeignStash>,
}

/// The state of a memory in the stash of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignStash {
    /// When it was stashed.
    pub stashed_at: Millis,
    /// When it leaves the stash.
    pub expires_at: Option<Millis>,
    /// Whether it never expires.
    pub is_protected: bool,
    /// Whether contexts leave it out.
    pub is_held_out: bool,
    /// Whether it was given as text.
    pub is_given: bool,
    /// Its topic in the stash.
    pub topic: Option<String>,
    /// Why it is in the stash.
    pub cause: StashCause,
}

/// A part of the memories of a file, in the order in which they were stored.
#[derive(Clone, Debug, Default)]
pub struct ForeignPage {
    /// The memories that can be stored.
    pub memories: Vec<ForeignMemory>,
    /// How many further memories were left out because they are longer than a memory may be.
    pub too_long: usize,
    /// How many further memories were left out because they are not valid: the kind is unknown, the id is
    /// missing, or the time is impossible.
    pub malformed: usize,
    /// How many further memories were left out because their text is damaged.
    pub damaged: usize,
}

/// Which memories to read. The originals are read first, so that derived memories come after their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignPart {
    /// Messages, commits and notes.
    Original,
    /// Memories derived from the originals. Memories that summarise whole sessions are left out, because they are read
    /// with their sessions.
    Derived,
}

/// A session of a backup.
#[derive(Clone, Debug)]
pub struct ForeignSession {
    /// Its name.
    pub session: SessionId,
    /// The client, work tree, title and aliases of the session.
    pub origin: Origin,
    /// The branch that was last checked out in the session.
    pub branch: Option<String>,
    /// The commit that was last checked out in the session.
    pub head_sha: Option<String>,
    /// Its closed segments.
    pub segments: Vec<SegmentRow>,
    /// The summaries of the session, in the order in which they were made, each with its time.
    pub summaries: Vec<(Summary, Millis)>,
    /// The memory that summarises the whole session.
    pub conversation: Option<ForeignConversation>,
}

/// The memory that summarises a whole session.
#[derive(Clone, Debug)]
pub struct ForeignConversation {
    /// The memory.
    pub memory: ForeignMemory,
    /// The ordinal of the last message that the memory was made of.
    pub last: i64,
    /// The [`source_hash`](crate::source_hash) of the messages that the memory was made of.
    pub source_hash: [u8; 32],
    /// When it was made.
    pub made_at: Millis,
}

/// The memories and sessions that were forgotten in the backup, and the operations that forgot them.
#[derive(Clone, Debug, Default)]
pub struct ForeignForgotten {
    /// The ids of purged memories.
    pub purged: Vec<MemoryId>,
    /// The operations, each with its id, its time, and the time at which it was undone.
    pub operations: Vec<(String, Millis, Option<Millis>)>,
    /// Sessions that were forgotten because of their age, each with the memory that summarised it.
    pub retired: Vec<(SessionId, MemoryId)>,
}

/// Which fields of a session are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignDepth {
    /// Its client, work tree and names.
    Origin,
    /// Its segments and summaries.
    Made,
}

/// The file changes and commits of a tool call.
#[derive(Clone, Debug, Default)]
pub struct ForeignEvidence {
    /// The files it changed.
    pub writes: Vec<ForeignWrite>,
    /// The commits it made.
    pub calls: Vec<ForeignCall>,
}

/// A change of a file by a tool call.
#[derive(Clone, Debug)]
pub struct ForeignWrite {
    /// When the call was made.
    pub time: Millis,
    /// The file, relative to the root of the work tree.
    pub path: String,
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// 32-bit hashes of added and removed lines; `None` if the lines aren't known, or there are more lines than
    /// a store accepts.
    pub lines: Option<Vec<u8>>,
}

/// A tool call that made a commit.
#[derive(Clone, Debug)]
pub struct ForeignCall {
    /// When the call began, and when it ended.
    pub time: (Millis, Millis),
    /// The beginning of the commit's id; empty if git printed no id.
    pub sha: String,
    /// The work tree.
    pub worktree: Option<String>,
}

/// A memory of a backup, ready to be stored.
#[derive(Clone, Debug)]
pub struct RestoredMemory {
    /// The memory itself.
    pub memory: PreparedMemory,
    /// The ordinal of the message in its session in the backup.
    pub ordinal: Option<i64>,
    /// The operation that forgot the memory, and the time of forgetting; `None` for a living memory.
    pub forgotten: Option<(String, Millis)>,
    /// Whether it is marked as important.
    pub is_marked: bool,
    /// If the memory is a commit, all its full ids.
    pub shas: Vec<String>,
    /// The keys of all occurrences of the text; empty if occurrences are not counted.
    pub repeats: Vec<String>,
    /// If the memory is a commit, the sessions that led to it, the likeliest first, each with a confidence from
    /// 0 to 1.
    pub links: Vec<(SessionId, f64)>,
    /// If the memory is a tool call, the evidence that links its session to commits.
    pub evidence: ForeignEvidence,
    /// The memories that replace this memory by request. The memories that it replaces are in its draft.
    pub superseded_by: Vec<MemoryId>,
    /// The state of the memory in the stash, if it is stashed.
    pub stashed: Option<ForeignStash>,
}
