//! Reads and stores segments and summaries.

use async_trait::async_trait;

use crate::{
    ConversationRow, LevelCount, Outcome, PreparedMemory, Saved, SegmentRow, SummarisedSegment, Summary,
    SummaryRow,
};
use tiro_base::error::Result;
use tiro_base::memory::{Level, MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};

/// Reads segments and summaries.
#[async_trait]
pub trait ReadSummaries: Send + Sync {
    /// Returns the closed segments of the session, in order.
    async fn segments(&self, scope: &Scope, session: &SessionId) -> Result<Vec<SegmentRow>>;

    /// Returns the result that [`WriteSummaries::save_version`] would return, but stores nothing.
    async fn foresee_version(&self, scope: &Scope, summary: Summary, since: Millis) -> Result<Saved>;

    /// Returns the newest version of each summary of the session, ordered by range. If `level` is given, only summaries
    /// of this level are returned.
    async fn summaries(
        &self,
        scope: &Scope,
        session: &SessionId,
        level: Option<Level>,
    ) -> Result<Vec<SummaryRow>>;

    /// Returns the summary of the scope with the id `id`, or `None`. The summary may be an older version.
    async fn summary(&self, scope: &Scope, id: &MemoryId) -> Result<Option<SummaryRow>>;

    /// Returns the memory that summarises the session, or `None`.
    async fn conversation(&self, scope: &Scope, session: &SessionId) -> Result<Option<ConversationRow>>;

    /// Returns up to `limit` sessions of the scope whose summarising memory must be made again by `now`. The sessions
    /// that have been due for the longest time come first.
    async fn due_conversations(&self, scope: &Scope, now: Millis, limit: usize) -> Result<Vec<SessionId>>;

    /// Returns whether the summary with the topic `topic`, which names a quarter, replaces sessions that were
    /// forgotten because of their age. Such a summary can't be made again.
    async fn quarter_is_retired(&self, scope: &Scope, topic: &str) -> Result<bool>;

    /// Returns, for each level and provider, the number of summaries, their tokens, and the tokens of the summarised
    /// messages.
    async fn summary_counts(&self, scope: &Scope) -> Result<Vec<LevelCount>>;

    /// Returns the closed segments of the owner's sessions that have living messages, in order, with the tokens
    /// of their summaries.
    async fn summarised_segments(&self, scope: &Scope) -> Result<Vec<SummarisedSegment>>;
}

/// Stores segments and summaries.
#[async_trait]
pub trait WriteSummaries: Send + Sync {
    /// Closes segments of the session. A closed segment never changes.
    ///
    /// If the number of a segment is taken, the segment is ignored, because another caller closed it first. The store
    /// ignores `first`, because each segment begins right after the previous one. So a forgotten message that is
    /// restored later also belongs to a segment. At the first gap in the numbers, the rest of the list is ignored. The
    /// store counts messages and tokens itself.
    async fn add_segments(&self, scope: &Scope, session: &SessionId, segments: Vec<SegmentRow>)
    -> Result<()>;

    /// Stores a summary if its range still has the same living messages that the summary was made of. If the range goes
    /// beyond the end of the session, the range is cut there.
    ///
    /// If two callers store a summary with the same messages, level, provider and model, one of them gets
    /// [`Saved::Made`], and the other gets [`Saved::AlreadyMade`].
    async fn save_summary(&self, scope: &Scope, summary: Summary, now: Millis) -> Result<Saved>;

    /// Like [`WriteSummaries::save_summary`]. But if a summary of the same messages is already stored, was made before
    /// `since` and has another text, the new summary is stored as its next version.
    async fn save_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> Result<Saved>;

    /// Stores the memory that summarises its session. The memory was made of the messages up to `last`, whose hash is
    /// `source_hash`. The memory replaces the previous summarising memory of the session, unless that previous memory
    /// was made of more messages or is identical.
    ///
    /// A session never has more than one such memory. Stores nothing if messages up to `last` were forgotten or
    /// added since the memory was made.
    async fn save_conversation(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        last: i64,
        source_hash: [u8; 32],
        now: Millis,
    ) -> Result<Saved>;

    /// Records that the session has newer messages than the memory that summarises it. The memory that summarises the
    /// session must be made again at the time `due`.
    async fn postpone_conversation(&self, scope: &Scope, session: &SessionId, due: Millis) -> Result<()>;

    /// Stores the summary of a quarter, and removes the previous summary of that quarter. The topic of `memory`
    /// names the quarter.
    ///
    /// The summary is removed as soon as a memory that it refers to is forgotten. The summary is not stored if such a
    /// memory is already forgotten.
    async fn save_quarter(&self, scope: &Scope, memory: PreparedMemory, now: Millis) -> Result<Outcome>;
}
