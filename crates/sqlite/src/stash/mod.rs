//! The stash. Memories can be put aside, found again, and brought back.
//!
//! The state of a stashed memory is stored in a separate table (`stashed`), so its text, its vectors and its index
//! entries don't change. Only memories that were given to the stash as text are removed when they expire.

mod assembled;
pub(super) mod chunks;
mod expire_stash;
pub(super) mod read;

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::SqliteStore;
use crate::error::{Error, Result};
use crate::forget::log_chunks;
use crate::read::conditions::Conditions;
use crate::read::parts;
use crate::write::reindex::reindex_memory;
use crate::write::save_batch;
use tiro_base::error;
use tiro_base::humanize;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::Scope;
use tiro_store::{Outcome, PreparedMemory, StashReceipt, Stashing};

impl SqliteStore {
    pub(crate) async fn stash(
        &self,
        scope: &Scope,
        stashing: Stashing,
        now: Millis,
    ) -> error::Result<StashReceipt> {
        self.write(scope, move |connection, scope| stash(connection, scope, &stashing, now)).await
    }

    pub(crate) async fn unstash(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        keep: bool,
    ) -> error::Result<Vec<MemoryId>> {
        let ids = ids.to_vec();
        self.write(scope, move |connection, scope| {
            let mut found = Vec::new();
            for id in ids {
                let Some((memory, ..)) = living(connection, scope, &id)? else { continue };
                let sql = match keep {
                    true => "UPDATE stashed SET is_held_out = 0 WHERE memory = ?1",
                    false => "DELETE FROM stashed WHERE memory = ?1",
                };
                if connection.prepare_cached(sql)?.execute([memory])? > 0 && !found.contains(&id) {
                    found.push(id);
                }
            }
            Ok(found)
        })
        .await
    }
}

/// Does the work of [`SqliteStore::stash`] in the transaction of the caller.
fn stash(connection: &Connection, scope: &Scope, stashing: &Stashing, now: Millis) -> Result<StashReceipt> {
    let mut receipt = StashReceipt::default();
    let mut unknown = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for id in &stashing.named {
        match living(connection, scope, id)? {
            Some((seq, tokens, session)) => rows.push(Row { id: id.clone(), seq, tokens, session }),
            None => unknown.push(id.to_string()),
        }
    }
    if !unknown.is_empty() {
        return Err(Error::not_found(format!("no memory is called {}", humanize::some(&unknown)))
            .hint("nothing was stashed; search results show ids, and SESSION#NUMBER names a message"));
    }
    let given: HashSet<&MemoryId> = stashing.given.iter().map(|memory| &memory.id).collect();
    receipt.pending = store_given(connection, scope, &stashing.given, now)?;
    for memory in &stashing.given {
        let (seq, tokens, session) =
            living(connection, scope, &memory.id)?.ok_or_else(|| gone(&memory.id))?;
        rows.push(Row { id: memory.id.clone(), seq, tokens, session });
    }
    let mut seen = HashSet::new();
    rows.retain(|row| seen.insert(row.seq));
    let mut by_session: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for row in rows {
        let is_new = put(connection, stashing, &row, given.contains(&row.id), now)?;
        receipt.tokens += row.tokens;
        if let Some(session) = row.session {
            by_session.entry(session).or_default().push(row.seq);
        }
        receipt.outcomes.push((row.id, is_new));
    }
    if stashing.cause.holds_out() {
        for (session, memories) in by_session {
            receipt.freed += assembled::free(connection, session, &memories)?;
        }
    }
    Ok(receipt)
}

/// A memory to stash.
struct Row {
    id: MemoryId,
    seq: i64,
    tokens: i64,
    session: Option<i64>,
}

