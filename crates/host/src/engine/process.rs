//! The data that all users of a process share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OnceCell, watch};

use tiro_base::scope::{ProjectId, TenantId};
use tiro_embed::{Embedder, Model, Models};
use tiro_files::Extractor;
use tiro_store::clock::Clock;

/// The maximum number of callers of one process that have a project open at the same time. Arbitrary: an open store
/// uses a few files and some megabytes of caches, and people work on fewer projects at a time.
pub const MOST_OPEN: usize = 32;

/// The embedding models, the list of open projects, the clock and the state of the end of a process. Engines of several
/// users share this value. So each model is loaded once, and the number of open projects is limited for all users
/// together.
pub(super) struct Process {
    /// The name under which the process takes leases.
    pub name: String,
    /// The folders of models.
    pub models: Models,
    /// The embedders of [`Model::ALL`], in the same order.
    pub embedders: [OnceCell<Arc<Embedder>>; Model::ALL.len()],
    pub opened: Opened,
    pub clock: Arc<Clock>,
    pub ending: Ending,
    pub extractor: Extractor,
    /// The projects on which idle workers work now, each with its tenant and the kind of work. A repository has the same
    /// id for all tenants, but each tenant has a separate store of it.
    working: Mutex<HashSet<(TenantId, ProjectId, Duty)>>,
}

/// The kinds of work that an idle worker does for a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duty {
    /// Following, summarising, embedding and tending.
    Upkeep,
    /// Asking models for summaries. This runs beside all other work.
    Asking,
    /// Exchanging memories with a team's server. This waits for the network, so it runs beside all other work.
    Exchange,
    /// Waiting until a team's server has something new.
    Waiting,
}

/// A worker's right to do one kind of work for a project. The right ends when this value is dropped.
pub struct Working<'a> {
    process: &'a Process,
    work: (TenantId, ProjectId, Duty),
}

impl Process {
    pub fn new(models: Models, random: [u8; 4]) -> Process {
        Process {
            name: format!("{}-{:08x}", std::process::id(), u32::from_ne_bytes(random)),
            models,
            embedders: Default::default(),
            opened: Opened::default(),
            clock: Arc::default(),
            ending: Ending::default(),
            extractor: Extractor::of_this_process(),
            working: Mutex::default(),
        }
    }

    /// Gives the right to do the work `duty` for the project of the tenant. Returns `None` while another worker of this
    /// process does this work.
    pub fn works_on(&self, (tenant, project): (&TenantId, &ProjectId), duty: Duty) -> Option<Working<'_>> {
        let work = (tenant.clone(), project.clone(), duty);
        let is_free = self.working.lock().unwrap_or_else(PoisonError::into_inner).insert(work.clone());
        is_free.then_some(Working { process: self, work })
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.process.working.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.work);
    }
}

/// A caller with an open resource. The caller opens the resource again when it is next needed.
pub trait LetGo: Send + Sync {
    /// Gives up the open resource. It is closed when the last call that uses it ends.
    fn let_go(&self);
}

/// The callers that have a project open. The caller that used its project last is at the end. If a caller was dropped,
/// its project is already closed.
#[derive(Default)]
pub struct Opened(Mutex<Vec<Weak<dyn LetGo>>>);

impl Opened {
    /// Notes that `caller` uses its project now. If more than [`MOST_OPEN`] callers have a project open, the callers
    /// whose last use is longest ago close theirs.
    pub fn used(&self, caller: &Arc<dyn LetGo>) {
        let caller = Arc::downgrade(caller);
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&caller));
        list.push(caller);
        let surplus = list.len().saturating_sub(MOST_OPEN);
        let longest_ago: Vec<Weak<dyn LetGo>> = list.drain(..surplus).collect();
        drop(list);
        longest_ago.iter().filter_map(Weak::upgrade).for_each(|caller| caller.let_go());
    }
}

/// Counts the running pieces of work that are finished before the process ends, because they are paid for. Such work is
/// a request to a provider, together with storing its answer.
#[derive(Default)]
pub struct Ending(watch::Sender<EndingState>);

/// A running piece of such work. It ends when this value is dropped.
pub struct Running<'a>(&'a Ending);

/// The number of running pieces of such work, and whether further pieces may begin.
#[derive(Clone, Copy, Default)]
struct EndingState {
    running: usize,
    is_ending: bool,
}

impl Ending {
    /// Begins a piece of work. Returns `None` once the process is ending.
    pub fn begin(&self) -> Option<Running<'_>> {
        let begins = self.0.send_if_modified(|state| {
            state.running += usize::from(!state.is_ending);
            !state.is_ending
        });
        begins.then(|| Running(self))
    }

    /// Prevents further work from beginning, and returns when no work is running any more.
    pub async fn finish(&self) {
        self.0.send_modify(|state| state.is_ending = true);
        let mut state = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = state.wait_for(|state| state.running == 0).await;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_project_has_one_worker_at_a_time() {
        let process = Process::new(Models::only(std::path::PathBuf::new()), [0; 4]);
        let [one, other] = [1, 2].map(|byte| ProjectId::from_random([byte; 8]));
        let [ana, ben] = ["ana", "ben"].map(TenantId::new);
        let turn = process.works_on((&ana, &one), Duty::Upkeep);
        assert!(turn.is_some() && process.works_on((&ana, &one), Duty::Upkeep).is_none());
        assert!(process.works_on((&ana, &other), Duty::Upkeep).is_some(), "another project has its own");
        assert!(
            process.works_on((&ben, &one), Duty::Upkeep).is_some(),
            "another tenant has another store of it"
        );
        assert!(process.works_on((&ana, &one), Duty::Asking).is_some(), "models are asked beside it");
        drop(turn);
        assert!(process.works_on((&ana, &one), Duty::Upkeep).is_some());
    }

    #[tokio::test]
    async fn the_end_waits_for_what_runs_and_lets_nothing_new_begin() {
        let ending = Ending::default();
        let running = ending.begin().unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), ending.finish()).await.is_err());
        assert!(ending.begin().is_none());
        drop(running);
        ending.finish().await;
    }
}
