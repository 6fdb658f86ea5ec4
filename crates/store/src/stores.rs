//! The stores of an installation, and how they are found and opened.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Contents, Flavour, ForeignDepth, ForeignForgotten, ForeignPage, ForeignPart, ForeignSession, ProjectRow,
    Registry,
};
use tiro_base::error::Result;
use tiro_base::scope::{ProjectId, Scope, TenantId};

/// Is ready once a store may have changed.
pub type NextChange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All stores of an installation, kept by one engine. The program chooses the engine when it starts. No other code
/// knows the engine.
#[async_trait]
pub trait Stores: Send + Sync {
    /// Returns the stores of another installation, in the folder `data_dir`, kept by the same engine.
    fn in_folder(&self, data_dir: &Path) -> Arc<dyn Stores>;

    /// Returns whether a registry was made here. If the answer is unknown, returns true: opening the registry then
    /// reports the reason.
    async fn is_begun(&self) -> bool;

    /// Returns whether there are stores of projects here, even if the registry was lost.
    async fn has_projects(&self) -> bool;

    /// Opens the registry of `owner`, and makes it if there is none.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if the registry can't be opened, comes from a newer
    /// Tiro, or has lost its content although there are stores of projects.
    async fn registry(&self, owner: &TenantId) -> Result<Arc<dyn Registry>>;

    /// Returns an empty registry. The registry is called `name` within this process, and disappears when the process
    /// ends.
    fn blank_registry(&self, owner: &TenantId, name: &str) -> Result<Arc<dyn Registry>>;

    /// Opens the backup `file` for reading, and checks it for damage.
    ///
    /// If the backup has the memories of only one owner, these are read, even if the scope has another owner, because a
    /// backup from another machine names another owner. If the backup has the memories of several owners, only the
    /// memories of the scope's owner are read.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such file, and with
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if it is not a backup or is damaged.
    async fn backup(&self, scope: &Scope, file: &Path) -> Result<Box<dyn Backup>>;

    /// Returns a future that is ready once the exchanged memories of the project may have changed after this call, whichever
    /// process changed them. It may be ready although nothing changed, and it may miss a change, so callers also look by
    /// themselves from time to time. Returns `None` if the engine hears nothing of other processes.
    fn next_change(&self, _owner: &TenantId, _project: &ProjectId) -> Option<NextChange> {
        None
    }

    /// Returns the interface for files of stores that no process has open.
    fn files(&self) -> &dyn Files;
}

/// A backup that is being read. Backups are not trusted: everything that is read passes the same checks as every write.
#[async_trait]
pub trait Backup: Send {
    /// Returns how many memories the backup has.
    fn all(&self) -> usize;

    /// Returns the next page of memories of `part`, in the order in which they were stored; `None` after the last page.
    async fn next(&mut self, part: ForeignPart) -> Result<Option<ForeignPage>>;

    /// Returns the next sessions of the backup, or `None` after the last. If `depth` is not the same as in the previous
    /// call, begins with the first session again.
    async fn next_sessions(&mut self, depth: ForeignDepth) -> Result<Option<Vec<ForeignSession>>>;

    /// Returns the purged ids and the operations of the backup, and the sessions that were forgotten because of their
    /// age.
    async fn forgotten(&mut self) -> Result<ForeignForgotten>;
}

/// Works on files of stores that no process has open. Used to make and restore backups of a whole installation.
#[async_trait]
pub trait Files: Send + Sync {
    /// Returns the name of the folder of a project called `name`.
    fn folder(&self, name: &str, id: &ProjectId) -> String;

    /// Reads the registry of `owner` in `folder`, which is about to be restored. The registry's projects get the
    /// folders that `assigned` names; the remaining projects get folders by their names. Returns the projects. No file
    /// stays open.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if the registry can't be read or closed.
    async fn assign(
        &self,
        folder: &Path,
        owner: &TenantId,
        assigned: &[(ProjectId, String)],
    ) -> Result<Vec<ProjectRow>>;

    /// Returns counts of the content of the store at `path`, and its damage. Reads the whole store.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if the store is so damaged that it can't be read
    /// completely.
    async fn contents(&self, path: &Path) -> Result<Contents>;

    /// Adapts the store at `path`, which came from elsewhere. Brings its schema up to date. If everything in the store
    /// belongs to a single other owner, gives it to `owner`.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the file has something that a store doesn't
    /// have.
    async fn settle(&self, path: &Path, flavour: Flavour, owner: &TenantId) -> Result<()>;

    /// Moves the store `staged` to `path` on the same file system, in one step. If there is a store already, it is kept
    /// as `kept`. Processes that have the old store open use the new store from their next call on.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if other processes read or write the present store
    /// during the whole time that a writer waits.
    async fn put_in_place(&self, staged: &Path, path: &Path, kept: &Path) -> Result<()>;
}
