//! The project that is open, and what tells that it is still the one there.

use std::path::{Path, PathBuf};

use super::around::Around;
use crate::config::Config;
use crate::project::{self, OpenProject};
use crate::store::Store;

/// An open project, with what must stay as it is while it holds.
pub(super) struct Found {
    pub project: OpenProject,
    pub registered_in: Store,
    /// The repository that says itself which project it is, where it does.
    pub keeps_id: Option<PathBuf>,
    pub around: Around,
}

impl Found {
    /// Whether all is as it was when it was opened; where it isn't, its store is left. Git's trouble that is over is another
    /// state of the repository, though the repository is the same.
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
