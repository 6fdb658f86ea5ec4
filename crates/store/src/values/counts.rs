//! Counts and sizes of a store.

use super::SegmentRow;
use crate::SessionKey;
use tiro_base::memory::Level;

/// The number and size of the living memories of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The word for the kind.
    pub kind: String,
    /// How many living memories are of the kind.
    pub memories: i64,
    /// The size of the memories' texts, in bytes.
    pub bytes: i64,
    /// How many tokens the memories' texts have (o200k).
    pub tokens: i64,
}

/// How a store grew: what it has of each day. A day is the number of the day since 1970, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The living memories by the day of their time and by kind, in this order.
    pub memories: Vec<DayCount>,
    /// How many sessions began on each day, in the order of the days. A session begins with its first living memory.
    pub sessions: Vec<(i64, i64)>,
}

/// The living memories of one kind and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayCount {
    /// The day.
    pub day: i64,
    /// The word for the kind.
    pub kind: String,
    /// How many living memories there are.
    pub memories: i64,
    /// How many tokens their texts have (o200k).
    pub tokens: i64,
}

/// Counts and sizes of what a store holds for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The living memories of each kind, in the order of the kinds' words.
    pub kinds: Vec<KindCount>,
    /// How many sessions have at least one living memory.
    pub sessions: i64,
    /// How many chunks have an embedding.
    pub embedded: i64,
    /// How many chunks wait for an embedding.
    pub pending: i64,
    /// How many memories are forgotten but not purged; an undo can restore them.
    pub tombstoned: i64,
    /// The size of the file and its write-ahead log, in bytes.
    pub file_bytes: u64,
    /// How many living commits were made since the first session began.
    pub commits_since: i64,
    /// How many of the commits in `commits_since` are linked to a session.
    pub commits_linked: i64,
    /// How many sessions changed a file that a commit also changed within the next month.
    pub sessions_committed: i64,
    /// How many of the sessions in `sessions_committed` are linked to a commit.
    pub sessions_linked: i64,
    /// The number of tool outputs that were the same as a stored output. Such an output is counted, but not stored
    /// again.
    pub repeats: i64,
    /// How many living memories were stored in the last seven days.
    pub stored_lately: i64,
}

/// How much a store remembers. The pointer, a line that tells a new session about the store, shows these
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// How many living commits there are.
    pub commits: i64,
    /// How many living messages and summaries there are.
    pub messages: i64,
    /// How many living memories of other kinds there are.
    pub notes: i64,
    /// How many sessions there are.
    pub sessions: i64,
    /// How many living memories are in the stash.
    pub stashed: i64,
}

/// A bucket of a tool's histogram of durations, with the number of calls that fell into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// The tool's name.
    pub name: String,
    /// The number of the bucket. Bucket 0 begins at one microsecond. The duration doubles every four buckets.
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
    /// How many contexts were sent.
    pub answers: i64,
    /// The tokens that the whole conversations would have taken in place of the contexts. A conversation counts once
    /// for each of its contexts.
    pub whole: i64,
    /// The tokens of the contexts.
    pub sent: i64,
}

impl Savings {
    /// The names of the counters, in the order of the fields.
    pub const COUNTERS: [&str; 3] = ["contexts", "context tokens whole", "context tokens sent"];

    /// Adds the savings `more`.
    pub fn add(&mut self, more: Savings) {
        self.answers += more.answers;
        self.whole = self.whole.saturating_add(more.whole);
        self.sent = self.sent.saturating_add(more.sent);
    }
}

/// A closed segment, and how many tokens its summaries have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummarisedSegment {
    /// Its session.
    pub session: SessionKey,
    /// The segment.
    pub segment: SegmentRow,
    /// The tokens of the segment's summary at each level, the shortest level first; `None` for a level without a
    /// summary.
    pub summaries: [Option<i64>; 3],
}

/// Summaries of one level by one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCount {
    /// The level.
    pub level: Level,
    /// The provider that made the summaries, or `extractive`.
    pub provider: String,
    /// How many ranges of messages have such a summary.
    pub summaries: i64,
    /// How many tokens the summaries have (o200k).
    pub tokens: i64,
    /// How many tokens the summarised messages have.
    pub source_tokens: i64,
}

/// The size of the cache of answers, with its hits and misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// How many answers are in the cache.
    pub entries: i64,
    /// The size of the cached answers, in bytes.
    pub bytes: i64,
    /// How often the cache had the answer.
    pub hits: i64,
    /// How often the cache didn't have the answer.
    pub misses: i64,
}

/// The faults that a check of a store found. For a sound store, every field is empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// The faults that SQLite's own integrity check reports.
    pub integrity: Vec<String>,
    /// The faults that the text index's own check reports.
    pub text_index: Vec<String>,
    /// How many chunks have no embedding and don't wait for one.
    pub chunks_without_vector: i64,
    /// How many chunks have no entry in the text index, plus how many entries have no chunk.
    pub chunks_unindexed: i64,
    /// How many counts that are kept beside the memories differ from what they count.
    pub counts_off: i64,
    /// The damage that was found.
    pub damage: Damage,
}

/// The rows of a file that SQLite can read, but that are not as they were stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The ids of memories whose text or whose other columns are not as they were stored.
    pub memories: Vec<String>,
    /// How many vectors are not as they were stored.
    pub vectors: usize,
    /// How many texts of threads, such as copies of files, can't be read or are not as they were stored.
    pub copies: usize,
    /// How many other rows are not as they were stored, such as rows of sessions, summaries and turns of threads.
    pub rows: usize,
}

/// The result of a repair: damaged vectors and index rows that are made again from sound texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// How many vectors were removed. Their chunks wait for new vectors.
    pub vectors: usize,
    /// How many chunks were missing from the text index and were indexed.
    pub rows: usize,
    /// How many counts were wrong and were counted anew.
    pub counts: usize,
    /// How many damaged vectors stay, because their texts are damaged too.
    pub left: usize,
}

/// Counts of the content of a file of memories, for all owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// How many memories there are, including forgotten ones.
    pub memories: u64,
    /// How many threads with assistants there are.
    pub threads: u64,
    /// The damage that was found.
    pub damage: Damage,
}

impl Check {
    /// Returns whether no fault was found.
    pub fn is_sound(&self) -> bool {
        *self == Check::default()
    }
}
