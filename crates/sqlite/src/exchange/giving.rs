//! A peer to which changes are given: how ids and authors are called in what it gets.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::Result;
use crate::read::parts;
use tiro_base::memory::{Kind, MemoryId, Provenance};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange::{self, Stamp};
use tiro_store::{ExchangedState, WantedChanges};

/// A peer to which changes are given.
pub(super) struct Giving<'g> {
    pub connection: &'g Connection,
    pub scope: &'g Scope,
    /// The peer's name for the reader.
    pub name: Option<&'g AuthorId>,
    pub wanted: &'g WantedChanges,
    /// The names of the parts whose memories are given. The private one comes first.
    pub owners: &'g [String],
}

impl Giving<'_> {
    /// Returns the id under which the memory `id` travels. Returns `None` if the memory is not exchanged, or if the reader
    /// doesn't see it.
    pub fn travelling(&self, id: &str) -> Result<Option<MemoryId>> {
        let tenant = parts::names(self.scope.tenant.as_str()).0;
        for owner in self.owners {
            let found = self
                .connection
                .prepare_cached(
                    "SELECT m.kind, m.provenance, coalesce(m.author, ?3), e.exchange_id
                     FROM memories m JOIN exchange e ON e.memory = m.seq WHERE m.owner = ?1 AND m.id = ?2",
                )?
                .query_row((owner, id, tenant), |row| {
                    let kind = Kind::parse(&row.get::<_, String>(0)?);
                    let provenance = Provenance::parse(&row.get::<_, String>(1)?);
                    let author = AuthorId::new(row.get::<_, String>(2)?);
                    Ok((kind.zip(provenance), author, row.get::<_, Option<String>>(3)?))
                })
                .optional()?;
            let Some((Some((kind, provenance)), author, travelling)) = found else { continue };
            let is_given = self.wanted.kinds.contains(&kind) && exchange::is_exchanged(kind, provenance);
            let Some(id) = MemoryId::parse(id).filter(|_| is_given) else { return Ok(None) };
            return Ok(Some(self.id_of(&id, kind, &author, travelling.as_deref())));
        }
        Ok(None)
    }

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

/// Reads the state of a memory that is not here.
pub(super) fn state(row: &Row<'_>) -> rusqlite::Result<ExchangedState> {
    Ok(ExchangedState {
        is_marked: row.get("is_marked")?,
        importance: row.get("importance")?,
        marked_at: Stamp::from_number(row.get("marked_at")?),
        is_forgotten: row.get("is_forgotten")?,
        forgotten_at: Stamp::from_number(row.get("forgotten_at")?),
        is_purged: row.get("is_purged")?,
    })
}
