//! A store that breaks a promise: it returns wrong results and no errors.
//!
//! A handle passes every call on to the handle of a sound engine. The methods that a [`Fault`] changes are in
//! `memories`, `searches`, `derived`, `embedded`, `exchange`, `shared`, `stash` and `threads`. They take precedence over the methods of
//! `Passes` that have the same names.

mod derived;
mod embedded;
mod exchange;
mod fault;
mod lifecycle;
mod members;
mod memories;
mod records;
mod registry;
mod searches;
mod shared;
mod stash;
mod threads;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

pub use self::fault::Fault;
use self::registry::BrokenRegistry;
use super::subject::{Engine, project};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Draft, Level, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{self, AuthorId, Forgets, Scope, SessionId, Sessions, TenantId};
use tiro_base::thread::{ContentHash, Thread, ThreadName};
use tiro_store::methods;
use tiro_store::{
    About, ActivityRow, Attempt, AuthorRow, Before, BehindRow, CacheStats, CallRow, CandidateQuery,
    Candidates, Changes, Check, ChunkKey, ChunkRange, CommitLinks, CommitRow, ContextParts, ContextQuery,
    ConversationRow, Exchange, Expired, ForeignForgotten, ForeignSession, Forgotten, GraphRow, GrownSession,
    Growth, Incoming, LeftSession, LevelCount, LinkedCommit, Measurement, MergeOutcome, MergeRights,
    MessageRow, NewStatement, Operation, Origin, Outcome, Pace, PendingChunk, PreparedChunk, PreparedMemory,
    QueueCounts, QueueKey, Queued, Reach, Receipt, Recorded, Renamed, ReplacementQuery, Replacements, Reset,
    ResetDone, RestoredMemory, Saved, Savings, SegmentRow, Selection, SessionRow, ShownLine, ShownMemory,
    Sizes, SourceState, StashContents, StashExpired, StashPage, StashReceipt, StashedMemory, Stashing, Stats,
    SummarisedSegment, Summary, SummaryRow, ThreadRow, TurnRecord, TurnRow, Wanted, WantedChanges, WriteRow,
};
use tiro_text::words::Term;

/// An engine whose handles have a fault.
pub struct Broken {
    inner: Box<dyn Engine>,
    fault: Fault,
    shared: Arc<Shared>,
}

/// The state that all handles of a broken engine share.
#[derive(Default)]
struct Shared {
    /// The holder of each lease, by the name of the lease.
    holders: Mutex<HashMap<String, String>>,
    /// The entries of the queue that were taken, each with its last holder.
    taken: Mutex<HashMap<QueueKey, (Queued, String)>>,
    /// The entry that was taken last.
    last: Mutex<Option<Queued>>,
    /// The requests for summaries.
    wanted: Mutex<Vec<Wanted>>,
}

/// A faulty handle on the store of a sound engine.
pub struct BrokenStore {
    inner: Arc<dyn tiro_store::Store>,
    fault: Fault,
    shared: Arc<Shared>,
    /// The memories that were saved by this handle.
    own: Mutex<HashSet<MemoryId>>,
    /// The first answer to each question. A fault that returns outdated results repeats it.
    first: Mutex<HashMap<String, Box<dyn Any + Send>>>,
}

impl Broken {
    /// Returns an engine that works like `inner`, but whose handles have the fault.
    pub fn new(inner: Box<dyn Engine>, fault: Fault) -> Broken {
        Broken { inner, fault, shared: Arc::default() }
    }

    fn broken(&self, inner: Arc<dyn tiro_store::Store>) -> BrokenStore {
        let (fault, shared) = (self.fault, self.shared.clone());
        BrokenStore { inner, fault, shared, own: Mutex::default(), first: Mutex::default() }
    }
}

impl Engine for Broken {
    fn open(&self) -> Arc<dyn tiro_store::Store> {
        Arc::new(self.broken(self.inner.open()))
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn tiro_store::Store> {
        Arc::new(self.broken(self.inner.open_copy(copy)))
    }

    fn registry(&self) -> Arc<dyn tiro_store::Registry> {
        Arc::new(BrokenRegistry::new(self.inner.registry(), self.fault))
    }

    fn folder(&self) -> PathBuf {
        self.inner.folder()
    }

    fn holds(&self, text: &str) -> bool {
        self.inner.holds(text)
    }
}

impl BrokenStore {
    /// Returns the scope to pass on, which the fault may change.
    fn scope(&self, scope: &Scope) -> Scope {
        let mut scope = scope.clone();
        match self.fault {
            Fault::IgnoresOwner => scope.tenant = TenantId::new("anyone"),
            Fault::IgnoresReader => scope.reader = AuthorId::new("anyone"),
            Fault::ShowsHidden => scope.shared = scope::Shared::Seen,
            Fault::ForgetsOwnOnly => scope.forgets = Forgets::Own,
            Fault::IgnoresSession => scope.sessions = Sessions::All,
            Fault::IgnoresProject => scope.project = project(),
            _ => {}
        }
        scope
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Returns the answer, in reverse order if the store has the fault `ReordersResults`.
    fn ordered<T>(&self, mut answer: Vec<T>) -> Vec<T> {
        if self.is(Fault::ReordersResults) {
            answer.reverse();
        }
        answer
    }

    /// Returns the limit to pass on, which is larger if that is the fault.
    fn limit(&self, limit: usize) -> usize {
        if self.is(Fault::IgnoresLimit) { limit + 100 } else { limit }
    }

    /// Returns the first answer to the same question if the handle has `fault`, otherwise `answer`.
    fn stale<T: Clone + Send + 'static>(&self, fault: Fault, question: String, answer: T) -> T {
        if !self.is(fault) {
            return answer;
        }
        let mut first = self.first.lock().unwrap();
        let kept = first.entry(question).or_insert_with(|| Box::new(answer));
        kept.downcast_ref::<T>().expect("a question has answers of one type").clone()
    }
}

macro_rules! passes {
    ($($subject:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ })+) => {
        /// Passes every call on to the sound engine.
        #[expect(dead_code, reason = "methods with faults take precedence over those of the same names")]
        #[async_trait]
        trait Passes: Sync {
            fn inner(&self) -> &dyn tiro_store::Store;

            fn passed(&self, scope: &Scope) -> Scope;

            $($(
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                    tiro_store::$subject::$name(self.inner(), &self.passed(scope) $(, $argument)*).await
                }
            )+)+
        }

        /// Functions that call the methods with faults where they exist, otherwise those of [`Passes`]. The calls
        /// are not in the `impl`s of the store's traits, because there they could mean the methods of these traits.
        mod faulty {
            use super::*;

            $($(
                pub async fn $name(
                    store: &BrokenStore, scope: &Scope $(, $argument: $type)*
                ) -> Result<$answer> {
                    store.$name(scope $(, $argument)*).await
                }
            )+)+
        }

        $(
            #[async_trait]
            impl tiro_store::$subject for BrokenStore {$(
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                    faulty::$name(self, scope $(, $argument)*).await
                }
            )+}
        )+
    };
}
methods!(passes);

impl Passes for BrokenStore {
    fn inner(&self) -> &dyn tiro_store::Store {
        self.inner.as_ref()
    }

    fn passed(&self, scope: &Scope) -> Scope {
        self.scope(scope)
    }
}
