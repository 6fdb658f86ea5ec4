//! Where memories live: one file a project, shared by many processes.
//!
//! [`Store`] is the one engine there is, SQLite ([`sqlite`]); what stands here is what callers know of it: the store, and the
//! plain values that it takes and returns. Nothing above this folder knows that the store is SQL.
//!
//! Nothing here knows what a good answer or a good summary is, or which model embeds: it keeps what others made, and
//! removes what was made of something that is gone.

mod keys;
mod sqlite;
pub mod vectors;

pub use keys::{ChunkKey, QueueKey, SessionKey, Version};
pub use sqlite::{
    About, AskedBy, Attempt, BehindRow, CacheStats, CallRow, CameOfRow, Check, ChunkRange, CommitLinks,
    ConversationRow, DenseCandidate, Expired, Flavour, Foreign, ForeignConversation, ForeignDepth,
    ForeignEvidence, ForeignForgotten, ForeignMemory, ForeignPage, ForeignPart, ForeignSession, Forgotten,
    GraphRow, GrownSession, KindCount, LeftSession, LevelCount, LexicalCandidate, MadeRow, Measurement,
    MessageRow, Money, Neighbour, Operation, Origin, Outcome, PendingChunk, Planned, PreparedChunk,
    PreparedMemory, ProjectRow, QueueCounts, Queued, Reach, Receipt, Registry, Reservation, RestoredMemory,
    Saved, Savings, SegmentRow, Selection, SessionRow, ShownMemory, Sizes, SpendLimits, SpendingRow, Spent,
    Stats, Store, SummarisedSegment, Summary, SummaryRow, Vocabulary, Wanted, WriteRow, source_hash,
};
