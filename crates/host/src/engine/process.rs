//! What all users of a process share.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OnceCell, watch};

use tiro_base::scope::ProjectId;
use tiro_embed::{Embedder, Model};
use tiro_files::Extractor;
use tiro_store::clock::Clock;

/// How many callers of one process have a project open at once. Arbitrary: an open store has a few files and some megabytes
/// of caches, and people work on fewer projects at a time.
pub const MOST_OPEN: usize = 32;

/// The embedding models, the list of what is open, the clock and the end of a process. Engines of several users share it,
/// so that a model is loaded once, and what is open is bounded for all of them together.
pub(super) struct Process {
    /// The name under which the process takes leases.
    pub name: String,
    /// Where models are kept.
    pub model_dir: PathBuf,
    /// The embedders of [`Model::ALL`], in that order.
    pub embedders: [OnceCell<Arc<Embedder>>; Model::ALL.len()],
    pub opened: Opened,
    pub clock: Arc<Clock>,
    pub ending: Ending,
    pub extractor: Extractor,
    /// The projects that idle workers work on, with what they do there.
    working: Mutex<HashSet<(ProjectId, Duty)>>,
}

/// What an idle worker does for a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duty {
    /// Following, summarising, embedding and tending.
    Upkeep,
    /// Asking models for summaries, beside everything else.
    Asking,
}

/// A worker's turn at a project. It ends when this is dropped.
pub struct Working<'a> {
    process: &'a Process,
    work: (ProjectId, Duty),
}

impl Process {
    pub fn new(model_dir: PathBuf, random: [u8; 4]) -> Process {
        Process {
            name: format!("{}-{:08x}", std::process::id(), u32::from_ne_bytes(random)),
            model_dir,
            embedders: Default::default(),
            opened: Opened::default(),
            clock: Arc::default(),
            ending: Ending::default(),
            extractor: Extractor::of_this_process(),
            working: Mutex::default(),
        }
    }

    /// Returns the turn to do this work for the project; `None` while another worker of this process does it.
    pub fn works_on(&self, project: &ProjectId, duty: Duty) -> Option<Working<'_>> {
        let work = (project.clone(), duty);
        let is_free = self.working.lock().unwrap_or_else(PoisonError::into_inner).insert(work.clone());
        is_free.then_some(Working { process: self, work })
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.process.working.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.work);
    }
}

/// Something that a caller has open, and opens again when it next needs it.
pub trait LetGo: Send + Sync {
    /// Lets go of what is open. It is closed when the last call that uses it ends.
    fn let_go(&self);
}

/// The callers that have a project open, the one that used its project last at the end. A caller that is gone closed its
/// project by itself.
#[derive(Default)]
pub struct Opened(Mutex<Vec<Weak<dyn LetGo>>>);

impl Opened {
    /// Notes that `caller` uses its project now. If more than [`MOST_OPEN`] callers have one open, those that used theirs
    /// longest ago let go of it.
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

/// Counts the running pieces of work that the process finishes before it ends, because they are paid for: a request to a
/// provider, and storing its answer.
#[derive(Default)]
pub struct Ending(watch::Sender<EndingState>);

/// A piece of such work that runs. It is over when this is dropped.
pub struct Running<'a>(&'a Ending);

/// How many pieces of such work run, and whether new ones may begin.
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

    /// Lets nothing new begin, and returns when nothing runs any more.
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
        let process = Process::new(PathBuf::new(), [0; 4]);
        let [one, other] = [1, 2].map(|byte| ProjectId::from_random([byte; 8]));
        let turn = process.works_on(&one, Duty::Upkeep);
        assert!(turn.is_some() && process.works_on(&one, Duty::Upkeep).is_none());
        assert!(process.works_on(&other, Duty::Upkeep).is_some(), "another project has its own");
        assert!(process.works_on(&one, Duty::Asking).is_some(), "models are asked beside it");
        drop(turn);
        assert!(process.works_on(&one, Duty::Upkeep).is_some());
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
