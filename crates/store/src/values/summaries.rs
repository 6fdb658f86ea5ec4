//! Summaries, the queue of summaries that wait for a provider, and the attempts to make them.

use crate::QueueKey;
use tiro_base::memory::{Level, MemoryId, Millis, Provenance};
use tiro_base::scope::SessionId;

/// A summary of a range of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The session whose messages it summarises.
    pub session: SessionId,
    /// The number of the summarised segment; `None` if the summary is of another range or of the whole session.
    pub segment: Option<i64>,
    /// Its level of detail.
    pub level: Level,
    /// The ordinal of the first message of its range.
    pub first: i64,
    /// The ordinal of the last message of its range.
    pub last: i64,
    /// How many messages the summary was made of.
    pub messages: i64,
    /// Its text.
    pub text: String,
    /// Its tokens (o200k).
    pub tokens: i64,
    /// `extractive`, or the name of the provider that wrote the summary.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// The quality of the summary, 0 to 1, as measured by `summarize`.
    pub quality: f64,
    /// The least trusted provenance of the summarised messages.
    pub provenance: Provenance,
    /// The ordinals of the messages from which the summary's sentences come.
    pub cited: Vec<i64>,
    /// The [`source_hash`](crate::source_hash) of the messages that the summary was made of.
    pub source_hash: [u8; 32],
}

/// A summary as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRow {
    /// The id of the summary. Summaries and memories share the space of ids.
    pub id: MemoryId,
    /// The version of the summary among the summaries of the same range and level, from 1.
    pub version: i64,
    /// When it was stored.
    pub made_at: Millis,
    /// The summary itself.
    pub summary: Summary,
}

/// The result of storing a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The summary was stored, under this id.
    Made(MemoryId),
    /// A summary of the same messages, level, provider and model was already there, under this id.
    AlreadyMade(MemoryId),
    /// Messages of the range were forgotten or added since the summary was made, so nothing was stored.
    SourcesChanged,
}

/// The memory that summarises a whole session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationRow {
    /// Its id.
    pub id: MemoryId,
    /// The ordinal of the last message that the memory was made of.
    pub last: i64,
    /// When it was made.
    pub made_at: Millis,
}

/// A summary to make, and the provider that must make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The session whose messages it summarises.
    pub session: SessionId,
    /// Its level of detail.
    pub level: Level,
    /// The ordinal of the first message of the range.
    pub first: i64,
    /// The ordinal of the last message of the range.
    pub last: i64,
    /// The provider's name.
    pub provider: String,
    /// Whether the user asked for it. Entries that the user asked for are taken from the queue first.
    pub asked_by: AskedBy,
}

/// Who asked for a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// The user asked, or an agent for the user.
    User,
    /// The program asked in advance.
    Program,
}

/// An entry taken from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its key.
    pub key: QueueKey,
    /// The summary to make.
    pub wanted: Wanted,
    /// How often it was tried before.
    pub tries: i64,
}

/// How many entries of the queue are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// How many entries wait.
    pub pending: i64,
    /// How many entries a process works on.
    pub processing: i64,
    /// How many entries are done: their summaries were made.
    pub completed: i64,
    /// How many entries were given up.
    pub failed: i64,
}

/// The time that a model took to read and write some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Tokens sent.
    pub input: i64,
    /// Tokens received; 0 if there was no answer.
    pub output: i64,
    /// The time, in milliseconds.
    pub took: i64,
}

/// An attempt to make a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The session whose messages it summarises.
    pub session: SessionId,
    /// Its level of detail.
    pub level: Level,
    /// The ordinal of the first message of the range.
    pub first: i64,
    /// The ordinal of the last message of the range.
    pub last: i64,
    /// The provider's name.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Tokens sent, as the provider counts them.
    pub input_tokens: i64,
    /// Tokens received.
    pub output_tokens: i64,
    /// The cost of the attempt, in millionths of a US dollar.
    pub cost_micros: i64,
    /// How long the attempt took, in milliseconds.
    pub took_ms: i64,
    /// The quality of the answer, 0 to 1; `None` if there was no answer.
    pub quality: Option<f64>,
    /// The error, if the attempt failed.
    pub error: Option<String>,
    /// When it ended.
    pub at: Millis,
}
