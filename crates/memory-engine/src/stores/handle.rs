//! What a store does, by the names of the traits. The methods are in the files of their subjects.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;

use crate::MemoryStore;
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

/// The traits are not imported here: `MemoryStore::$name` then means the method of that name in the file of its subject, and
/// the compiler reports one that is missing, instead of a method that calls itself.
macro_rules! delegate {
    ($($subject:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ })+) => {$(
        #[async_trait]
        impl tiro_store::$subject for MemoryStore {$(
            async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                MemoryStore::$name(self, scope $(, $argument)*).await
            }
        )+}
    )+};
}
methods!(delegate);

impl tiro_store::Placed for MemoryStore {
    fn project(&self) -> &ProjectId {
        &self.project
    }

    fn place(&self) -> String {
        "in the memory of this process".to_owned()
    }
}

/// Nobody can replace or remove the data, and no work is left for later.
#[async_trait]
impl tiro_store::Lifecycle for MemoryStore {
    fn identity(&self) -> String {
        format!("{:p}", Arc::as_ptr(&self.state))
    }

    fn is_current(&self) -> bool {
        !self.has_left.load(Ordering::Relaxed)
    }

    fn leave(&self) -> bool {
        self.has_left.store(true, Ordering::Relaxed);
        true
    }

    fn close(&self, _patience: Duration) -> bool {
        self.leave()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    async fn await_turn(&self, scope: &Scope, _patience: Duration) -> Result<()> {
        self.admit(scope)
    }

    async fn tend(&self, scope: &Scope, _work: Upkeep) -> Result<bool> {
        self.admit(scope).map(|()| false)
    }

    async fn mend(&self, scope: &Scope) -> Result<Mended> {
        self.admit(scope).map(|()| Mended::default())
    }

    async fn shrink(&self, scope: &Scope) -> Result<u64> {
        self.admit(scope).map(|()| 0)
    }

    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        MemoryStore::back_up(self, scope, target).await
    }

    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()> {
        MemoryStore::copy_whole(self, scope, target).await
    }
}
