//! The registry of a tenant, in the first database: the projects, the directories where they were seen, the ledger of spending, and the
//! installation's secret.
//!
//! All rows name the tenant, and row security hides those of other tenants (`migrations/0004_registry.sql`). The
//! transactions that write to a tenant's registry take turns, so limits hold for all callers together.

mod audit;
mod by_trait;
mod ledger;
mod members;
mod notes;
mod placed;
mod sent;

use std::path::PathBuf;
use std::sync::Arc;

use tokio_postgres::Row;

use crate::database::seen::{NO_OWNER, Seen};
use crate::error::{Error, Result};
use crate::transactions::{Durability, PATIENCE, Transaction, read, write};
use crate::{Databases, PostgresStore};
use tiro_base::error::{self, Kind, quoted};
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_sqlite::SqliteStore;
use tiro_store::{Flavour, ProjectRow, Store};

/// A handle on the registry of a tenant. The documentation of [`tiro_store`] says what all methods of a registry
/// promise.
#[derive(Clone)]
pub struct PostgresRegistry {
    /// The first has the registry.
    databases: Databases,
    scope: Scope,
    /// The store of the memories that belong to no project, as a trait object, for callers that don't know the engine.
    memories: Arc<dyn Store>,
}

impl PostgresRegistry {
    /// Returns the registry of `tenant`. Nothing is connected yet.
    pub fn of(databases: Databases, tenant: &TenantId) -> PostgresRegistry {
        let scope = Scope::own(tenant.clone(), ProjectId::owner_wide());
        let memories = Arc::new(PostgresStore::of(databases.first().clone(), ProjectId::owner_wide()));
        PostgresRegistry { databases, scope, memories }
    }

    pub(crate) fn memories(&self) -> &Arc<dyn Store> {
        &self.memories
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    fn tenant(&self) -> &str {
        self.scope.tenant.as_str()
    }

    /// Begins a transaction that sees the tenant's registry as it is now.
    async fn begin_read(&self, _scope: &Scope) -> Result<Transaction> {
        let connection = self.databases.first().connection().await?;
        connection.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let transaction = Transaction::begun(connection, nothing_seen());
        transaction.execute(NAME_TENANT, &[&self.tenant()]).await?;
        Ok(transaction)
    }

    /// Begins a transaction that writes to the tenant's registry, as soon as no other one does.
    async fn begin_write(&self, _scope: &Scope, _durability: Durability) -> Result<Transaction> {
        let connection = self.databases.first().connection().await?;
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {}",
            PATIENCE.as_millis()
        );
        connection.batch_execute(&begin).await?;
        let transaction = Transaction::begun(connection, nothing_seen());
        transaction.execute(NAME_TENANT, &[&self.tenant()]).await?;
        // Locks of other programs may have the same number; then one waits for the other in vain, and nothing breaks.
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), current_schema(), $1::text), 0))";
        transaction.execute(sql, &[&self.tenant()]).await?;
        Ok(transaction)
    }
}

/// Names the tenant whose rows a transaction sees and changes.
const NAME_TENANT: &str = "SELECT set_config('tiro.tenant', $1, true)";

/// Returns the parts of a store that a transaction of a registry sees: none.
fn nothing_seen() -> Seen {
    Seen { shared: NO_OWNER, mine: NO_OWNER, turn: NO_OWNER, parts: vec![NO_OWNER] }
}

/// Selects the registered projects `p` of the tenant `$1`, each with its places.
const PROJECTS: &str = "SELECT p.id, p.name, ARRAY(SELECT l.path FROM places l
        WHERE l.tenant = p.tenant AND l.project = p.id ORDER BY l.seen DESC, l.path COLLATE \"C\")
    FROM projects p WHERE p.tenant = $1 AND p.created IS NOT NULL";

impl PostgresRegistry {
    pub(crate) fn blank_store(&self, id: &ProjectId, name: &str) -> error::Result<Arc<dyn Store>> {
        Ok(Arc::new(SqliteStore::blank(name, Flavour::Project, id.clone())?))
    }

    pub(crate) async fn by_id(&self, id: &ProjectId) -> error::Result<Option<ProjectRow>> {
        read!(self, &self.scope, tx => {
            let sql = format!("{PROJECTS} AND p.id = $2");
            Ok(tx.row(&sql, &[&self.tenant(), &id.as_str()]).await?.as_ref().and_then(project))
        })
    }

    pub(crate) async fn by_place(&self, place: &str) -> error::Result<Option<ProjectRow>> {
        read!(self, &self.scope, tx => { self.at(&tx, place).await })
    }

    /// Returns the registered project that was last seen at `place`.
    async fn at(&self, tx: &Transaction, place: &str) -> Result<Option<ProjectRow>> {
        let sql =
            format!("{PROJECTS} AND p.id = (SELECT project FROM places WHERE tenant = $1 AND path = $2)");
        Ok(tx.row(&sql, &[&self.tenant(), &place]).await?.as_ref().and_then(project))
    }

    pub(crate) async fn all(&self) -> error::Result<Vec<ProjectRow>> {
        read!(self, &self.scope, tx => {
            let sql = format!("{PROJECTS} ORDER BY p.name COLLATE \"C\", p.id COLLATE \"C\"");
            Ok(tx.rows(&sql, &[&self.tenant()]).await?.iter().filter_map(project).collect())
        })
    }

