//! Where the stores of an installation are, and how they are opened.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Contents, Flavour, ForeignDepth, ForeignForgotten, ForeignPage, ForeignPart, ForeignSession, ProjectRow,
    Registry,
};
use tiro_base::error::Result;
use tiro_base::scope::{ProjectId, Scope, TenantId};

/// The stores of an installation, as one engine keeps them. The program chooses the engine when it starts; nothing else
/// knows which one it is.
#[async_trait]
pub trait Stores: Send + Sync {
    /// Returns the stores of another installation, in the folder `data_dir`, kept by the same engine.
    fn in_folder(&self, data_dir: &Path) -> Arc<dyn Stores>;

    /// Returns whether a registry was made here. If that can't be found out, returns true, so that opening it reports
    /// why.
    fn is_begun(&self) -> bool;

    /// Returns whether stores of projects are here, also if the registry was lost.
    fn has_projects(&self) -> bool;

    /// Opens the registry of `owner`, and makes it if there is none.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if it can't be opened, comes from a newer Tiro, or
    /// has lost its content although there are stores of projects.
    fn registry(&self, owner: &TenantId) -> Result<Arc<dyn Registry>>;

    /// Returns an empty registry that is called `name` within this process, and is gone when the process ends.
    fn blank_registry(&self, owner: &TenantId, name: &str) -> Result<Arc<dyn Registry>>;

    /// Opens the backup `file` for reading, and checks it for damage.
    ///
    /// If the backup has the memories of only one owner, these are read, even if that owner isn't the scope's:
    /// a backup from another machine names another owner. If it has the memories of several owners, those of
    /// the scope's owner are read.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such file, and with
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if it is not a backup or is damaged.
    async fn backup(&self, scope: &Scope, file: &Path) -> Result<Box<dyn Backup>>;

    /// Returns what works on the files of stores that no process has open.
    fn files(&self) -> &dyn Files;
}

/// A backup that is being read. It is not trusted: what it returns passes the same checks as every write.
#[async_trait]
pub trait Backup: Send {
    /// Returns how many memories the backup has.
    fn all(&self) -> usize;

    /// Returns the next page of memories of `part`, in the order they were stored; `None` after the last page.
    async fn next(&mut self, part: ForeignPart) -> Result<Option<ForeignPage>>;

    /// Returns the next sessions of the backup, or `None` after the last. If `depth` differs from that of the
    /// previous call, begins with the first session again.
    async fn next_sessions(&mut self, depth: ForeignDepth) -> Result<Option<Vec<ForeignSession>>>;

    /// Returns the purged ids of the backup, its operations, and its sessions that were forgotten because of
    /// their age.
    async fn forgotten(&mut self) -> Result<ForeignForgotten>;
}

/// Works on files of stores that no process has open: what a backup of a whole installation is made of and restored
/// from.
#[async_trait]
pub trait Files: Send + Sync {
    /// Returns the name of the folder in which a project called `name` is kept.
    fn folder(&self, name: &str, id: &ProjectId) -> String;

    /// Reads the registry of `owner` that lies in `folder` and is to be restored. Its projects get the folders that
    /// `assigned` names, and the others those of their names. Returns the projects; nothing is open afterwards.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if it can't be read or closed.
    async fn assign(
        &self,
        folder: &Path,
        owner: &TenantId,
        assigned: &[(ProjectId, String)],
    ) -> Result<Vec<ProjectRow>>;

    /// Returns what is in the store at `path`. Reads all of it.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if it is damaged so that it can't be read whole.
    async fn contents(&self, path: &Path) -> Result<Contents>;

    /// Makes the store at `path`, which came from elsewhere, fit for this place: brings its schema up to date, and
    /// gives everything in it to `owner` if it belongs to a single other one.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the file has something that a store doesn't
    /// have.
    async fn settle(&self, path: &Path, flavour: Flavour, owner: &TenantId) -> Result<()>;

    /// Puts the store `staged` at `path` on the same file system, in one step. If there is a store already, it is kept
    /// as `kept`, and the processes that have it open find the new one at their next call.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if other processes read or write the present store
    /// during all the time that a writer waits.
    async fn put_in_place(&self, staged: &Path, path: &Path, kept: &Path) -> Result<()>;
}
