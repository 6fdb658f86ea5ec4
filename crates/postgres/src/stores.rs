//! The stores of an installation, in one or several databases.
//!
//! Databases have no files of its own for stores. Backups of one project are files of SQLite, which the engine for
//! SQLite reads and checks; the whole database is backed up with the tools of PostgreSQL.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use crate::database::Database;
use crate::news::Key;
use crate::news::follow::next_change;
use crate::{Databases, PostgresRegistry, error};
use tiro_base::error::{Error, Result};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_sqlite::{SqliteBackup, SqliteFiles, SqliteRegistry};
use tiro_store::{Backup, Contents, Files, Flavour, NextChange, ProjectRow, Registry, Stores};

/// The stores of an installation, in one or several databases.
pub struct PostgresStores {
    databases: Databases,
    /// Whether the tables are known to be there.
    is_begun: AtomicBool,
    /// Reads files of SQLite, such as backups.
    files: SqliteFiles,
}

impl PostgresStores {
    /// Returns the stores in `databases`. Nothing is connected yet.
    pub fn new(databases: Databases) -> PostgresStores {
        PostgresStores {
            databases,
            is_begun: AtomicBool::new(false),
            files: SqliteFiles::new(Default::default()),
        }
    }

    /// Returns the answer of the query `sql` in a database, which is whether something is there; false if there is no table
    /// of Tiro.
    async fn has(database: &Database, sql: &str, project: &str) -> error::Result<bool> {
        let client = database.connect().await?;
        let owners = format!("\"{}\".owners", database.schema());
        let there = "SELECT to_regclass($1) IS NOT NULL";
        if !client.query_one(there, &[&owners]).await?.try_get::<_, bool>(0)? {
            return Ok(false);
        }
        Ok(client.query_one(sql, &[&project]).await?.try_get(0)?)
    }
}

#[async_trait]
impl Stores for PostgresStores {
    /// Another installation is a folder of its own on this machine, such as that of a demonstration.
    fn in_folder(&self, data_dir: &Path) -> Arc<dyn Stores> {
        Arc::new(SqliteFiles::new(data_dir.to_owned()))
    }

    /// Every call asks this, so it is asked in the database only until the answer is yes.
    async fn is_begun(&self) -> bool {
        if self.is_begun.load(Ordering::Relaxed) {
            return true;
        }
        match Self::has(self.databases.first(), "SELECT $1::text IS NOT NULL", "").await {
            Ok(is_begun) => {
                self.is_begun.store(is_begun, Ordering::Relaxed);
                is_begun
            }
            Err(_) => true,
        }
    }

    async fn has_projects(&self) -> bool {
        let sql = "SELECT EXISTS (SELECT FROM owners WHERE project <> $1)";
        for database in self.databases.all() {
            if Self::has(database, sql, ProjectId::owner_wide().as_str()).await.unwrap_or(true) {
                return true;
            }
        }
        false
    }

    async fn registry(&self, owner: &TenantId) -> Result<Arc<dyn Registry>> {
        self.databases.check().await?;
        Ok(Arc::new(PostgresRegistry::of(self.databases.clone(), owner)))
    }

    fn blank_registry(&self, owner: &TenantId, name: &str) -> Result<Arc<dyn Registry>> {
        Ok(Arc::new(SqliteRegistry::blank(owner, name)?))
    }

    async fn backup(&self, scope: &Scope, file: &Path) -> Result<Box<dyn Backup>> {
        Ok(Box::new(SqliteBackup::open(scope, file).await?))
    }

    fn next_change(&self, owner: &TenantId, project: &ProjectId) -> Option<NextChange> {
        Some(next_change(self.databases.first(), Key::of(owner, project)))
    }

    fn files(&self) -> &dyn Files {
        self
    }
}

#[async_trait]
impl Files for PostgresStores {
    fn folder(&self, name: &str, id: &ProjectId) -> String {
        self.files.folder(name, id)
    }

    async fn assign(
        &self,
        _folder: &Path,
        _owner: &TenantId,
        _assigned: &[(ProjectId, String)],
    ) -> Result<Vec<ProjectRow>> {
        Err(without_files())
    }

    async fn contents(&self, path: &Path) -> Result<Contents> {
        self.files.contents(path).await
    }

    async fn settle(&self, _path: &Path, _flavour: Flavour, _owner: &TenantId) -> Result<()> {
        Err(without_files())
    }

    async fn put_in_place(&self, _staged: &Path, _path: &Path, _kept: &Path) -> Result<()> {
        Err(without_files())
    }
}

/// Returns the error of everything that needs a file for each store.
pub(crate) fn without_files() -> Error {
    let message =
        "the stores are in a database, and can't be copied to files or replaced by files all together";
    Error::bad_input(message).hint(
        "`tiro backup FILE` and `tiro restore FILE` work for each project; `pg_dump` and `pg_restore` for the whole \
         database",
    )
}
