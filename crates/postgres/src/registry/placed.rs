//! Finds the database in which the store of a project is, and makes stores.

use std::sync::Arc;

use super::PostgresRegistry;
use crate::PostgresStore;
use crate::database::Database;
use crate::error::Result;
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::scope::ProjectId;
use tiro_store::Store;

impl PostgresRegistry {
    pub(crate) async fn store(&self, id: &ProjectId) -> error::Result<Arc<dyn Store>> {
        if let Some(there) = self.existing_store(id).await? {
            return Ok(there);
        }
        let number = self.place(id).await?;
        let database = self.databases.numbered(number)?;
        self.make(database, id).await?;
        Ok(open(database, id))
    }

    pub(crate) async fn existing_store(&self, id: &ProjectId) -> error::Result<Option<Arc<dyn Store>>> {
        let (number, is_registered) = self.placed(id).await?;
        let database = self.databases.numbered(number)?;
        match (self.has_owner(database, id).await?, is_registered) {
            (true, _) => Ok(Some(open(database, id))),
            (false, true) => Ok(None),
            (false, false) => {
                Err(error::Error::not_found(format!("no project has the id `{}`", id.as_str())))
            }
        }
    }

    /// Returns the number of the database in which the project's store is or will be, and whether the project is
    /// registered.
    async fn placed(&self, id: &ProjectId) -> error::Result<(i32, bool)> {
        read!(self, &self.scope, tx => {
            let row = tx
                .only(
                    "SELECT coalesce((SELECT database FROM placed WHERE tenant = $1 AND project = $2), 0),
                         EXISTS (SELECT FROM projects WHERE tenant = $1 AND id = $2 AND created IS NOT NULL)",
                    &[&self.tenant(), &id.as_str()],
                )
                .await?;
            Ok((row.try_get(0)?, row.try_get(1)?))
        })
    }

    /// Chooses the database for the store of a registered project that has none, and returns its number. If several callers
    /// choose at once, all get the same one.
    async fn place(&self, id: &ProjectId) -> error::Result<i32> {
        let number = self.databases.for_new_store(id);
        if number == 0 {
            return Ok(0);
        }
        write!(self, &self.scope, tx => {
            tx.execute(
                "INSERT INTO placed (tenant, project, database) SELECT $1, $2, $3
                 WHERE NOT EXISTS (SELECT FROM owners WHERE tenant = $1 AND project = $2) ON CONFLICT DO NOTHING",
                &[&self.tenant(), &id.as_str(), &number],
            )
            .await?;
            let sql = "SELECT database FROM placed WHERE tenant = $1 AND project = $2";
            match tx.row(sql, &[&self.tenant(), &id.as_str()]).await? {
                Some(row) => Ok(row.try_get(0)?),
                None => Ok(0),
            }
        })
    }

    /// Makes the shared part of a store.
    async fn make(&self, database: &Database, id: &ProjectId) -> Result<()> {
        let client = database.connection().await?;
        client
            .execute(
                "INSERT INTO owners (tenant, project, author) VALUES ($1, $2, '') ON CONFLICT DO NOTHING",
                &[&self.tenant(), &id.as_str()],
            )
            .await?;
        Ok(())
    }

    /// Returns whether a part of the project's store is in the database.
    async fn has_owner(&self, database: &Database, id: &ProjectId) -> Result<bool> {
        let client = database.connection().await?;
        let sql = "SELECT EXISTS (SELECT FROM owners WHERE tenant = $1 AND project = $2)";
        Ok(client.query_one(sql, &[&self.tenant(), &id.as_str()]).await?.try_get(0)?)
    }
}

fn open(database: &Database, id: &ProjectId) -> Arc<dyn Store> {
    Arc::new(PostgresStore::of(database.clone(), id.clone()))
}
