//! Records a turn.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::blobs::{self, Packed};
use super::{ThreadVersion, find_thread};
use crate::SqliteStore;
use crate::connection::blocking;
use crate::error::{Error, Result};
use crate::read::parts;
use crate::read::segments::{find_session, required_session};
use crate::write::save_batch;
use tiro_base::error::{self, Kind, quoted};
use tiro_base::memory::MemoryId;
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_base::thread::{BlockText, ContentHash, FilePlace, LedgerEntry, ThreadName};
use tiro_store::{Outcome, Recorded, TurnRecord};

impl SqliteStore {
    pub(crate) async fn record_turn(
        &self,
        scope: &Scope,
        name: &ThreadName,
        turn: TurnRecord,
    ) -> error::Result<Recorded> {
        let name = name.clone();
        // Compressing takes longer than everything else, so it is done before the transaction begins.
        let (turn, packed) = blocking(move || {
            let packed = blobs::pack(&turn)?;
            Ok((turn, packed))
        })
        .await?;
        self.write(scope, move |connection, scope| record(connection, scope, &name, turn, &packed)).await
    }
}

fn record(
    connection: &Connection,
    scope: &Scope,
    name: &ThreadName,
    mut turn: TurnRecord,
    packed: &BTreeMap<ContentHash, Packed>,
) -> Result<Recorded> {
    let stored = find_thread(connection, scope, name)?;
    continues(connection, stored, &turn)?;
    let session = stored_name(connection, scope, &name.session)?;
    for memory in &mut turn.memories {
        if memory.draft.session.as_ref() == Some(&name.session) {
            memory.draft.session = Some(session.clone());
        }
    }
    // The session was already found in the scope. The scope may name it by an alias, so the memories are stored with a
    // scope of all sessions.
    let whole = Scope { sessions: Sessions::All, ..scope.clone() };
    let receipt = save_batch(connection, &whole, &turn.memories, turn.time)?;
    let taken = receipt
        .outcomes
        .iter()
        .find(|(id, outcome)| *outcome == Outcome::Conflict && (*id == turn.question || *id == turn.answer));
    if let Some((id, _)) = taken {
        return Err(Error::bad_input(format!("another message is stored under the id `{id}` of the turn")));
    }
    let session = required_session(connection, &whole, &session)?;
    let part = parts::of_row(connection, scope, session)?;
    let owner = part.tenant.as_str();
    let thread = put_thread(connection, session, name, &turn)?;
    add_turn(connection, owner, thread, &turn)?;
    let last: i64 = connection
        .prepare_cached("SELECT coalesce(max(place), -1) FROM thread_blocks WHERE thread = ?1")?
        .query_row([thread], |row| row.get(0))?;
    let begins = stored.is_some_and(|found| found.epoch < turn.epoch);
    let before = if begins { last } else { -1 };
    put_blocks(connection, owner, thread, &turn, last + 1)?;
    put_ledger(connection, thread, &turn)?;
    blobs::put(connection, owner, packed)?;
    if begins || !turn.ledger.is_empty() || !turn.ledger_removed.is_empty() {
        blobs::keep_copies(connection, owner, thread, before)?;
    }
    // The old blocks are removed last, so that texts that are still needed stay.
    connection
        .prepare_cached("DELETE FROM thread_blocks WHERE thread = ?1 AND place <= ?2")?
        .execute((thread, before))?;
    blobs::remove_unneeded(connection, owner, packed)?;
    is_not_ahead(connection, thread)?;
    let (evicted, evicted_bytes) = match packed.is_empty() {
        true => (0, 0),
        false => blobs::make_room(connection, owner, thread, turn.max_blob_bytes)?,
    };
    Ok(Recorded { turn: turn.expected_turns + 1, receipt, evicted, evicted_bytes })
}

