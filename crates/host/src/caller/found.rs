//! The caller's open project, and the check that it is still the one on the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::around::Around;
use crate::config::Config;
use crate::project::{self, WritableProject};
use tiro_store::Store;

/// An open project, and the state of the disk that must stay the same for the project to remain valid.
#[derive(Clone)]
pub(super) struct FoundProject {
    pub project: Arc<WritableProject>,
    pub registered_in: Arc<dyn Store>,
    /// The git directory that contains the project's id, if there is such a directory.
    pub keeps_id: Option<PathBuf>,
    pub around: Arc<Around>,
}

impl FoundProject {
    /// Returns whether the project is still the one on the disk. Also returns false if the project's repository
    /// could not be read before, but can be read now. If the result is false, closes the project's store.
    pub fn holds(&self, config: &Config, named: Option<&Path>) -> bool {
        let id = &self.project.scope.project;
        let is_kept = self.keeps_id.as_ref().is_none_or(|place| project::keeps(place, id));
        let is_as_troubled = || {
            self.project.trouble.is_none() || project::is_in_trouble(self.around.directory(), config, named)
        };
        let is_same = is_kept && self.around.is_same() && is_as_troubled();
        let holds = is_same && self.registered_in.is_current() && self.project.store.is_current();
        if !holds {
            self.project.store.leave();
        }
        holds
    }
}
