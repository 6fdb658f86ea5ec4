//! The facts about commits and sessions that are used to judge links between them.

use std::collections::HashMap;

use tiro_base::memory::{MemoryKey, Millis};
use tiro_store::SessionKey;

/// A commit, with the facts that git knows about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The commit's row in the store.
    pub key: MemoryKey,
    /// The author time.
    pub time: Millis,
    /// The time after which no changes can have been added to the commit. This is the time at which the commit was made
    /// or last amended, if a reflog records it. Otherwise it is the author time.
    pub until: Millis,
    /// The author's name.
    pub author: Option<String>,
    /// The beginning of its message.
    pub message: String,
    /// The changed paths, relative to the root of the work tree.
    pub files: Vec<String>,
    /// The ids of the commit and of its rebased copies.
    pub shas: Vec<String>,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// The time and place at which the commit was made, if a reflog of this repository records them.
    pub here: Option<Here>,
    /// Whether a reflog shows that the commit came from another repository.
    pub is_pulled: bool,
}

/// The time and place at which a commit was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The time.
    pub time: Millis,
    /// The root of the work tree in which the commit was made.
    pub worktree: String,
}

/// A change that a session made to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The session's row in the store.
    pub session: SessionKey,
    /// The time.
    pub time: Millis,
    /// The path of the file, relative to the root of its work tree.
    pub path: String,
    /// The root of the work tree that contains the file.
    pub worktree: Option<String>,
    /// Hashes of the added and removed lines, sorted; empty if unknown.
    pub lines: Vec<u32>,
}

/// A session's tool call that makes a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The session's row in the store.
    pub session: SessionKey,
    /// When the call began.
    pub began: Millis,
    /// When its result came.
    pub ended: Millis,
    /// The abbreviated id that git printed; empty if it printed none.
    pub sha: String,
    /// The root of the work tree in which the call ran.
    pub worktree: Option<String>,
}

/// For each path, the hashes of the lines that a commit changes. The value of each hash is the number of such lines in
/// the file.
pub type ChangedLines = HashMap<String, HashMap<u32, usize>>;
