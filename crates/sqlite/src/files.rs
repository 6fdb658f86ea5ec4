//! The stores of an installation, as SQLite files in its data directory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::registry::folder;
use crate::{SqliteBackup, SqliteRegistry, SqliteStore};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_store::{
    Backup, Contents, Files, Flavour, ForeignDepth, ForeignForgotten, ForeignPage, ForeignPart,
    ForeignSession, ProjectRow, Registry, Stores, Upkeep,
};

/// The stores of an installation in a data directory: `owner.db`, and `projects/<name>-<id>/tiro.db` for each project.
pub struct SqliteFiles {
    data_dir: PathBuf,
}

impl SqliteFiles {
    /// Returns the stores in `data_dir`. Doesn't open or make any file.
    pub fn new(data_dir: PathBuf) -> SqliteFiles {
        SqliteFiles { data_dir }
    }
}

#[async_trait]
impl Stores for SqliteFiles {
    fn in_folder(&self, data_dir: &Path) -> Arc<dyn Stores> {
        Arc::new(SqliteFiles::new(data_dir.to_owned()))
    }

    async fn is_begun(&self) -> bool {
        let found = self.data_dir.join("owner.db").symlink_metadata();
        !matches!(found, Err(error) if error.kind() == ErrorKind::NotFound)
    }

    async fn has_projects(&self) -> bool {
        self.data_dir.join("projects").is_dir()
    }

    async fn registry(&self, owner: &TenantId) -> Result<Arc<dyn Registry>> {
        Ok(Arc::new(SqliteRegistry::open(&self.data_dir, owner)?))
    }

    fn blank_registry(&self, owner: &TenantId, name: &str) -> Result<Arc<dyn Registry>> {
        Ok(Arc::new(SqliteRegistry::blank(owner, name)?))
    }

    async fn backup(&self, scope: &Scope, file: &Path) -> Result<Box<dyn Backup>> {
        Ok(Box::new(SqliteBackup::open(scope, file).await?))
    }

    fn files(&self) -> &dyn Files {
        self
    }
}

#[async_trait]
impl Files for SqliteFiles {
    fn folder(&self, name: &str, id: &ProjectId) -> String {
        folder::name(name, id)
    }

    async fn assign(
        &self,
        folder: &Path,
        owner: &TenantId,
        assigned: &[(ProjectId, String)],
    ) -> Result<Vec<ProjectRow>> {
        /// No other process uses the registry yet.
        const PATIENCE: Duration = Duration::from_secs(5);
        let registry = SqliteRegistry::open(folder, owner)?;
        let rows = registry.all().await?;
        for row in &rows {
            let folder = assigned.iter().find(|(id, _)| *id == row.id).map(|(_, folder)| folder.clone());
            // If the project has no store yet, its store will be made in this folder.
            let folder = folder.unwrap_or_else(|| folder::name(&row.name, &row.id));
            registry.set_folder(&row.id, &folder).await?;
        }
        let store = registry.memories();
        store.tend(registry.scope(), Upkeep::Rest).await?;
        match store.close(PATIENCE) {
            true => Ok(rows),
            false => {
                Err(Error::new(Kind::Store, "the restored registry can't be closed")
                    .hint("repeat the command"))
            }
        }
    }

    async fn contents(&self, path: &Path) -> Result<Contents> {
        SqliteStore::contents(path).await
    }

    async fn settle(&self, path: &Path, flavour: Flavour, owner: &TenantId) -> Result<()> {
        SqliteStore::settle(path, flavour, owner).await
    }

    async fn put_in_place(&self, staged: &Path, path: &Path, kept: &Path) -> Result<()> {
        SqliteStore::put_in_place(staged, path, kept).await
    }
}

#[async_trait]
impl Backup for SqliteBackup {
    fn all(&self) -> usize {
        self.all
    }

    async fn next(&mut self, part: ForeignPart) -> Result<Option<ForeignPage>> {
        SqliteBackup::next(self, part).await
    }

    async fn next_sessions(&mut self, depth: ForeignDepth) -> Result<Option<Vec<ForeignSession>>> {
        SqliteBackup::next_sessions(self, depth).await
    }

    async fn forgotten(&mut self) -> Result<ForeignForgotten> {
        SqliteBackup::forgotten(self).await
    }
}