/// Errors if the turn doesn't continue the stored thread.
fn continues(connection: &Connection, stored: Option<ThreadVersion>, turn: &TurnRecord) -> Result<()> {
    let (epoch, turns) = stored.map_or((0, 0), |found| (found.epoch, found.turns));
    let is_next = turn.epoch == epoch && epoch > 0 || Some(turn.epoch) == epoch.checked_add(1);
    if turns != turn.expected_turns || !is_next {
        return Err(Error::new(Kind::Busy, "another call changed the thread since the prompt was made")
            .hint("call again; the prompt is then made from the thread as it is now"));
    }
    let Some(found) = stored else { return Ok(()) };
    let sql = "SELECT 1 FROM thread_turns WHERE thread = ?1 AND call = ?2";
    if connection.prepare_cached(sql)?.exists((found.seq, &turn.call_id))? {
        return Err(Error::bad_input(format!("the call `{}` was recorded already", quoted(&turn.call_id)))
            .hint("use another `call_id` for another question"));
    }
    Ok(())
}

/// Returns the stored name of the session. `name` may be an alias. A session that doesn't exist yet gets the name
/// `name`.
fn stored_name(connection: &Connection, scope: &Scope, name: &SessionId) -> Result<SessionId> {
    if let Some(seq) = find_session(connection, scope, name)? {
        let stored: String = connection
            .prepare_cached("SELECT name FROM sessions WHERE seq = ?1")?
            .query_row([seq], |row| row.get(0))?;
        return SessionId::parse(&stored)
            .ok_or_else(|| Error::new(Kind::Store, "the store holds an impossible name of a session"));
    }
    match &scope.sessions {
        Sessions::Only(ids) if !ids.contains(name) => {
            Err(Error::not_found(format!("no session `{}`", quoted(name)))
                .hint("`list_sessions` lists this project's sessions"))
        }
        _ => Ok(name.clone()),
    }
}

/// Inserts or updates the row of the thread, and returns its number.
fn put_thread(connection: &Connection, session: i64, name: &ThreadName, turn: &TurnRecord) -> Result<i64> {
    let context = serde_json::to_string(&turn.context)
        .map_err(|error| Error::new(Kind::Store, "cannot store the context of a thread").source(error))?;
    Ok(connection
        .prepare_cached(
            "INSERT INTO threads (session, assistant, epoch, turns, is_fixed, window, created, updated, context,
                 rules)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9)
             ON CONFLICT (session, assistant) DO UPDATE SET
                 epoch = ?3, turns = ?4, is_fixed = ?5, window = ?6, updated = ?7, context = ?8,
                 rules = ?9
             RETURNING seq",
        )?
        .query_row(
            params![
                session,
                name.assistant,
                turn.epoch,
                turn.expected_turns + 1,
                turn.is_fixed,
                turn.window,
                turn.time,
                context,
                turn.rules
            ],
            |row| row.get(0),
        )?)
}

fn add_turn(connection: &Connection, owner: &str, thread: i64, turn: &TurnRecord) -> Result<()> {
    let (question, answer) =
        (living(connection, owner, &turn.question)?, living(connection, owner, &turn.answer)?);
    let receipt = Some(&turn.receipt).filter(|receipt| receipt.len() <= TurnRecord::LONGEST_RECEIPT);
    let spent = &turn.spent;
    // With this limit, the sum over any number of turns doesn't overflow in SQLite, which would be an error.
    let number = |count: u64| count.min(1 << 40).cast_signed();
    connection
        .prepare_cached(
            "INSERT INTO thread_turns (thread, number, epoch, call, question, answer, model, time,
                 prompt, appended, whole, input, cached, output, micros, receipt)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            thread,
            turn.expected_turns + 1,
            turn.epoch,
            turn.call_id,
            question,
            answer,
            turn.model,
            turn.time,
            number(spent.prompt),
            number(spent.appended),
            number(spent.whole),
            number(spent.input),
            number(spent.cached),
            number(spent.output),
            number(spent.micros),
            receipt
        ])?;
    Ok(())
}