/// Returns the row, the tokens and the session of a living memory of the scope. The reader's private part is searched
/// first.
fn living(connection: &Connection, scope: &Scope, id: &MemoryId) -> Result<Option<(i64, i64, Option<i64>)>> {
    for part in parts::seen(connection, scope)?.iter().rev() {
        let Conditions { sql, values } = Conditions::of_scope(connection, part)?;
        let sql = format!("SELECT m.seq, m.tokens, m.session FROM memories m WHERE {sql} AND m.id = ?");
        let values = values.into_iter().chain([id.as_str().to_owned().into()]);
        let row = connection
            .prepare_cached(&sql)?
            .query_row(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        if row.is_some() {
            return Ok(row);
        }
    }
    Ok(None)
}

/// Stores the given memories, and restores those that were forgotten. Returns how many chunks of these memories have no
/// embedding.
fn store_given(
    connection: &Connection,
    scope: &Scope,
    given: &[PreparedMemory],
    now: Millis,
) -> Result<usize> {
    let receipt = save_batch(connection, scope, given, now)?;
    for (id, outcome) in &receipt.outcomes {
        match outcome {
            Outcome::Conflict => return Err(gone(id)),
            Outcome::Forgotten => revive(connection, scope, id)?,
            Outcome::Stored | Outcome::AlreadyStored | Outcome::Repeated => {}
        }
    }
    for memory in given {
        renew(connection, scope, memory, now)?;
    }
    Ok(receipt.pending)
}

/// Restores a forgotten memory that is given to the stash again. Does nothing if it was purged.
fn revive(connection: &Connection, scope: &Scope, id: &MemoryId) -> Result<()> {
    let Some((seq, false)) = parts::row_of(connection, scope, id.as_str())? else { return Ok(()) };
    connection.prepare_cached("UPDATE memories SET tombstoned_at = NULL WHERE seq = ?1")?.execute([seq])?;
    log_chunks(connection, seq, "added")?;
    reindex_memory(connection, MemoryKey::from_store(seq))
}

/// Handles a text that is given again after it expired. Removes its former row of the stash, and sets its new time, so
/// that it does not expire again because of its age.
fn renew(connection: &Connection, scope: &Scope, memory: &PreparedMemory, now: Millis) -> Result<()> {
    let Some((seq, _)) = parts::row_of(connection, scope, memory.id.as_str())? else { return Ok(()) };
    connection
        .prepare_cached("DELETE FROM stashed WHERE memory = ?1 AND NOT is_protected AND expires_at <= ?2")?
        .execute((seq, now))?;
    connection
        .prepare_cached("UPDATE memories SET time = ?2 WHERE seq = ?1 AND time < ?2")?
        .execute((seq, memory.draft.time))?;
    Ok(())
}

fn gone(id: &MemoryId) -> Error {
    Error::not_found(format!("the text of segment `{id}` was purged before, so it is not stored again"))
        .hint("nothing was stashed; leave that segment out")
}

/// Puts a memory into the stash, or changes its terms if it is already there. Returns whether the memory is new in the
/// stash.
fn put(connection: &Connection, stashing: &Stashing, row: &Row, is_given: bool, now: Millis) -> Result<bool> {
    let holds_out = stashing.cause.holds_out();
    let is_new = connection
        .prepare_cached(
            "INSERT INTO stashed (memory, owner, stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause)
             SELECT seq, owner, ?2, ?3, ?4, ?5, ?6, coalesce(?7, topic), ?8 FROM memories WHERE seq = ?1
             ON CONFLICT (memory) DO NOTHING",
        )?
        .execute(params![
            row.seq,
            now,
            stashing.expires_at,
            stashing.is_protected.unwrap_or(false),
            holds_out,
            is_given,
            stashing.topic,
            stashing.cause.as_str(),
        ])?
        == 1;
    if !is_new && holds_out {
        connection
            .prepare_cached(
                "UPDATE stashed SET expires_at = coalesce(?2, expires_at), is_protected = coalesce(?3, is_protected),
                     topic = coalesce(?4, topic), is_held_out = 1, cause = ?5 WHERE memory = ?1",
            )?
            .execute(params![
                row.seq,
                stashing.expires_at,
                stashing.is_protected,
                stashing.topic,
                stashing.cause.as_str(),
            ])?;
    }
    Ok(is_new)
}
