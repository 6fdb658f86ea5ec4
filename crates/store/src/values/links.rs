//! Commits, the sessions that led to them, and the evidence for these links.

use crate::SessionKey;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::SessionId;

/// A commit, with the fields that link it to sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRow {
    /// The memory.
    pub key: MemoryKey,
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

/// A commit with the sessions that led to it, the likeliest first, each with a confidence from 0 to 1.
pub type CommitLinks = (MemoryKey, Vec<(SessionKey, f64)>);

/// A change of a file by a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRow {
    /// The tool call that made the change.
    pub memory: MemoryKey,
    /// The session.
    pub session: SessionKey,
    /// When the session changed it.
    pub time: Millis,
    /// The file, relative to the root of the work tree.
    pub path: String,
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Sorted hashes of the added and removed lines; empty if the lines aren't known.
    pub lines: Vec<u32>,
}

/// A tool call that made a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The session.
    pub session: SessionKey,
    /// When the call began.
    pub began: Millis,
    /// When the call ended.
    pub ended: Millis,
    /// The beginning of the commit's id; empty if git printed no id.
    pub sha: String,
    /// The work tree.
    pub worktree: Option<String>,
}

/// A part of the graph of commits. The commits are in the order they were read. The git module encodes and
/// decodes the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRow {
    /// Identifies the commits at which a shallow history ended when the part was read; empty for a complete
    /// history.
    pub stamp: String,
    /// The number of the part's first commit.
    pub first: usize,
    /// How many commits it has.
    pub count: usize,
    /// The commits and their parents, encoded.
    pub bytes: Vec<u8>,
}

/// A session that led to a commit, with the names by which an answer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BehindRow {
    /// Its key.
    pub key: SessionKey,
    /// Its name.
    pub session: SessionId,
    /// The title that the client gave the session.
    pub title: Option<String>,
    /// The time of the last message of the session before the commit. If no message is before the commit, the time of
    /// the session's first message.
    pub time: Millis,
    /// The ordinal of that message.
    pub ordinal: i64,
}

/// A commit that a session led to.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedCommit {
    /// The memory's id.
    pub id: MemoryId,
    /// The commit's full id.
    pub sha: Option<String>,
    /// The first line of its message.
    pub subject: String,
    /// When it was made.
    pub time: Millis,
    /// The confidence in the link, 0 to 1.
    pub confidence: f64,
}
