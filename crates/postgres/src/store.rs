//! Implements the traits of a store by calling methods of the same names, which are in the files of their subjects.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::PostgresStore;
use crate::stores::without_files;
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

/// The traits are not imported here, so that `PostgresStore::$name` means the method in the file of its subject. If that
/// method is missing, the compiler reports it; otherwise the method of the trait would call itself.
macro_rules! delegate {
    ($($subject:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ })+) => {$(
        #[async_trait]
        impl tiro_store::$subject for PostgresStore {$(
            async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                PostgresStore::$name(self, scope $(, $argument)*).await
            }
        )+}
    )+};
}
methods!(delegate);

impl tiro_store::Placed for PostgresStore {
    fn project(&self) -> &ProjectId {
        PostgresStore::project(self)
    }

    fn place(&self) -> String {
        self.database().place().to_owned()
    }
}

#[async_trait]
impl tiro_store::Lifecycle for PostgresStore {
    fn identity(&self) -> String {
        format!("{} of {}", self.project().as_str(), self.database().place())
    }

    fn is_current(&self) -> bool {
        true
    }

    fn leave(&self) -> bool {
        PostgresStore::leave(self)
    }

    fn close(&self, patience: Duration) -> bool {
        /// The pause between two looks.
        const LOOK_AGAIN: Duration = Duration::from_millis(5);
        let began = Instant::now();
        while !PostgresStore::leave(self) && began.elapsed() < patience {
            std::thread::sleep(LOOK_AGAIN);
        }
        PostgresStore::leave(self)
    }

    fn clock(&self) -> &Clock {
        PostgresStore::clock(self)
    }

    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()> {
        PostgresStore::await_turn(self, scope, patience).await
    }

    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool> {
        self.admit(scope)?;
        // PostgreSQL tends its files itself.
        match work {
            Upkeep::Index | Upkeep::Merge | Upkeep::Sums | Upkeep::Release | Upkeep::Rest => Ok(false),
        }
    }

    async fn mend(&self, scope: &Scope) -> Result<Mended> {
        self.admit(scope)?;
        // Pages have checksums, and the server finds damage itself.
        Ok(Mended::default())
    }

    async fn shrink(&self, scope: &Scope) -> Result<u64> {
        self.admit(scope)?;
        Ok(0)
    }

    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        PostgresStore::back_up(self, scope, target).await
    }

    async fn copy_whole(&self, scope: &Scope, _target: &Path) -> Result<()> {
        self.admit(scope)?;
        Err(without_files())
    }
}

impl PostgresStore {
    /// Closes the connections that no call uses. Returns whether none is open any more. A later call opens new ones.
    fn leave(&self) -> bool {
        self.database().close();
        self.database().is_idle()
    }
}
