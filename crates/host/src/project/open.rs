//! An open project, and a project that was looked at without being opened for writing.

use std::path::PathBuf;
use std::sync::Arc;

use tiro_base::error::Error;
use tiro_base::scope::Scope;
use tiro_git::Repository;
use tiro_redact::Redactor;
use tiro_store::{ProjectRow, Store};

/// A project with its open store.
pub struct OpenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree; outside a repository, the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// The store of its memories.
    pub store: Store,
    /// The scope that covers all sessions of the project.
    pub scope: Scope,
    /// Redacts the texts that are stored in the project.
    pub redactor: Redactor,
    /// Whether nothing of the project is stored yet. The store is then only in memory, so that writes are lost: see
    /// [`Caller::project`](crate::caller::Caller::project).
    pub is_blank: bool,
    /// Why the repository can't be read. The project's memory works without the repository.
    pub trouble: Option<String>,
    /// The project from which this repository was copied, as long as nothing of the copy is stored.
    pub original: Option<ProjectRow>,
    /// The roots at which the project was before it was moved or renamed, and where nothing is now.
    pub formerly: Vec<PathBuf>,
}

impl OpenProject {
    /// Returns the same project with a store that only reads.
    pub fn reader(&self) -> OpenProject {
        OpenProject {
            name: self.name.clone(),
            root: self.root.clone(),
            repository: self.repository.clone(),
            store: self.store.reader(),
            scope: self.scope.clone(),
            redactor: self.redactor.clone(),
            is_blank: self.is_blank,
            trouble: self.trouble.clone(),
            original: self.original.clone(),
            formerly: self.formerly.clone(),
        }
    }
}

/// A project that was only looked at: nothing was registered, created or changed.
pub struct SeenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree; outside a repository, the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// Why its repository can't be read.
    pub trouble: Option<Error>,
    /// The project from which this repository was copied, if the copy has no id of its own yet.
    pub original: Option<ProjectRow>,
    /// The roots at which the project was before it was moved or renamed, and where nothing is now.
    pub formerly: Vec<PathBuf>,
    /// The open project, if anything of it is stored.
    pub open: Option<OpenProject>,
}
