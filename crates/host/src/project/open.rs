//! Types for an open project, and for a project that was looked at without being opened for writing.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use super::placement::Placement;
use super::placing::Placing;
use tiro_base::error::Error;
use tiro_base::scope::Scope;
use tiro_capture::sources::{Machine, Sources};
use tiro_git::Repository;
use tiro_recall::store_intake::StoreIntake;
use tiro_redact::Redactor;
use tiro_store::clock::Clock;
use tiro_store::{Bookkeeping, ProjectRow, ReadStore, Store};

/// A project with its open store, for callers that only read.
#[derive(Clone)]
pub struct OpenProject {
    /// The name of the project.
    pub name: String,
    /// The root of the work tree. Outside a repository, this is the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// The store of the project's memories. It can only be read here; see [`WritableProject`].
    pub store: Arc<dyn ReadStore>,
    /// Stores data other than memories while a question is answered.
    pub books: Arc<dyn Bookkeeping>,
    /// The scope that covers all sessions of the project.
    pub scope: Scope,
    /// Who sees what is saved in the project.
    pub placement: Placement,
    /// Redacts the texts that are stored in the project.
    pub redactor: Redactor,
    /// Whether nothing of the project is stored yet. In this case, the store is empty and ends with the process.
    pub is_blank: bool,
    /// The reason why the repository can't be read. The project's memory works without the repository.
    pub trouble: Option<String>,
    /// The project from which this repository was copied, as long as nothing of the copy is stored.
    pub original: Option<ProjectRow>,
    /// The former roots of the project, from before it was moved or renamed. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
}

/// A project that is open for writing.
pub struct WritableProject {
    project: Arc<OpenProject>,
    /// The store of the project's memories.
    pub store: Arc<dyn Store>,
}

impl OpenProject {
    /// Returns the data of `machine` about the project.
    pub fn sources(&self, machine: Machine) -> Sources {
        Sources {
            machine,
            root: self.root.clone(),
            repository: self.repository.clone(),
            trouble: self.trouble.clone(),
            formerly: self.formerly.clone(),
            redactor: self.redactor.clone(),
        }
    }

    /// Returns the project as an author sees it, who has no files on this machine. The store stays the same.
    fn read_by(&self, scope: Scope, placement: Placement) -> OpenProject {
        OpenProject {
            scope,
            placement,
            repository: None,
            trouble: None,
            original: None,
            formerly: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the memory of the project for reading, through the interface for the side with the files.
    pub fn read_intake(&self, clock: &Arc<Clock>) -> StoreIntake<dyn ReadStore> {
        StoreIntake::new(Arc::clone(&self.store), self.scope.clone(), Arc::clone(clock))
    }
}

impl WritableProject {
    /// Returns `project` for writing. Its memories are in `store`.
    pub fn new(project: OpenProject, store: Arc<dyn Store>) -> WritableProject {
        WritableProject { project: Arc::new(project), store }
    }

    /// Returns the project as an author with this scope sees it, who has no files on this machine. What the author saves
    /// is shared or private by `placement`.
    pub fn read_by(&self, scope: Scope, placement: Placement) -> WritableProject {
        let store = Placing::over(&self.store, placement.clone());
        WritableProject::new(self.project.read_by(scope, placement), store)
    }

    /// Returns the same project, where what is saved is shared or private by `placement`.
    pub fn placing(&self, scope: Scope, placement: Placement) -> WritableProject {
        let store = Placing::over(&self.store, placement.clone());
        let project = OpenProject { scope, placement, ..OpenProject::clone(&self.project) };
        WritableProject::new(project, store)
    }

    /// Returns the memory of the project for writing, through the interface for the side with the files.
    pub fn intake(&self, clock: &Arc<Clock>) -> StoreIntake<dyn Store> {
        StoreIntake::new(Arc::clone(&self.store), self.scope.clone(), Arc::clone(clock))
    }

    /// Returns the project for callers that only read.
    pub fn reader(&self) -> Arc<OpenProject> {
        Arc::clone(&self.project)
    }
}

impl Deref for WritableProject {
    type Target = OpenProject;

    fn deref(&self) -> &OpenProject {
        &self.project
    }
}

/// A project that was only looked at: nothing was registered, created or changed.
pub struct SeenProject {
    /// The name of the project.
    pub name: String,
    /// The root of the work tree. Outside a repository, this is the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// The reason why the repository can't be read.
    pub trouble: Option<Error>,
    /// The project from which this repository was copied, if the copy has no id of its own yet.
    pub original: Option<ProjectRow>,
    /// The former roots of the project, from before it was moved or renamed. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
    /// The open project, if anything of the project is stored.
    pub open: Option<OpenProject>,
}

impl SeenProject {
    /// Returns the data of `machine` about the project.
    pub fn sources(&self, machine: Machine) -> Sources {
        Sources {
            machine,
            root: self.root.clone(),
            repository: self.repository.clone(),
            trouble: self.trouble.as_ref().map(ToString::to_string),
            formerly: self.formerly.clone(),
            redactor: self.open.as_ref().map_or_else(Redactor::blank, |open| open.redactor.clone()),
        }
    }
}
