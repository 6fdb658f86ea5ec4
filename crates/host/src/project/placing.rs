//! A handle on a store that decides of everything that is saved who sees it.
//!
//! All writes of a caller pass here: calls of tools, imports, commits and the work of the idle worker. So no way of saving
//! can forget the rule. Callers who may not share memories can't mark them either.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::placement::Placement;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Draft, Level, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{AuthorId, ProjectId, Scope, SessionId, Visibility};
use tiro_base::thread::{ContentHash, Thread, ThreadName};
use tiro_store::clock::Clock;
use tiro_store::{
    About, ActivityRow, Attempt, AuthorRow, Before, BehindRow, CacheStats, CallRow, CandidateQuery,
    Candidates, Changes, Check, ChunkKey, ChunkRange, CommitLinks, CommitRow, ContextParts, ContextQuery,
    ConversationRow, Damage, Exchange, Expired, ForeignForgotten, ForeignSession, Forgotten, GraphRow,
    GrownSession, Growth, Incoming, LeftSession, LevelCount, Lifecycle, LinkedCommit, Measurement, Mended,
    MergeOutcome, MergeRights, MessageRow, NewStatement, Operation, Origin, Outcome, Pace, PendingChunk,
    Placed, PreparedChunk, PreparedMemory, QueueCounts, QueueKey, Queued, Reach, Receipt, Recorded, Renamed,
    ReplacementQuery, Replacements, Reset, ResetDone, RestoredMemory, Saved, Savings, SegmentRow, Selection,
    SessionRow, ShownLine, ShownMemory, Sizes, SourceState, StashContents, StashExpired, StashPage,
    StashReceipt, StashedMemory, Stashing, Stats, Store, SummarisedSegment, Summary, SummaryRow, ThreadRow,
    TurnRecord, TurnRow, Upkeep, Wanted, WantedChanges, WriteRow, methods,
};
use tiro_text::words::Term;

/// A handle on the store `inner` that places what is saved.
pub(super) struct Placing {
    inner: Arc<dyn Store>,
    placement: Placement,
}

impl Placing {
    /// Returns `store` with the rule `placement`.
    pub(super) fn over(store: &Arc<dyn Store>, placement: Placement) -> Arc<dyn Store> {
        match placement {
            Placement::Everyone => Arc::clone(store),
            placement => Arc::new(Placing { inner: Arc::clone(store), placement }),
        }
    }

    fn place_memory(&self, memory: &mut PreparedMemory) {
        memory.draft.visibility = self.placement.of(&memory.draft);
    }

    async fn save_reporting(
        &self,
        scope: &Scope,
        mut memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Receipt> {
        memories.iter_mut().for_each(|memory| self.place_memory(memory));
        self.inner.save_reporting(scope, memories, now, on_batch).await
    }

    async fn record_turn(&self, scope: &Scope, name: &ThreadName, mut turn: TurnRecord) -> Result<Recorded> {
        turn.memories.iter_mut().for_each(|memory| self.place_memory(memory));
        self.inner.record_turn(scope, name, turn).await
    }

    async fn restore_sessions(&self, scope: &Scope, mut sessions: Vec<ForeignSession>) -> Result<()> {
        for session in &mut sessions {
            session.origin.visibility = self.placement.of_session(session.origin.visibility);
        }
        self.inner.restore_sessions(scope, sessions).await
    }

    async fn restore(
        &self,
        scope: &Scope,
        mut restored: Vec<RestoredMemory>,
        now: Millis,
    ) -> Result<Receipt> {
        for restored in &mut restored {
            let draft = &mut restored.memory.draft;
            draft.visibility = self.placement.of_restored(draft.kind, draft.visibility);
        }
        self.inner.restore(scope, restored, now).await
    }

    async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> Result<Vec<MemoryId>> {
        let scope = if self.placement == Placement::Alone { &scope.hidden() } else { scope };
        self.inner.mark(scope, ids, marked, importance).await
    }

    async fn describe_session(&self, scope: &Scope, session: &SessionId, mut origin: Origin) -> Result<()> {
        origin.visibility = self.placement.of_session(origin.visibility);
        self.inner.describe_session(scope, session, origin).await
    }

    /// Nothing that is given to the stash is shared, and who may not share memories stashes only their own.
    async fn stash(&self, scope: &Scope, mut stashing: Stashing, now: Millis) -> Result<StashReceipt> {
        for memory in &mut stashing.given {
            memory.draft.visibility = Some(Visibility::Private);
        }
        let scope = if self.placement == Placement::Alone { &scope.hidden() } else { scope };
        self.inner.stash(scope, stashing, now).await
    }

    async fn unstash(&self, scope: &Scope, ids: &[MemoryId], keep: bool) -> Result<Vec<MemoryId>> {
        let scope = if self.placement == Placement::Alone { &scope.hidden() } else { scope };
        self.inner.unstash(scope, ids, keep).await
    }
}

macro_rules! passes {
    ($($subject:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ })+) => {
        /// Passes every call on to the inner store.
        #[expect(dead_code, reason = "methods that place something take precedence over those of the same names")]
        #[async_trait]
        trait Passes: Sync {
            fn inner(&self) -> &dyn Store;

            $($(
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                    tiro_store::$subject::$name(self.inner(), scope $(, $argument)*).await
                }
            )+)+
        }

        /// Functions that call the methods that place something where they exist, otherwise those of [`Passes`]. The
        /// calls are not in the `impl`s of the store's traits, because there they could mean the methods of these
        /// traits.
        mod placed {
            use super::*;

            $($(
                pub(super) async fn $name(
                    store: &Placing, scope: &Scope $(, $argument: $type)*
                ) -> Result<$answer> {
                    store.$name(scope $(, $argument)*).await
                }
            )+)+
        }

        $(
            #[async_trait]
            impl tiro_store::$subject for Placing {$(
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                    placed::$name(self, scope $(, $argument)*).await
                }
            )+}
        )+
    };
}
methods!(passes);

impl Passes for Placing {
    fn inner(&self) -> &dyn Store {
        self.inner.as_ref()
    }
}

impl Placed for Placing {
    fn project(&self) -> &ProjectId {
        self.inner.project()
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

#[async_trait]
impl Lifecycle for Placing {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn is_current(&self) -> bool {
        self.inner.is_current()
    }

    fn leave(&self) -> bool {
        self.inner.leave()
    }

    fn close(&self, patience: Duration) -> bool {
        self.inner.close(patience)
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()> {
        self.inner.await_turn(scope, patience).await
    }

    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool> {
        self.inner.tend(scope, work).await
    }

    async fn mend(&self, scope: &Scope) -> Result<Mended> {
        self.inner.mend(scope).await
    }

    async fn shrink(&self, scope: &Scope) -> Result<u64> {
        self.inner.shrink(scope).await
    }

    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        self.inner.back_up(scope, target).await
    }

    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()> {
        self.inner.copy_whole(scope, target).await
    }
}
