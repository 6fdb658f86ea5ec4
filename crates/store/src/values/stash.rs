//! Values of the stash: memories that are put aside, and the terms under which they are kept there.

use serde::{Deserialize, Serialize};

use crate::PreparedMemory;
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Millis};
use tiro_base::scope::SessionId;

/// The reason why a memory is in the stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StashCause {
    /// A call stashed the memory. Contexts leave the memory out until it is merged.
    Call,
    /// A context had no room for the memory, and no summary covers it. Contexts may still show it.
    Pruning,
    /// The client was about to compact its conversation. Contexts may still show it.
    Compaction,
}

impl StashCause {
    /// All causes.
    pub const ALL: [StashCause; 3] = [StashCause::Call, StashCause::Pruning, StashCause::Compaction];

    /// Returns whether contexts leave the memory out.
    pub fn holds_out(self) -> bool {
        self == StashCause::Call
    }

    /// Returns the word for the reason, as stored and as shown.
    pub fn as_str(self) -> &'static str {
        match self {
            StashCause::Call => "call",
            StashCause::Pruning => "pruning",
            StashCause::Compaction => "compaction",
        }
    }

    /// Returns the cause that `word` names.
    pub fn parse(word: &str) -> Option<StashCause> {
        StashCause::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}

/// The memories to stash, and the terms.
#[derive(Clone, Debug)]
pub struct Stashing {
    /// Stored memories.
    pub named: Vec<MemoryId>,
    /// New memories of any kind, which are stored in the same transaction.
    pub given: Vec<PreparedMemory>,
    /// Why.
    pub cause: StashCause,
    /// When the memories leave the stash. `None` means never; for a memory that is already stashed, `None` means no
    /// change.
    pub expires_at: Option<Millis>,
    /// Whether the memories never expire. `None` means false; for a memory that is already stashed, `None` means no
    /// change.
    pub is_protected: Option<bool>,
    /// The topic of the memories in the stash, in place of their own topics.
    pub topic: Option<String>,
}

/// The result of stashing, one entry for each memory in the order given, without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StashReceipt {
    /// The id of each memory, and whether this call stashed it; `false` if the memory was in the stash already.
    pub outcomes: Vec<(MemoryId, bool)>,
    /// The tokens (o200k) of all these memories.
    pub tokens: i64,
    /// The tokens (o200k) that the stashed memories took in the last contexts of their sessions.
    pub freed: i64,
    /// How many chunks were stored without an embedding.
    pub pending: usize,
}

/// A memory in the stash, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct StashedMemory {
    /// Its id.
    pub id: MemoryId,
    /// Its key.
    pub key: MemoryKey,
    /// Its kind.
    pub kind: Kind,
    /// Its session.
    pub session: Option<SessionId>,
    /// The ordinal of a message in its session.
    pub ordinal: Option<i64>,
    /// Its topic in the stash.
    pub topic: Option<String>,
    /// When it was said or made.
    pub time: Millis,
    /// When it was stashed.
    pub stashed_at: Millis,
    /// When the memory leaves the stash.
    pub expires_at: Option<Millis>,
    /// Whether it never expires.
    pub is_protected: bool,
    /// Whether contexts leave the memory out.
    pub is_held_out: bool,
    /// Whether the memory was given to the stash as a text, not by its id.
    pub is_given: bool,
    /// Why it is in the stash.
    pub cause: StashCause,
    /// The tokens (o200k) of its text.
    pub tokens: i64,
}

/// The memories of the stash with one topic and session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StashGroup {
    /// The topic.
    pub topic: Option<String>,
    /// The session.
    pub session: Option<SessionId>,
    /// How many memories there are.
    pub memories: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// When the last memory of the group was stashed.
    pub last: Millis,
    /// The ids of the memories that were stashed last, the latest first.
    pub ids: Vec<MemoryId>,
}

/// The content of the stash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StashContents {
    /// How many memories the filter admits.
    pub memories: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// How many groups there are.
    pub groups: i64,
    /// A page of the groups. The group that was stashed last is the first.
    pub page: Vec<StashGroup>,
}

/// Which part of the stash to list.
#[derive(Clone, Debug, Default)]
pub struct StashPage {
    /// Conditions on the memories.
    pub filter: Filter,
    /// How many groups to skip.
    pub offset: usize,
    /// The maximum number of groups to return.
    pub groups: usize,
    /// The maximum number of ids that are returned for each group.
    pub ids: usize,
}

/// How many memories left the stash because they expired, or how many would leave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StashExpired {
    /// How many texts are removed. Only texts that were given to the stash are removed; an undo restores them.
    pub removed: i64,
    /// How many memories left the stash but stay stored.
    pub ended: i64,
    /// How many removed texts were restored, because they are not expired by the present clock.
    pub returned: i64,
    /// By how many milliseconds the clock is later than everything in the store. `Some` only if the clock is so far
    /// ahead that it is not trusted, so that nothing was removed.
    pub ahead: Option<Millis>,
}

/// The lines of a context that show one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLine {
    /// The memory.
    pub memory: MemoryKey,
    /// The tokens (o200k) of its lines.
    pub tokens: i64,
    /// The number of the heading above the memory's lines.
    pub heading: i64,
    /// The tokens (o200k) of that heading.
    pub heading_tokens: i64,
}

/// A stashed memory of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StashedPlace {
    /// The memory.
    pub key: MemoryKey,
    /// The ordinal of the memory, if the memory is a message.
    pub ordinal: Option<i64>,
    /// Whether contexts of the session leave the memory out.
    pub is_held_out: bool,
}
