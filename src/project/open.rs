//! An open project, and a project that was looked at without opening it for writing.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::git::Repository;
use crate::redact::Redactor;
use crate::scope::Scope;
use crate::store::{ProjectRow, Store};

/// A project with its open store.
pub struct OpenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository; `None` for a directory, and if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// The store of its memories.
    pub store: Store,
    /// The scope of all its sessions.
    pub scope: Scope,
    /// Redacts texts that are stored in it.
    pub redactor: Redactor,
    /// Whether nothing of it is stored and writes are lost: see [`Caller::project`](crate::caller::Caller::project).
    pub is_blank: bool,
    /// Why its repository can't be read; its memory works without it.
    pub trouble: Option<String>,
    /// The project that its repository was copied from, while nothing of the copy is stored.
    pub original: Option<ProjectRow>,
}

/// A project as it is now. Looking registered and created nothing.
pub struct SeenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository; `None` for a directory, and if the repository can't be read.
    pub repository: Option<Arc<Repository>>,
    /// Why its repository can't be read.
    pub trouble: Option<Error>,
    /// The project that its repository was copied from, if the copy has no id of its own yet.
    pub original: Option<ProjectRow>,
    /// The open project, if something of it is stored.
    pub open: Option<OpenProject>,
}
