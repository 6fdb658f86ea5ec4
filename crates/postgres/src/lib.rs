//! Keeps the stores of many tenants in a database of PostgreSQL: rows, text index and vectors.
//!
//! A [`PostgresStore`] is a handle on the store of one project. All stores of all tenants are in the same tables, whose
//! keys begin with the owner (`owners.rs`). The transactions that write to a store take turns, so keys, ordinals and
//! versions rise in the order in which writes become visible; readers wait for nobody (`transactions.rs`). Row security
//! hides the rows of others from a statement that forgets to (`migrations/0003_rows.sql`). Triggers remove what was made
//! of a memory when the memory changes (`migrations/0002_triggers.sql`).
//!
//! It is not: a place for files. A backup of one store is a file of SQLite, which every engine restores; the whole
//! database is backed up with the tools of PostgreSQL.

#![allow(
    clippy::missing_docs_in_private_items,
    reason = "what a method promises is in the traits of `tiro-store`, and is not said twice"
)]

mod cache;
mod check;
mod columns;
mod database;
mod databases;
mod error;
mod exchange;
mod foreign;
mod forget;
mod imports;
mod leases;
mod links;
mod news;
mod owners;
mod read;
mod registry;
mod search;
mod stash;
mod statements;
mod store;
mod stores;
mod summaries;
mod superseded;
#[cfg(test)]
mod tests;
mod threads;
mod transactions;
mod write;

use std::sync::Arc;

use database::Database;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::clock::Clock;

pub use databases::Databases;
pub use registry::PostgresRegistry;
pub use stores::PostgresStores;

/// A handle on the store of one project, or on the memories that belong to a tenant and to no project. A clone is the
/// same handle.
///
/// The documentation of [`tiro_store`] says what all methods of a store promise.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    project: ProjectId,
    clock: Clock,
}

impl PostgresStore {
    /// Returns a handle on the store of the project. The store need not exist.
    pub(crate) fn of(database: Database, project: ProjectId) -> PostgresStore {
        PostgresStore { inner: Arc::new(Inner { database, project, clock: Clock::default() }) }
    }

    /// Returns the project whose memories the store holds.
    pub fn project(&self) -> &ProjectId {
        &self.inner.project
    }

    /// Returns the database.
    pub(crate) fn database(&self) -> &Database {
        &self.inner.database
    }

    /// Returns the clock that is used for leases instead of the database's clock once a test has stopped it.
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if the scope names another project.
    fn admit(&self, scope: &Scope) -> tiro_base::error::Result<()> {
        tiro_store::decide::scope::admits(&self.inner.project, scope)
    }
}
