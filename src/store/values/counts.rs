//! Counts and sizes of a store.

use super::SegmentRow;
use crate::memory::Level;
use crate::store::SessionKey;

/// Living memories of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind's word.
    pub kind: String,
    /// How many.
    pub memories: i64,
    /// Bytes of their texts.
    pub bytes: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// The amounts that a store holds for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Living memories by kind, by the kind's word.
    pub kinds: Vec<KindCount>,
    /// Sessions with at least one living memory.
    pub sessions: i64,
    /// Chunks with an embedding.
    pub embedded: i64,
    /// Chunks that wait for an embedding.
    pub pending: i64,
    /// Forgotten memories, which an undo brings back.
    pub tombstoned: i64,
    /// Bytes of the file and its write-ahead log.
    pub file_bytes: u64,
    /// Living commits made since the first session began.
    pub commits_since: i64,
    /// Those of them that are linked to a session.
    pub commits_linked: i64,
    /// Sessions that changed a file which a commit changed within the next month.
    pub sessions_committed: i64,
    /// Those of them that are linked to a commit.
    pub sessions_linked: i64,
    /// Repeated outputs, which are counted and not stored again.
    pub repeats: i64,
    /// Living memories stored in the last seven days.
    pub stored_lately: i64,
}

/// How much a store remembers, for the pointer that a new session gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Living commits.
    pub commits: i64,
    /// Living messages and summaries.
    pub messages: i64,
    /// Living memories of other kinds.
    pub notes: i64,
    /// Sessions.
    pub sessions: i64,
}

/// How often a tool's calls took about the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// The tool's name.
    pub name: String,
    /// The bucket of durations: each is a quarter of a doubling wide, from one microsecond on.
    pub bucket: u32,
    /// How many calls fell into the bucket.
    pub count: u64,
}

impl Measurement {
    /// Returns the measurement of one call that took `micros` microseconds.
    pub fn of(name: &str, micros: u64) -> Measurement {
        let bucket = ((micros.max(1) as f64).log2() * 4.0) as u32;
        Measurement { name: name.to_owned(), bucket, count: 1 }
    }

    /// Returns the middle of the bucket, in milliseconds.
    pub fn millis(&self) -> f64 {
        ((f64::from(self.bucket) + 0.5) / 4.0).exp2() / 1000.0
    }
}

/// Tokens that contexts saved: assembled contexts are sent instead of whole conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Contexts that were sent.
    pub answers: i64,
    /// Tokens of the whole conversations, each counted once for each context.
    pub whole: i64,
    /// Tokens of the contexts.
    pub sent: i64,
}

impl Savings {
    /// The names of the counters, in the order of the fields.
    pub(in crate::store) const COUNTERS: [&str; 3] =
        ["contexts", "context tokens whole", "context tokens sent"];

    /// Adds the savings `more`.
    pub fn add(&mut self, more: Savings) {
        self.answers += more.answers;
        self.whole = self.whole.saturating_add(more.whole);
        self.sent = self.sent.saturating_add(more.sent);
    }
}

/// A closed segment, and the tokens of its summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummarisedSegment {
    /// Its session.
    pub session: SessionKey,
    /// The segment.
    pub segment: SegmentRow,
    /// The tokens of its summary at each level, the shortest first; `None` where there is none.
    pub summaries: [Option<i64>; 3],
}

/// Summaries of one level by one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCount {
    /// The level.
    pub level: Level,
    /// The provider that made them, or `extractive`.
    pub provider: String,
    /// How many ranges have one.
    pub summaries: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The tokens of the messages in those ranges.
    pub source_tokens: i64,
}

/// The size of the cache of answers, with its hits and misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Answers in the cache.
    pub entries: i64,
    /// Their bytes.
    pub bytes: i64,
    /// How often the cache had the answer.
    pub hits: i64,
    /// How often it didn't.
    pub misses: i64,
}

/// The faults that a check of a store found; empty and zero where it is sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// The faults that SQLite's own integrity check reports.
    pub integrity: Vec<String>,
    /// The faults that the text index's own check reports.
    pub text_index: Vec<String>,
    /// Chunks that have no embedding and don't wait for one.
    pub chunks_without_vector: i64,
    /// Chunks without an entry in the text index, and entries without a chunk.
    pub chunks_unindexed: i64,
}

impl Check {
    /// Returns whether no fault was found.
    pub fn is_sound(&self) -> bool {
        *self == Check::default()
    }
}
