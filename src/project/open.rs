//! A project that is open, and one that was only looked at.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::git::Repository;
use crate::redact::Redactor;
use crate::scope::Scope;
use crate::store::{ProjectRow, Store};

/// The project a process works on.
pub struct OpenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository, where it is one.
    pub repository: Option<Arc<Repository>>,
    /// Its memories.
    pub store: Store,
    /// All its sessions.
    pub scope: Scope,
    /// Takes secrets out of what is stored in it.
    pub redactor: Redactor,
    /// Whether nothing is kept of it, and nothing that is written will be: see [`Caller::project`](crate::caller::Caller::project).
    pub is_blank: bool,
    /// Why its repository can't be read, where it is one and can't: its memory works without.
    pub trouble: Option<String>,
    /// The project whose repository it is a copy of, where nothing is kept of it.
    pub original: Option<ProjectRow>,
}

/// A project as it stands: nothing was registered or made for it.
pub struct SeenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository, where it is one.
    pub repository: Option<Arc<Repository>>,
    /// Why its repository can't be read, where it is one and can't.
    pub trouble: Option<Error>,
    /// The project whose repository it is a copy of, where it has no id of its own yet.
    pub original: Option<ProjectRow>,
    /// It, where something is kept of it already.
    pub open: Option<OpenProject>,
}
