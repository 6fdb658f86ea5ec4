//! Implements the traits of a store by calling methods of the same names, which are in the files of their subjects.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use crate::SqliteStore;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Draft, Level, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{AuthorId, ProjectId, Scope, SessionId};
use tiro_base::thread::{ContentHash, Thread, ThreadName};
use tiro_store::clock::Clock;
use tiro_store::{
    About, ActivityRow, Attempt, AuthorRow, Before, BehindRow, CacheStats, CallRow, CandidateQuery,
    Candidates, Changes, Check, ChunkKey, ChunkRange, CommitLinks, CommitRow, ContextParts, ContextQuery,
    ConversationRow, Damage, Exchange, Expired, ForeignForgotten, ForeignSession, Forgotten, GraphRow,
    GrownSession, Growth, Incoming, LeftSession, LevelCount, LinkedCommit, Measurement, Mended, MergeOutcome,
    MergeRights, MessageRow, NewStatement, Operation, Origin, Outcome, Pace, PendingChunk, PreparedChunk,
    PreparedMemory, QueueCounts, QueueKey, Queued, Reach, Receipt, Recorded, Renamed, ReplacementQuery,
    Replacements, Reset, ResetDone, RestoredMemory, Saved, Savings, SegmentRow, Selection, SessionRow,
    ShownLine, ShownMemory, Sizes, SourceState, StashContents, StashExpired, StashPage, StashReceipt,
    StashedMemory, Stashing, Stats, SummarisedSegment, Summary, SummaryRow, ThreadRow, TurnRecord, TurnRow,
    Upkeep, Wanted, WantedChanges, WriteRow, methods,
};
use tiro_text::words::Term;

/// The traits are not imported here, so that `SqliteStore::$name` means the method in the file of its subject. If that
/// method is missing, the compiler reports it; otherwise the method of the trait would call itself.
macro_rules! delegate {
    ($($subject:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ })+) => {$(
        #[async_trait]
        impl tiro_store::$subject for SqliteStore {$(
            async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                SqliteStore::$name(self, scope $(, $argument)*).await
            }
        )+}
    )+};
}
methods!(delegate);

impl tiro_store::Placed for SqliteStore {
    fn project(&self) -> &ProjectId {
        SqliteStore::project(self)
    }

    fn place(&self) -> String {
        self.path().display().to_string()
    }
}

#[async_trait]
impl tiro_store::Lifecycle for SqliteStore {
    fn identity(&self) -> String {
        self.inner.store_file.identity()
    }

    fn is_current(&self) -> bool {
        SqliteStore::is_current(self)
    }

    fn leave(&self) -> bool {
        SqliteStore::leave(self)
    }

    fn close(&self, patience: Duration) -> bool {
        SqliteStore::close(self, patience)
    }

    fn clock(&self) -> &Clock {
        SqliteStore::clock(self)
    }

    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()> {
        SqliteStore::await_turn(self, scope, patience).await
    }

    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool> {
        /// The number of sums that a step computes, which takes some tens of milliseconds. Arbitrary.
        const SUMS_AT_ONCE: usize = 1_000;
        match work {
            Upkeep::Index => self.reindex_text(scope).await,
            Upkeep::Merge => self.merge_text(scope).await,
            Upkeep::Sums => Ok(self.sum_up(scope, SUMS_AT_ONCE).await? > 0),
            Upkeep::Release => {
                self.close_idle_readers();
                Ok(false)
            }
            Upkeep::Rest => self.rest(scope).await.map(|()| false),
        }
    }

    async fn mend(&self, scope: &Scope) -> Result<Mended> {
        SqliteStore::mend(self, scope).await
    }

    async fn shrink(&self, scope: &Scope) -> Result<u64> {
        self.vacuum(scope).await
    }

    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        SqliteStore::back_up(self, scope, target).await
    }

    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()> {
        SqliteStore::copy_whole(self, scope, target).await
    }
}
