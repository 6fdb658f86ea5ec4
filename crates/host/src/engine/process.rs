//! What all users of a process share.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::ending::Ending;
use super::opened::Opened;
use tiro_base::scope::ProjectId;
use tiro_embed::{Embedder, Model};
use tiro_files::Extractor;
use tiro_store::clock::Clock;

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

#[cfg(test)]
mod tests {
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
}
