//! Commits, the sessions behind them, and what links are judged by.

use crate::memory::{MemoryId, MemoryKey, Millis};
use crate::scope::SessionId;
use crate::store::SessionKey;

/// A commit, as far as the sessions behind it are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeRow {
    /// The memory.
    pub seq: MemoryKey,
    /// When the change was made.
    pub time: Millis,
    /// Its full ids.
    pub shas: Vec<String>,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// The paths it changed.
    pub files: Vec<String>,
    /// Its author.
    pub author: Option<String>,
    /// The beginning of its text.
    pub message: String,
}

/// A commit with the sessions behind it, the likeliest first, and how sure that is of each, 0 to 1.
pub type CommitLinks = (MemoryKey, Vec<(SessionKey, f64)>);

/// A change of a file by a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRow {
    /// The session.
    pub session: SessionKey,
    /// When.
    pub time: Millis,
    /// The file, relative to the root of the work tree.
    pub path: String,
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Hashes of lines put in and taken out, sorted; none where that isn't known.
    pub lines: Vec<u32>,
}

/// A call by which a session committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The session.
    pub session: SessionKey,
    /// When it began.
    pub began: Millis,
    /// When it was answered.
    pub ended: Millis,
    /// The beginning of the commit's id; empty where git printed none.
    pub sha: String,
    /// The work tree.
    pub worktree: Option<String>,
}

/// Some commits in the order they were read; the bytes are git's side to understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRow {
    /// Where the history ended when they were read.
    pub stamp: String,
    /// The number of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// They and their parents.
    pub bytes: Vec<u8>,
}

/// A conversation behind a commit, as an answer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BehindRow {
    /// Its key.
    pub seq: SessionKey,
    /// Its name.
    pub session: SessionId,
    /// The line that its client names it by.
    pub title: Option<String>,
    /// When its last message before the commit was said; its first where none was.
    pub time: Millis,
    /// The place of that message.
    pub ordinal: i64,
}

/// A commit that came of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct CameOfRow {
    /// The memory's id.
    pub id: MemoryId,
    /// The commit's full id.
    pub sha: Option<String>,
    /// The first line of its message.
    pub subject: String,
    /// When it was made.
    pub time: Millis,
    /// How sure it is that it came of the conversation, 0 to 1.
    pub confidence: f64,
}
