//! The facts about commits and sessions that links are judged by.

use std::collections::HashMap;

use crate::memory::{MemoryKey, Millis};
use crate::store::SessionKey;

/// A commit and what git knows of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The commit's row in the store.
    pub key: MemoryKey,
    /// The author time.
    pub time: Millis,
    /// The commit time, which is later if the commit was amended. The commit may contain changes up to this time.
    pub until: Millis,
    /// The author's name.
    pub author: Option<String>,
    /// The beginning of its message.
    pub message: String,
    /// The changed paths, relative to the root of the work tree.
    pub files: Vec<String>,
    /// The commit's ids.
    pub shas: Vec<String>,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// Where it was made, according to a reflog of this repository.
    pub here: Option<Here>,
    /// Whether a reflog shows that it came from another repository.
    pub is_pulled: bool,
}

/// The time and place at which a commit was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The time.
    pub time: Millis,
    /// The root of the work tree.
    pub worktree: String,
}

/// A session's change of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The session's row in the store.
    pub session: SessionKey,
    /// The time.
    pub time: Millis,
    /// The file.
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
    /// When it began.
    pub began: Millis,
    /// When its result came.
    pub ended: Millis,
    /// The abbreviated id that git printed; empty if it printed none.
    pub sha: String,
    /// The root of the work tree.
    pub worktree: Option<String>,
}

/// For each path the hashes of the lines that a commit changes, with the number of times each line occurs in the file.
pub type ChangedLines = HashMap<String, HashMap<u32, usize>>;
