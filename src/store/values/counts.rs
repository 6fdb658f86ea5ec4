//! Counts and sizes of what a store holds.

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

/// What a store holds for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Living memories by kind, by the kind's word.
    pub kinds: Vec<KindCount>,
    /// Sessions with at least one living memory.
    pub sessions: i64,
    /// Chunks with an embedding.
    pub embedded: i64,
    /// Chunks that wait for one.
    pub pending: i64,
    /// Memories that are forgotten and can be brought back.
    pub tombstoned: i64,
    /// Bytes of the file and its write-ahead log.
    pub file_bytes: u64,
    /// Living commits made since the first session began.
    pub commits_since: i64,
    /// Those of them that have a session behind them.
    pub commits_linked: i64,
    /// Sessions that changed a file which was committed within a month.
    pub sessions_committed: i64,
    /// Those of them that a commit is linked to.
    pub sessions_linked: i64,
    /// Outputs that came again and are only counted.
    pub repeats: i64,
    /// Living memories stored in the last seven days.
    pub stored_lately: i64,
}

/// How much a store remembers, as a session is told when it begins.
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

/// How often something took about so long.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// What was measured: a tool's name.
    pub name: String,
    /// How long it took: a quarter of a doubling, from one microsecond on.
    pub bucket: u32,
    /// How often.
    pub count: u64,
}

impl Measurement {
    /// Returns one that took `micros` microseconds.
    pub fn of(name: &str, micros: u64) -> Measurement {
        let bucket = ((micros.max(1) as f64).log2() * 4.0) as u32;
        Measurement { name: name.to_owned(), bucket, count: 1 }
    }

    /// Returns the middle of the bucket, in milliseconds.
    pub fn millis(&self) -> f64 {
        ((f64::from(self.bucket) + 0.5) / 4.0).exp2() / 1000.0
    }
}

/// What contexts of conversations were sent in the place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Contexts that were answered.
    pub answers: i64,
    /// Tokens that the conversations had, one for each answer.
    pub whole: i64,
    /// Tokens of the answers.
    pub sent: i64,
}

impl Savings {
    /// What [`Savings`] is counted under, in the order of its fields.
    pub(in crate::store) const COUNTERS: [&str; 3] =
        ["contexts", "context tokens whole", "context tokens sent"];

    /// Adds what others saved.
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
    /// Who made them.
    pub provider: String,
    /// How many, each range once.
    pub summaries: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The tokens of the messages they stand for.
    pub source_tokens: i64,
}

/// What the cache holds, and how often it had what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Answers it holds.
    pub entries: i64,
    /// Their bytes.
    pub bytes: i64,
    /// How often it had the answer.
    pub hits: i64,
    /// How often not.
    pub misses: i64,
}

/// What a check of the file found; everything empty or equal is sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// What SQLite's own integrity check complains of.
    pub integrity: Vec<String>,
    /// What the text index's own check complains of.
    pub text_index: Vec<String>,
    /// Chunks that are neither embedded nor waiting.
    pub chunks_without_vector: i64,
    /// Chunks that the text index lacks, or holds without a chunk.
    pub chunks_unindexed: i64,
}

impl Check {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        *self == Check::default()
    }
}
