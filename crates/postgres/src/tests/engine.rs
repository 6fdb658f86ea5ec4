//! PostgreSQL as the engine of promises. Each engine has a schema of its own, which is dropped with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::database::Database;
use crate::{Databases, PostgresRegistry, PostgresStore};
use tiro_base::scope::TenantId;
use tiro_conformance::subject::{Engine, OWNER, project};
use tiro_sqlite::SqliteStore;
use tiro_store::{Flavour, Registry, Store};

/// An engine with a schema of its own.
pub(crate) struct Postgres {
    url: String,
    schema: String,
    database: Database,
    folder: tempfile::TempDir,
}

impl Postgres {
    /// Returns an engine without data on the server that `TIRO_TEST_POSTGRES` names; `None` with a notice if it names
    /// none.
    pub(crate) fn new() -> Option<Postgres> {
        #[expect(clippy::disallowed_methods, reason = "it is set for tests alone")]
        let url = std::env::var("TIRO_TEST_POSTGRES").ok();
        if url.is_none() {
            eprintln!("skipped: TIRO_TEST_POSTGRES names no server of PostgreSQL");
        }
        url.map(|url| Postgres::at(&url))
    }

    /// Returns an engine without data on the server at `url`.
    pub(crate) fn at(url: &str) -> Postgres {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let database = Database::in_schema(url, &schema).unwrap();
        Postgres { url: url.to_owned(), schema, database, folder: tempfile::tempdir().unwrap() }
    }

    /// Opens a handle with connections of its own, as another process would.
    pub(crate) fn other(&self) -> Database {
        Database::in_schema(&self.url, &self.schema).unwrap()
    }

    /// Opens the installation whose only database this is, as another process would.
    pub(crate) fn installation(&self) -> Databases {
        Databases::of(vec![self.other()])
    }

    /// Returns the address of the server.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the name of the schema.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns a handle on the store of the promises.
    pub(crate) fn store(&self) -> PostgresStore {
        PostgresStore::of(self.other(), project())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let (database, schema) = (self.database.clone(), self.schema.clone());
        let dropped = self.database.wait_for(async move {
            let sql = format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE");
            Ok(database.connect().await?.batch_execute(&sql).await?)
        });
        drop(dropped);
    }
}

impl Engine for Postgres {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store())
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(copy, Flavour::Project, project()).unwrap())
    }

    fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(PostgresRegistry::of(self.installation(), &TenantId::new(OWNER)))
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Looks into every row of every table.
    fn holds(&self, text: &str) -> bool {
        let (database, schema, text) = (self.other(), self.schema.clone(), text.to_owned());
        let found = self.database.wait_for(async move {
            let client = database.connect().await?;
            // Row security would hide the rows.
            client.batch_execute("RESET ROLE").await?;
            let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1";
            for row in client.query(tables, &[&schema]).await? {
                let table: String = row.get(0);
                let sql =
                    format!("SELECT FROM \"{schema}\".\"{table}\" t WHERE strpos(t::text, $1) > 0 LIMIT 1");
                if client.query_opt(&sql, &[&text]).await?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        found.unwrap()
    }
}