/// Returns the row of the question or the answer. Errors with `Kind::NotFound` if the message isn't living.
fn living(connection: &Connection, owner: &str, id: &MemoryId) -> Result<i64> {
    match row_of(connection, owner, id)? {
        Some((seq, true)) => Ok(seq),
        _ => Err(Error::not_found(format!("the message `{id}` of the turn is not stored, or is forgotten"))),
    }
}

/// Returns the row of a memory, and whether it is living.
fn row_of(connection: &Connection, owner: &str, id: &MemoryId) -> Result<Option<(i64, bool)>> {
    Ok(connection
        .prepare_cached("SELECT seq, tombstoned_at IS NULL FROM memories WHERE owner = ?1 AND id = ?2")?
        .query_row((owner, id.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

/// Inserts the blocks of the turn from the place `first` on.
fn put_blocks(
    connection: &Connection,
    owner: &str,
    thread: i64,
    turn: &TurnRecord,
    first: i64,
) -> Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO thread_blocks (thread, place, turn, part, path, tokens, memory, blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (block, place) in turn.blocks.iter().zip(first..) {
        let (memory, blob) = match &block.text {
            BlockText::Message(id, _) => match row_of(connection, owner, id)? {
                Some((seq, _)) => (Some(seq), None),
                // A message of an earlier turn was purged after the prompt was made.
                None => continue,
            },
            BlockText::Blob(hash, _) => (None, Some(blobs::row_of(connection, owner, *hash)?)),
        };
        insert.execute(params![
            thread,
            place,
            block.turn,
            block.part.as_str(),
            block.path,
            block.tokens,
            memory,
            blob
        ])?;
    }
    Ok(())
}

/// Changes the ledger.
fn put_ledger(connection: &Connection, thread: i64, turn: &TurnRecord) -> Result<()> {
    let mut remove = connection.prepare_cached("DELETE FROM thread_files WHERE thread = ?1 AND path = ?2")?;
    for path in &turn.ledger_removed {
        remove.execute((thread, path))?;
    }
    // Rows that are inserted in the order of their keys fill the pages of the table.
    let mut entries: Vec<&LedgerEntry> = turn.ledger.iter().collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    for entry in entries {
        put_entry(connection, thread, entry)?;
    }
    Ok(())
}

/// Errors with `Kind::BadInput` if the ledger has an inline file without a block in the epoch.
fn is_not_ahead(connection: &Connection, thread: i64) -> Result<()> {
    let ahead: Option<String> = connection
        .prepare_cached(
            "SELECT path FROM thread_files WHERE thread = ?1 AND is_inline AND NOT is_removed AND path NOT IN (
                 SELECT path FROM thread_blocks
                 WHERE thread = ?1 AND part IN ('file', 'change') AND path IS NOT NULL)
             LIMIT 1",
        )?
        .query_row([thread], |row| row.get(0))
        .optional()?;
    match ahead {
        Some(path) => Err(Error::bad_input(format!(
            "the ledger has the file `{}` as sent, but no block of the epoch has it",
            quoted(path)
        ))),
        None => Ok(()),
    }
}

fn put_entry(connection: &Connection, thread: i64, entry: &LedgerEntry) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO thread_files (thread, path, is_inline, is_removed, size, mtime, ctime, inode,
                 raw, sent, tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (thread, path) DO UPDATE SET is_inline = ?3, is_removed = ?4, size = ?5, mtime = ?6,
                 ctime = ?7, inode = ?8, raw = ?9, sent = ?10, tokens = ?11",
        )?
        .execute(params![
            thread,
            entry.path,
            entry.place == FilePlace::Inline,
            entry.is_removed,
            entry.stat.map(|stat| stat.size.cast_signed()),
            entry.stat.map(|stat| stat.mtime_ns),
            entry.stat.map(|stat| stat.ctime_ns.wrapping_sub(stat.mtime_ns)),
            entry.stat.map(|stat| stat.inode.cast_signed()),
            entry.raw.0,
            Some(entry.sent.0).filter(|sent| *sent != entry.raw.0),
            entry.tokens
        ])?;
    Ok(())
}
