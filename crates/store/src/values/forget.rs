//! Forgetting: selections, results, operations, and expired rows.

use tiro_base::filter::Filter;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::SessionId;

/// The memories that a call forgets.
#[derive(Clone, Debug)]
pub enum Selection {
    /// These memories.
    Ids(Vec<MemoryId>),
    /// All memories of the session.
    Session(SessionId),
    /// All memories that the filter admits.
    Matching(Filter),
}

/// Which memories a selection can include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Living memories only.
    Living,
    /// Living memories, and forgotten memories that are not purged.
    Forgotten,
}

/// The memories that one operation forgot, restored or removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgotten {
    /// The operation's name, by which it can be undone; empty if no memory was forgotten.
    pub operation: String,
    /// The memories, in the order they were stored.
    pub ids: Vec<MemoryId>,
    /// How many tokens the memories have (o200k).
    pub tokens: i64,
    /// The names of the sessions that a purge removed because it removed their last memory.
    pub sessions: Vec<String>,
}

impl Forgotten {
    /// Adds the memories of `more`. If `self` has no operation, it gets the operation of `more`.
    pub fn add(&mut self, more: Forgotten) {
        if self.operation.is_empty() {
            self.operation = more.operation;
        }
        self.ids.extend(more.ids);
        self.tokens += more.tokens;
        self.sessions.extend(more.sessions);
    }
}

/// An operation that forgot or removed memories.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its name.
    pub id: String,
    /// `forget`, `purge`, or `purging` for a purge that isn't finished.
    pub kind: String,
    /// When it happened.
    pub at: Millis,
    /// How many memories are recorded under the operation. Purged memories are not recorded.
    pub memories: i64,
    /// Whether it was undone.
    pub undone: bool,
}

/// Counts of expired rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Cached answers whose time to live is over.
    pub answers: i64,
    /// The size of the expired answers, in bytes.
    pub answer_bytes: i64,
    /// Queue entries whose summaries were made.
    pub made: i64,
    /// Queue entries that were given up.
    pub given_up: i64,
    /// Summaries that a later version of the same range and level replaced.
    pub superseded: i64,
}

/// A session that has no recent memories and led to no commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSession {
    /// The session.
    pub session: SessionId,
    /// How many living memories it has.
    pub memories: i64,
    /// The time of its latest memory.
    pub last: Millis,
}
