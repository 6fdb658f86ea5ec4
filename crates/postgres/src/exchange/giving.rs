//! A peer to which changes are given: how ids and authors are called in what it gets.

use tokio_postgres::Row;

use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange::{self, Stamp};
use tiro_store::{ExchangedState, WantedChanges};

/// A peer to which changes are given.
pub(super) struct Giving<'g> {
    pub tx: &'g Transaction,
    pub scope: &'g Scope,
    /// The peer's name for the reader.
    pub name: Option<&'g AuthorId>,
    pub wanted: &'g WantedChanges,
    /// The parts whose memories are given.
    pub owners: Vec<i64>,
}

impl Giving<'_> {
    /// Returns the id under which a memory travels.
    pub fn id_of(&self, id: &MemoryId, kind: Kind, author: &AuthorId, travelling: Option<&str>) -> MemoryId {
        match (travelling.and_then(MemoryId::parse), self.name) {
            (Some(travelling), _) => travelling,
            (None, Some(name)) if *author == self.scope.reader => exchange::exchange_id(name, kind, id),
            (None, _) => id.clone(),
        }
    }

    /// Returns the name under which an author travels.
    pub fn author_of(&self, author: &AuthorId) -> AuthorId {
        self.name
            .map_or_else(|| author.clone(), |name| exchange::sent_author(name, &self.scope.reader, author))
    }
}

/// The columns of `absent` that [`state`] reads.
pub(super) const STATE: &str = "is_marked, importance, marked_at, is_forgotten, forgotten_at, is_purged";

/// Reads a state from the columns [`STATE`], the first of which is `first`.
pub(super) fn state(row: &Row, first: usize) -> Result<ExchangedState> {
    Ok(ExchangedState {
        is_marked: row.try_get(first)?,
        importance: row.try_get(first + 1)?,
        marked_at: Stamp::from_number(row.try_get(first + 2)?),
        is_forgotten: row.try_get(first + 3)?,
        forgotten_at: Stamp::from_number(row.try_get(first + 4)?),
        is_purged: row.try_get(first + 5)?,
    })
}
