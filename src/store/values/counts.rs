//! Counts and sizes of a store.

use super::SegmentRow;
use crate::memory::Level;
use crate::store::SessionKey;

/// The number and size of the living memories of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind's word.
    pub kind: String,
    /// How many living memories are of the kind.
    pub memories: i64,
    /// Bytes of their texts.
    pub bytes: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// Counts and sizes of what a store holds for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The living memories of each kind, in the order of the kinds' words.
    pub kinds: Vec<KindCount>,
    /// Sessions with at least one living memory.
    pub sessions: i64,
    /// Chunks with an embedding.
    pub embedded: i64,
    /// Chunks that wait for an embedding.
    pub pending: i64,
    /// Memories that are forgotten but not purged; an undo can restore them.
    pub tombstoned: i64,
    /// Bytes of the file and its write-ahead log.
    pub file_bytes: u64,
    /// Living commits made since the first session began.
    pub commits_since: i64,
    /// How many of the commits in `commits_since` are linked to a session.
    pub commits_linked: i64,
    /// Sessions that changed a file which a commit then changed within a month.
    pub sessions_committed: i64,
    /// How many of the sessions in `sessions_committed` are linked to a commit.
    pub sessions_linked: i64,
    /// How often an output that is already stored came again. These outputs are counted, but not stored again.
    pub repeats: i64,
    /// Living memories stored in the last seven days.
    pub stored_lately: i64,
}

/// How much a store remembers, for the pointer: the line that tells a new session about it.
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

/// How many calls of a tool took about the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// The tool's name.
    pub name: String,
    /// The number of the bucket of durations. Bucket 0 begins at one microsecond, and every four buckets the
    /// duration doubles.
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

/// Tokens that were saved because assembled contexts were sent instead of whole conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Contexts that were sent.
    pub answers: i64,
    /// Tokens of the whole conversations in whose place contexts were sent. A conversation counts once for each
    /// of its contexts.
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
    /// The tokens of its summary at each level, the shortest level first; `None` for a level without a summary.
    pub summaries: [Option<i64>; 3],
}

/// Summaries of one level by one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCount {
    /// The level.
    pub level: Level,
    /// The provider that made them, or `extractive`.
    pub provider: String,
    /// How many ranges of messages have such a summary.
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
    /// How often the cache didn't have the answer.
    pub misses: i64,
}

/// The faults that a check of a store found. If the store is sound, every field is empty or zero.
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
