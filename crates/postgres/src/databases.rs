//! The databases over which the stores of an installation are spread.
//!
//! The first database has the registries, and the memories that belong to no project. The store of a project is whole in
//! one of the databases, so each of its transactions is in one server, and a commit is durable there. A search concerns
//! one project, so it asks one server. Foreign tables (`postgres_fdw`) would show the rows of all servers in one, but
//! their transactions commit on each server separately: a server that fails between two commits leaves half a write.
//!
//! The order of the addresses gives the databases their numbers, which the first database keeps. New databases are added
//! at the end. A store stays where it was made.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::database::Database;
use crate::error::{Error, Result};
use tiro_base::error::Kind;
use tiro_base::scope::ProjectId;
use tiro_valkey::Valkey;

/// The databases of an installation. A clone shares the connections.
#[derive(Clone)]
pub struct Databases {
    inner: Arc<Inner>,
}

struct Inner {
    /// Never empty.
    all: Vec<Database>,
    /// Whether the databases are known to be those that the first one names.
    is_checked: OnceCell<()>,
}

impl Databases {
    /// Returns the databases at `addresses`, which are separated by spaces. Nothing is connected yet.
    ///
    /// Errors with [`Kind::BadInput`] if there is none, or one is not the address of a database.
    pub fn at(addresses: &str) -> tiro_base::error::Result<Databases> {
        let all =
            addresses.split_whitespace().map(Database::at).collect::<tiro_base::error::Result<Vec<_>>>()?;
        if all.is_empty() {
            return Err(tiro_base::error::Error::bad_input("the address of the database is empty")
                .hint("write it as `postgres://USER:PASSWORD@HOST:5432/DATABASE`"));
        }
        Ok(Databases::of(all))
    }

    /// Returns the same databases, of which all servers share cached answers in `valkey`.
    pub fn with_cache(self, valkey: &Valkey) -> Databases {
        self.inner.all.iter().for_each(|database| database.share_cache(valkey.clone()));
        self
    }

    /// Returns these databases, of which there is at least one.
    pub(crate) fn of(all: Vec<Database>) -> Databases {
        assert!(!all.is_empty(), "there is a first database");
        all[1..].iter().for_each(|database| database.come_after(&all[0]));
        Databases { inner: Arc::new(Inner { all, is_checked: OnceCell::new() }) }
    }

    /// Returns the database with the registries.
    pub(crate) fn first(&self) -> &Database {
        &self.inner.all[0]
    }

    /// Returns every database, the first one first.
    pub(crate) fn all(&self) -> &[Database] {
        &self.inner.all
    }

    /// Returns the database with this number.
    ///
    /// Errors with [`Kind::Store`] if no address is given for it.
    pub(crate) fn numbered(&self, number: i32) -> Result<&Database> {
        let found = usize::try_from(number).ok().and_then(|number| self.inner.all.get(number));
        found.ok_or_else(|| {
            let message = format!("the store is in database {}, whose address is not given", number + 1);
            Error::new(Kind::Store, message)
                .hint("give the addresses of all databases, in the order in which they were added")
        })
    }

    /// Returns the number of the database for a new store. The ids of projects are random, so each database gets as many.
    pub(crate) fn for_new_store(&self, id: &ProjectId) -> i32 {
        let number = u64::from_str_radix(id.as_str(), 16).unwrap_or_default();
        (number % self.inner.all.len() as u64) as i32
    }

    /// Checks that the databases are those that the first one names, in the same order, and adds new ones to its list.
    ///
    /// Errors with [`Kind::Store`] if they are not.
    pub(crate) async fn check(&self) -> Result<()> {
        self.inner.is_checked.get_or_try_init(|| self.compare()).await.copied()
    }

    async fn compare(&self) -> Result<()> {
        if self.inner.all.len() == 1 {
            return self.first().connection().await.map(drop);
        }
        let mut ids = Vec::new();
        for database in &self.inner.all {
            ids.push(database.id().await?);
        }
        let connection = self.first().connection().await?;
        for ((number, database), id) in (0_i32..).zip(&self.inner.all).zip(ids) {
            connection
                .execute(
                    "INSERT INTO databases (number, id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    &[&number, &id],
                )
                .await?;
            let row = connection.query_opt("SELECT id FROM databases WHERE number = $1", &[&number]).await?;
            if row.map(|row| row.try_get::<_, i64>(0)).transpose()? != Some(id) {
                let message =
                    format!("`{}` is not database {} of this installation", database.place(), number + 1);
                return Err(Error::new(Kind::Store, message).hint(
                    "give the addresses in the order in which the databases were added, new ones at the end",
                ));
            }
        }
        Ok(())
    }
}
