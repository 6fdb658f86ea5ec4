//! Summaries, the queue of those that wait for a provider, and what trying them came to.

use crate::memory::{Level, MemoryId, Millis, Provenance};
use crate::scope::SessionId;
use crate::store::QueueKey;

/// A summary of a range of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Whose messages it sums up.
    pub session: SessionId,
    /// The segment; `None` for another range, or the session.
    pub segment: Option<i64>,
    /// How much it says.
    pub level: Level,
    /// The ordinal its range begins with.
    pub first: i64,
    /// The ordinal its range ends with.
    pub last: i64,
    /// How many messages it was made of.
    pub messages: i64,
    /// What it says.
    pub text: String,
    /// Its tokens (o200k).
    pub tokens: i64,
    /// `extractive`, or the name of the provider that wrote it.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// How much it keeps of what can be kept at its length, 0 to 1.
    pub quality: f64,
    /// The lowest trust of what it was made of.
    pub provenance: Provenance,
    /// The ordinals its sentences come from.
    pub cited: Vec<i64>,
    /// Which messages it was made of, as [`source_hash`](crate::store::source_hash) has it.
    pub source_hash: [u8; 32],
}

/// A summary as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// Its id; summaries and memories share the space of ids.
    pub id: MemoryId,
    /// Which of the summaries of its range and level it is, from 1.
    pub version: i64,
    /// When it was stored.
    pub made_at: Millis,
    /// What it says, and of what.
    pub summary: Summary,
}

/// What became of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is stored now.
    Made(MemoryId),
    /// One of the same messages, level, provider and model was there.
    AlreadyMade(MemoryId),
    /// Its messages aren't all there any more, or others came between; nothing was stored.
    SourcesChanged,
}

/// The memory that stands for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// Its id.
    pub id: MemoryId,
    /// The ordinal of the last message it was made of.
    pub last: i64,
    /// When it was made.
    pub made_at: Millis,
}

/// What to summarise, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose messages.
    pub session: SessionId,
    /// How much it is to say.
    pub level: Level,
    /// The ordinal the range begins with.
    pub first: i64,
    /// The ordinal the range ends with.
    pub last: i64,
    /// The provider's name.
    pub provider: String,
    /// Who wants it: what the user asked for comes first.
    pub asked_by: AskedBy,
}

/// Who wants a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// The user, or an agent for one.
    User,
    /// Nobody yet: it is made ahead.
    Nobody,
}

/// An entry taken from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its key.
    pub seq: QueueKey,
    /// What to make.
    pub wanted: Wanted,
    /// How often it was tried before.
    pub tries: i64,
}

/// How many entries of the queue are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Waiting.
    pub pending: i64,
    /// Taken by a process.
    pub processing: i64,
    /// Made.
    pub completed: i64,
    /// Given up.
    pub failed: i64,
}

/// One try at a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Whose messages.
    pub session: SessionId,
    /// How much it was to say.
    pub level: Level,
    /// The ordinal the range begins with.
    pub first: i64,
    /// The ordinal the range ends with.
    pub last: i64,
    /// The provider's name.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Tokens sent, as the provider counts them.
    pub input_tokens: i64,
    /// Tokens received.
    pub output_tokens: i64,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: i64,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// The quality of what came back, 0 to 1, where something did.
    pub quality: Option<f64>,
    /// What went wrong.
    pub error: Option<String>,
    /// When.
    pub at: Millis,
}
