//! What to forget, what was forgotten, and what expired.

use crate::filter::Filter;
use crate::memory::{MemoryId, Millis};
use crate::scope::SessionId;

/// What to forget.
#[derive(Clone, Debug)]
pub enum Selection {
    /// These memories.
    Ids(Vec<MemoryId>),
    /// Everything in the session.
    Session(SessionId),
    /// Everything the filter admits.
    Matching(Filter),
}

/// How far a selection reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To living memories.
    Living,
    /// To those that were forgotten, too, and are still in the file.
    Forgotten,
}

/// What forgetting did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgotten {
    /// Names the operation for undoing it; empty where nothing was forgotten.
    pub operation: String,
    /// The memories, in the order they were stored.
    pub ids: Vec<MemoryId>,
    /// Their tokens (o200k).
    pub tokens: i64,
}

impl Forgotten {
    /// Adds what more was forgotten by the operation, or by another where this has none.
    pub fn add(&mut self, more: Forgotten) {
        if self.operation.is_empty() {
            self.operation = more.operation;
        }
        self.ids.extend(more.ids);
        self.tokens += more.tokens;
    }
}

/// An operation of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name.
    pub id: String,
    /// `forget`, `purge`, or `purging` while that isn't done.
    pub kind: String,
    /// When it happened.
    pub at: Millis,
    /// How many memories it touched.
    pub memories: i64,
    /// Whether it was undone.
    pub undone: bool,
}

/// What has expired, or was removed as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Answers in the cache past their time to live.
    pub answers: i64,
    /// Their bytes.
    pub answer_bytes: i64,
    /// Entries of the queue of summaries that were made.
    pub made: i64,
    /// Entries of the queue that were given up.
    pub given_up: i64,
    /// Summaries that a later version of the same range and level stands for.
    pub superseded: i64,
}

/// A session that nobody has come back to and no commit came of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSession {
    /// The session.
    pub session: SessionId,
    /// Its living memories.
    pub memories: i64,
    /// The time of its latest memory.
    pub last: Millis,
}
