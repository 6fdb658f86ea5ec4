//! What a promise is tested on: an engine, and its handles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tiro_base::scope::ProjectId;
use tiro_store::{Registry, Store};

/// The owner of the memories in promises that don't name another owner.
pub const OWNER: &str = "ines";

/// An engine with the data of one promise: the store of a project, and the registry of the installation.
pub trait Engine: Send + Sync {
    /// Opens another handle on the store of the project [`project`], as another process would. All handles share
    /// the data.
    fn open(&self) -> Arc<dyn Store>;

    /// Opens the backup `copy` as a store of the project [`project`].
    fn open_copy(&self, copy: &Path) -> Arc<dyn Store>;

    /// Opens another handle on the registry of the owner [`OWNER`]. All handles share the data.
    fn registry(&self) -> Arc<dyn Registry>;

    /// Returns a folder for backups. It is removed when the engine is dropped.
    fn folder(&self) -> PathBuf;

    /// Returns whether the bytes of `text` are in any file of the store.
    fn holds(&self, text: &str) -> bool;
}

/// Returns the project of the memories in promises.
pub fn project() -> ProjectId {
    ProjectId::from_random([7; 8])
}
