//! The plain values that a store takes and returns. The values don't depend on the storage engine.

mod counts;
mod foreign;
mod forget;
mod found;
mod ledger;
mod links;
mod projects;
mod sessions;
mod stash;
mod summaries;
mod superseded;
mod threads;
mod write;

pub use counts::{
    CacheStats, Check, Contents, Damage, DayCount, Growth, KindCount, LevelCount, Measurement, Mended,
    Savings, Sizes, Stats, SummarisedSegment,
};
pub use foreign::{
    ForeignCall, ForeignConversation, ForeignDepth, ForeignEvidence, ForeignForgotten, ForeignMemory,
    ForeignPage, ForeignPart, ForeignSession, ForeignStash, ForeignWrite, RestoredMemory,
};
pub use forget::{Expired, Forgotten, LeftSession, Operation, Reach, Selection};
pub use found::{
    AuthorRow, Before, CandidateQuery, Candidates, ChunkRange, DenseCandidate, LexicalCandidate, Neighbour,
    Renamed, ReplacementQuery, Replacements, ShownMemory, Vocabulary,
};
pub use ledger::{
    Matter, Parcel, Planned, Purpose, Reservation, SentFilter, SentRow, Sources, SpendLimits, SpendingRow,
    Spent,
};
pub use links::{BehindRow, CallRow, CommitLinks, CommitRow, GraphRow, LinkedCommit, WriteRow};
pub use projects::{Flavour, ProjectRow};
pub use sessions::{
    About, ActivityRow, ContextParts, ContextQuery, GrownSession, HEADLESS, MessageRow, Origin, QUARTER_HOUR,
    SegmentRow, SessionRow, SourceState, source_hash,
};
pub use stash::{
    ShownLine, StashCause, StashContents, StashExpired, StashGroup, StashPage, StashReceipt, StashedMemory,
    StashedPlace, Stashing,
};
pub use summaries::{
    AskedBy, Attempt, ConversationRow, Pace, QueueCounts, Queued, Saved, Summary, SummaryRow, Wanted,
};
pub use superseded::{NewStatement, Statement, Superseded};
pub use threads::{Exchange, Recorded, Reset, ResetDone, ThreadRow, TurnRecord, TurnRow};
pub use write::{Outcome, PendingChunk, PreparedChunk, PreparedMemory, Receipt};