    pub(crate) async fn strays(&self) -> error::Result<Vec<ProjectRow>> {
        read!(self, &self.scope, tx => {
            let sql = "SELECT o.project, coalesce(p.name, '') COLLATE \"C\", '{}'::text[]
                       FROM (SELECT project FROM owners WHERE tenant = $1 AND project <> $2
                             UNION SELECT project FROM placed WHERE tenant = $1) o
                       LEFT JOIN projects p ON p.tenant = $1 AND p.id = o.project
                       WHERE p.created IS NULL ORDER BY 2, 1";
            let rows = tx.rows(sql, &[&self.tenant(), &ProjectId::owner_wide().as_str()]).await?;
            Ok(rows.iter().filter_map(project).collect())
        })
    }

    pub(crate) async fn record(
        &self,
        id: &ProjectId,
        name: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<()> {
        write!(self, &self.scope, tx => {
            self.register(&tx, id, name, now).await?;
            self.put_place(&tx, id, place, now).await
        })
    }

    pub(crate) async fn claim(
        &self,
        id: &ProjectId,
        name: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<ProjectRow> {
        write!(self, &self.scope, tx => {
            if let Some(first) = self.at(&tx, place).await? {
                return Ok(ProjectRow { places: vec![place.to_owned()], ..first });
            }
            if !self.register(&tx, id, name, now).await? {
                let message = format!("the project `{}` is registered already", quoted(id.as_str()));
                return Err(Error::new(Kind::Store, message));
            }
            self.put_place(&tx, id, place, now).await?;
            let places = vec![place.to_owned()];
            Ok(ProjectRow { id: id.clone(), name: name.to_owned(), file: PathBuf::new(), places })
        })
    }

    /// Does as [`Registry::register`](tiro_store::Registry::register).
    pub(crate) async fn register_named(
        &self,
        id: &ProjectId,
        name: &str,
        now: Millis,
    ) -> error::Result<ProjectRow> {
        write!(self, &self.scope, tx => {
            let called = format!("{PROJECTS} AND p.name = $2 ORDER BY p.id LIMIT 1");
            if let Some(first) = tx.row(&called, &[&self.tenant(), &name]).await?.as_ref().and_then(project) {
                return Ok(first);
            }
            self.register(&tx, id, name, now).await?;
            Ok(ProjectRow { id: id.clone(), name: name.to_owned(), file: PathBuf::new(), places: Vec::new() })
        })
    }

    /// Registers a project, unless it is registered. Returns whether it is new.
    async fn register(&self, tx: &Transaction, id: &ProjectId, name: &str, now: Millis) -> Result<bool> {
        let added = tx
            .execute(
                "INSERT INTO projects AS p (tenant, id, name, created) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, created = excluded.created
                     WHERE p.created IS NULL",
                &[&self.tenant(), &id.as_str(), &name, &now],
            )
            .await?;
        Ok(added > 0)
    }

    async fn put_place(&self, tx: &Transaction, id: &ProjectId, place: &str, now: Millis) -> Result<()> {
        tx.execute(
            "INSERT INTO places (tenant, path, project, seen) VALUES ($1, $2, $3, $4)
             ON CONFLICT (tenant, path) DO UPDATE SET project = excluded.project, seen = excluded.seen",
            &[&self.tenant(), &place, &id.as_str(), &now],
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn forget_place(&self, place: &str) -> error::Result<()> {
        write!(self, &self.scope, tx => {
            tx.execute("DELETE FROM places WHERE tenant = $1 AND path = $2", &[&self.tenant(), &place]).await?;
            Ok(())
        })
    }

    pub(crate) async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> error::Result<()> {
        write!(self, &self.scope, tx => {
            for sql in [
                "UPDATE places SET project = $3 WHERE tenant = $1 AND project = $2",
                "UPDATE sent SET project = $3 WHERE tenant = $1 AND project = $2",
            ] {
                tx.execute(sql, &[&self.tenant(), &from.as_str(), &to.as_str()]).await?;
            }
            self.unregister(&tx, from).await
        })
    }

    pub(crate) async fn remove(&self, id: &ProjectId) -> error::Result<()> {
        write!(self, &self.scope, tx => {
            self.unregister(&tx, id).await?;
            self.remove_note(&tx, &notes::copy_key(id)).await?;
            sent::forget_project(&tx, self.tenant(), id).await
        })
    }

    /// Removes a project and its places from the registry. If it has a store, its name is kept for
    /// [`PostgresRegistry::strays`].
    async fn unregister(&self, tx: &Transaction, id: &ProjectId) -> Result<()> {
        for sql in [
            "DELETE FROM places WHERE tenant = $1 AND project = $2",
            "DELETE FROM shares WHERE tenant = $1 AND project = $2",
            "DELETE FROM projects p WHERE p.tenant = $1 AND p.id = $2
                 AND NOT EXISTS (SELECT FROM owners o WHERE o.tenant = p.tenant AND o.project = p.id)
                 AND NOT EXISTS (SELECT FROM placed o WHERE o.tenant = p.tenant AND o.project = p.id)",
            "UPDATE projects SET created = NULL WHERE tenant = $1 AND id = $2",
        ] {
            tx.execute(sql, &[&self.tenant(), &id.as_str()]).await?;
        }
        Ok(())
    }
}

/// Reads a project. Its store is no file of its own.
fn project(row: &Row) -> Option<ProjectRow> {
    let id = ProjectId::parse(row.get(0))?;
    Some(ProjectRow { id, name: row.get(1), file: PathBuf::new(), places: row.get(2) })
}
