//! What a store knows of the memory of an incoming change.

use rusqlite::Connection;

use super::giving::state;
use super::ids;
use super::settled::Settled;
use crate::error::Result;
use crate::read::memories;
use crate::read::parts;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange::{self, KnownState, Stamp};
use tiro_store::{ExchangedState, Incoming};

/// The memory of an incoming change.
pub(super) struct Known {
    pub state: KnownState,
    pub at: At,
    /// Whether the memory belongs to the reader.
    pub is_own: bool,
}

/// Where a known memory is.
pub(super) enum At {
    /// In a row of `memories`.
    Here(i64),
    /// Nowhere: only its state is known, by its part and its id.
    Absent(String, String),
}

/// Finds the memory of a change whose author is called `author` here. What is here counts before what is only remembered,
/// and the reader's private part before the shared one. `settled` has the states that earlier changes of the same call
/// gave to memories.
pub(super) fn find(
    connection: &Connection,
    scope: &Scope,
    (incoming, author): (&Incoming, &AuthorId),
    peer: &str,
    settled: &Settled,
) -> Result<Option<Known>> {
    for owner in parts::both(scope).iter().rev() {
        if let Some(seq) = ids::row_of(connection, owner, &incoming.id)? {
            let mut known = here(connection, scope, (owner, seq), (incoming, author), peer)?;
            known.state.state = settled.state(seq).unwrap_or(known.state.state);
            return Ok(Some(known));
        }
    }
    for owner in parts::both(scope).iter().rev() {
        if has_commit(connection, owner, incoming)? {
            let at = At::Absent(owner.clone(), incoming.id.as_str().to_owned());
            return Ok(Some(Known {
                state: KnownState::under_another_id(),
                at,
                is_own: *author == scope.reader,
            }));
        }
        if let Some(known) = absent(connection, scope, owner, (incoming, author), peer)? {
            return Ok(Some(known));
        }
        if is_purged(connection, owner, &incoming.id)? {
            let at = At::Absent(owner.clone(), incoming.id.as_str().to_owned());
            let is_own = *author == scope.reader;
            return Ok(Some(Known { state: KnownState::purged(), at, is_own }));
        }
    }
    Ok(None)
}

/// Returns what is known of the memory in a row.
fn here(
    connection: &Connection,
    scope: &Scope,
    (owner, seq): (&str, i64),
    (incoming, named): (&Incoming, &AuthorId),
    peer: &str,
) -> Result<Known> {
    let (id, by, author, hash, state): (String, Option<String>, Option<String>, Vec<u8>, _) = connection
        .prepare_cached(
            "SELECT m.id, e.changed_by, m.author, m.text_hash, m.marked, m.importance, e.marked_at, e.forgotten_at,
                 m.tombstoned_at IS NOT NULL AS is_forgotten
             FROM memories m JOIN exchange e ON e.memory = m.seq WHERE m.seq = ?1",
        )?
        .query_row([seq], |row| {
            let state = ExchangedState {
                is_marked: row.get("marked")?,
                importance: row.get("importance")?,
                marked_at: Stamp::from_number(row.get("marked_at")?),
                is_forgotten: row.get("is_forgotten")?,
                forgotten_at: Stamp::from_number(row.get("forgotten_at")?),
                is_purged: false,
            };
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, state))
        })?;
    let is_same = match &incoming.content {
        Some(content) if !state.is_forgotten => {
            let text = &content.memory.draft.text;
            hash == blake3::hash(text.as_bytes()).as_bytes()
                || match MemoryId::parse(&id) {
                    Some(id) => memories::is_alike(connection, owner, &id, text)?,
                    None => false,
                }
        }
        // The text of a forgotten memory doesn't matter.
        _ => true,
    };
    let is_private = parts::names(owner).1.is_some();
    let author = author.as_deref().unwrap_or(parts::names(scope.tenant.as_str()).0);
    let is_own = is_private || author == scope.reader.as_str();
    let (is_by_author, is_of_peer) = (author == named.as_str(), by.as_deref() == Some(peer));
    let state = KnownState { state, is_here: true, is_by_author, is_same, is_of_peer };
    Ok(Known { state, at: At::Here(seq), is_own })
}

/// Returns what is known of a memory that is not here, if it counts for a change of `named`. Several people may have had a
/// commit that travels under the id.
fn absent(
    connection: &Connection,
    scope: &Scope,
    owner: &str,
    (incoming, named): (&Incoming, &AuthorId),
    peer: &str,
) -> Result<Option<Known>> {
    let mut statement = connection.prepare_cached(
        "SELECT * FROM absent WHERE owner = ?1 AND exchange_id = ?2
         UNION ALL SELECT * FROM absent WHERE owner = ?1 AND id = ?2 AND exchange_id IS NULL",
    )?;
    let mut rows = statement.query((owner, incoming.id.as_str()))?;
    while let Some(row) = rows.next()? {
        let author: Option<String> = row.get("author")?;
        let author = AuthorId::new(author.as_deref().unwrap_or(parts::names(scope.tenant.as_str()).0));
        let state = state(row)?;
        if exchange::counts(&state, &author, named, &scope.reader) {
            let by: Option<String> = row.get("changed_by")?;
            let is_own = parts::names(owner).1.is_some() || author == scope.reader;
            let state = KnownState::absent(state, by.as_deref() == Some(peer));
            return Ok(Some(Known { state, at: At::Absent(owner.to_owned(), row.get("id")?), is_own }));
        }
    }
    Ok(None)
}

/// Returns whether a part has the commit whose content came.
fn has_commit(connection: &Connection, owner: &str, incoming: &Incoming) -> Result<bool> {
    let Some(sha) = incoming.commit() else { return Ok(false) };
    Ok(connection
        .prepare_cached("SELECT 1 FROM commit_ids WHERE owner = ?1 AND sha = ?2")?
        .exists((owner, sha))?)
}

/// Returns whether the id was purged in a part without a trace of the memory's author and kind.
fn is_purged(connection: &Connection, owner: &str, id: &MemoryId) -> Result<bool> {
    Ok(connection
        .prepare_cached(
            "SELECT 1 FROM purged WHERE owner = ?1 AND id = ?2
                 AND NOT EXISTS (SELECT 1 FROM absent WHERE owner = ?1 AND id = ?2)",
        )?
        .exists((owner, id.as_str()))?)
}
