//! Records a turn.

use std::collections::{BTreeMap, HashMap};

use super::blobs::{self, Packed};
use super::{ThreadVersion, find_thread};
use crate::PostgresStore;
use crate::error::{Error, Result};
use crate::owners::SessionRef;
use crate::read::find::{find_session, required_session};
use crate::transactions::{Transaction, write};
use crate::write::save_batch;
use tiro_base::error::{self, Kind, quoted};
use tiro_base::memory::MemoryId;
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_base::thread::{Block, BlockText, ContentHash, FilePlace, LedgerEntry, ThreadName};
use tiro_store::{Outcome, PreparedMemory, Receipt, Recorded, TurnRecord};

impl PostgresStore {
    pub(crate) async fn record_turn(
        &self,
        scope: &Scope,
        name: &ThreadName,
        turn: TurnRecord,
    ) -> error::Result<Recorded> {
        // Compressing takes longer than everything else, so it is done before the transaction begins.
        let (turn, packed) = blobs::pack(turn).await?;
        write!(self, scope, tx => { record(&tx, scope, name, &turn, &packed).await })
    }
}

async fn record(
    tx: &Transaction,
    scope: &Scope,
    name: &ThreadName,
    turn: &TurnRecord,
    packed: &BTreeMap<ContentHash, Packed>,
) -> Result<Recorded> {
    let stored = find_thread(tx, scope, name).await?;
    continues(tx, stored, turn).await?;
    let (receipt, session) = save(tx, scope, name, turn).await?;
    let owner = session.owner;
    let thread = put_thread(tx, session, name, turn).await?;
    add_turn(tx, (owner, thread), turn).await?;
    let sql = "SELECT coalesce(max(place), -1) FROM thread_blocks WHERE owner = $1 AND thread = $2";
    let last: i64 = tx.only(sql, &[&owner, &thread]).await?.try_get(0)?;
    let begins = stored.is_some_and(|found| found.epoch < turn.epoch);
    let before = if begins { last } else { -1 };
    put_blocks(tx, (owner, thread), &turn.blocks, last + 1).await?;
    put_ledger(tx, (owner, thread), turn).await?;
    if !packed.is_empty() {
        blobs::put(tx, owner, packed).await?;
    }
    if begins || !turn.ledger.is_empty() || !turn.ledger_removed.is_empty() {
        blobs::keep_copies(tx, (owner, thread), before).await?;
    }
    // The old blocks are removed last, so that texts that are still needed stay.
    let sql = "DELETE FROM thread_blocks WHERE owner = $1 AND thread = $2 AND place <= $3";
    tx.execute(sql, &[&owner, &thread, &before]).await?;
    is_not_ahead(tx, (owner, thread)).await?;
    let (evicted, evicted_bytes) = match packed.is_empty() {
        true => (0, 0),
        false => {
            blobs::remove_unneeded(tx, owner, packed).await?;
            blobs::make_room(tx, (owner, thread), turn.max_blob_bytes).await?
        }
    };
    Ok(Recorded { turn: turn.expected_turns + 1, receipt, evicted, evicted_bytes })
}

/// Errors if the turn doesn't continue the stored thread.
async fn continues(tx: &Transaction, stored: Option<ThreadVersion>, turn: &TurnRecord) -> Result<()> {
    let (epoch, turns) = stored.map_or((0, 0), |found| (found.epoch, found.turns));
    let is_next = turn.epoch == epoch && epoch > 0 || Some(turn.epoch) == epoch.checked_add(1);
    if turns != turn.expected_turns || !is_next {
        return Err(Error::new(Kind::Busy, "another call changed the thread since the prompt was made")
            .hint("call again; the prompt is then made from the thread as it is now"));
    }
    let Some(found) = stored else { return Ok(()) };
    let sql = "SELECT FROM thread_turns WHERE owner = $1 AND thread = $2 AND call = $3";
    if tx.exists(sql, &[&found.owner, &found.seq, &turn.call_id]).await? {
        let message = format!("the call `{}` was recorded already", quoted(&turn.call_id));
        return Err(Error::new(Kind::BadInput, message).hint("use another `call_id` for another question"));
    }
    Ok(())
}

/// Stores the memories of the turn. Returns their receipt and the session.
async fn save(
    tx: &Transaction,
    scope: &Scope,
    name: &ThreadName,
    turn: &TurnRecord,
) -> Result<(Receipt, SessionRef)> {
    let session = stored_name(tx, scope, &name.session).await?;
    let mut memories: Vec<PreparedMemory> = turn.memories.clone();
    for memory in &mut memories {
        if memory.draft.session.as_ref() == Some(&name.session) {
            memory.draft.session = Some(session.clone());
        }
    }
    // The session was already found in the scope. The scope may name it by an alias, so the memories are stored with a
    // scope of all sessions.
    let whole = Scope { sessions: Sessions::All, ..scope.clone() };
    let receipt = save_batch(tx, &whole, &memories, turn.time).await?;
    let taken = receipt
        .outcomes
        .iter()
        .find(|(id, outcome)| *outcome == Outcome::Conflict && (*id == turn.question || *id == turn.answer));
    if let Some((id, _)) = taken {
        let message = format!("another message is stored under the id `{id}` of the turn");
        return Err(Error::new(Kind::BadInput, message));
    }
    // If the private part was made just now, the transaction doesn't see it as the reader's yet.
    let made = tx
        .row(
            "SELECT s.owner, s.seq FROM owners o JOIN sessions s ON s.owner = o.seq
             WHERE o.tenant = $1 AND o.project = $2 AND o.author = $3 AND s.name = $4",
            &[&scope.tenant.as_str(), &scope.project.as_str(), &scope.reader.as_str(), &session.as_str()],
        )
        .await?;
    let session = match made {
        Some(row) => SessionRef { owner: row.try_get(0)?, seq: row.try_get(1)? },
        None => required_session(tx, &whole, &session).await?,
    };
    Ok((receipt, session))
}

/// Returns the stored name of the session. `name` may be an alias. A session that doesn't exist yet gets the name
/// `name`.
async fn stored_name(tx: &Transaction, scope: &Scope, name: &SessionId) -> Result<SessionId> {
    if let Some(SessionRef { owner, seq }) = find_session(tx, scope, name).await? {
        let sql = "SELECT name FROM sessions WHERE owner = $1 AND seq = $2";
        return crate::columns::word(&tx.only(sql, &[&owner, &seq]).await?, 0, SessionId::parse);
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
async fn put_thread(
    tx: &Transaction,
    session: SessionRef,
    name: &ThreadName,
    turn: &TurnRecord,
) -> Result<i64> {
    let context = serde_json::to_string(&turn.context)
        .map_err(|error| Error::new(Kind::Store, "cannot store the context of a thread").source(error))?;
    let (epoch, turns) = (i64::from(turn.epoch), i64::from(turn.expected_turns) + 1);
    let row = tx
        .only(
            "INSERT INTO threads (owner, session, assistant, epoch, turns, is_fixed, \"window\", created, updated,
                 context, rules)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10)
             ON CONFLICT (owner, session, assistant) DO UPDATE SET epoch = excluded.epoch, turns = excluded.turns,
                 is_fixed = excluded.is_fixed, \"window\" = excluded.\"window\", updated = excluded.updated,
                 context = excluded.context, rules = excluded.rules
             RETURNING seq",
            &[
                &session.owner,
                &session.seq,
                &name.assistant,
                &epoch,
                &turns,
                &turn.is_fixed,
                &i64::from(turn.window),
                &turn.time,
                &context,
                &i64::from(turn.rules),
            ],
        )
        .await?;
    Ok(row.try_get(0)?)
}

async fn add_turn(tx: &Transaction, (owner, thread): (i64, i64), turn: &TurnRecord) -> Result<()> {
    let ids = [turn.question.as_str(), turn.answer.as_str()];
    let sql = "SELECT id, seq FROM memories WHERE owner = $1 AND id = ANY ($2) AND tombstoned_at IS NULL";
    let rows = tx.rows(sql, &[&owner, &&ids[..]]).await?;
    let living: HashMap<&str, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let row_of = |id: &MemoryId| {
        let missing =
            || Error::not_found(format!("the message `{id}` of the turn is not stored, or is forgotten"));
        living.get(id.as_str()).copied().ok_or_else(missing)
    };
    let (question, answer) = (row_of(&turn.question)?, row_of(&turn.answer)?);
    let receipt = Some(&turn.receipt).filter(|receipt| receipt.len() <= TurnRecord::LONGEST_RECEIPT);
    let spent = &turn.spent;
    // With this limit, the sum over any number of turns doesn't overflow, which would be an error.
    let number = |count: u64| count.min(1 << 40).cast_signed();
    tx.execute(
        "INSERT INTO thread_turns (owner, thread, number, epoch, call, question, answer, model, time,
             prompt, appended, whole, input, cached, output, micros, receipt)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        &[
            &owner,
            &thread,
            &(i64::from(turn.expected_turns) + 1),
            &i64::from(turn.epoch),
            &turn.call_id,
            &question,
            &answer,
            &turn.model,
            &turn.time,
            &number(spent.prompt),
            &number(spent.appended),
            &number(spent.whole),
            &number(spent.input),
            &number(spent.cached),
            &number(spent.output),
            &number(spent.micros),
            &receipt,
        ],
    )
    .await?;
    Ok(())
}

/// Inserts the blocks of the turn from the place `first` on.
async fn put_blocks(
    tx: &Transaction,
    (owner, thread): (i64, i64),
    blocks: &[Block],
    first: i64,
) -> Result<()> {
    let (mut ids, mut hashes) = (Vec::new(), Vec::new());
    for block in blocks {
        match &block.text {
            BlockText::Message(id, _) => ids.push(id.as_str()),
            BlockText::Blob(hash, _) => hashes.push(*hash),
        }
    }
    let rows =
        tx.rows("SELECT id, seq FROM memories WHERE owner = $1 AND id = ANY ($2)", &[&owner, &ids]).await?;
    let memories: HashMap<&str, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let blobs = blobs::rows_of(tx, owner, &hashes).await?;
    let mut rows = BlockRows::default();
    for (block, place) in blocks.iter().zip(first..) {
        let (memory, blob) = match &block.text {
            BlockText::Message(id, _) => match memories.get(id.as_str()) {
                Some(seq) => (Some(*seq), None),
                // A message of an earlier turn was purged after the prompt was made.
                None => continue,
            },
            BlockText::Blob(hash, _) => (None, blobs.get(hash).copied()),
        };
        rows.push(place, block, memory, blob);
    }
    tx.execute(
        "INSERT INTO thread_blocks (owner, thread, place, turn, part, path, tokens, memory, blob)
         SELECT $1::bigint, $2::bigint, u.place, u.turn, u.part, u.path, u.tokens, u.memory, u.blob
         FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[])
             AS u (place, turn, part, path, tokens, memory, blob)",
        &[
            &owner,
            &thread,
            &rows.place,
            &rows.turn,
            &rows.part,
            &rows.path,
            &rows.tokens,
            &rows.memory,
            &rows.blob,
        ],
    )
    .await?;
    Ok(())
}

/// The rows of blocks, by column.
#[derive(Default)]
struct BlockRows<'b> {
    place: Vec<i64>,
    turn: Vec<i64>,
    part: Vec<&'static str>,
    path: Vec<Option<&'b str>>,
    tokens: Vec<i64>,
    memory: Vec<Option<i64>>,
    blob: Vec<Option<i64>>,
}

impl<'b> BlockRows<'b> {
    fn push(&mut self, place: i64, block: &'b Block, memory: Option<i64>, blob: Option<i64>) {
        self.place.push(place);
        self.turn.push(block.turn.into());
        self.part.push(block.part.as_str());
        self.path.push(block.path.as_deref());
        self.tokens.push(block.tokens.into());
        self.memory.push(memory);
        self.blob.push(blob);
    }
}

/// Errors with `Kind::BadInput` if the ledger has an inline file without a block in the epoch.
async fn is_not_ahead(tx: &Transaction, (owner, thread): (i64, i64)) -> Result<()> {
    let ahead = tx
        .row(
            "SELECT f.path FROM thread_files f
             WHERE f.owner = $1 AND f.thread = $2 AND f.is_inline AND NOT f.is_removed AND NOT EXISTS (
                 SELECT FROM thread_blocks k WHERE k.owner = f.owner AND k.thread = f.thread AND k.path = f.path
                     AND k.part IN ('file', 'change'))
             LIMIT 1",
            &[&owner, &thread],
        )
        .await?;
    match ahead {
        Some(row) => {
            let path = quoted(row.get::<_, String>(0));
            let message =
                format!("the ledger has the file `{path}` as sent, but no block of the epoch has it");
            Err(Error::new(Kind::BadInput, message))
        }
        None => Ok(()),
    }
}

/// Changes the ledger.
async fn put_ledger(tx: &Transaction, (owner, thread): (i64, i64), turn: &TurnRecord) -> Result<()> {
    if !turn.ledger_removed.is_empty() {
        let sql = "DELETE FROM thread_files WHERE owner = $1 AND thread = $2 AND path = ANY ($3)";
        tx.execute(sql, &[&owner, &thread, &turn.ledger_removed]).await?;
    }
    // If a path is named twice, the last entry counts.
    let entries: BTreeMap<&str, &LedgerEntry> =
        turn.ledger.iter().map(|entry| (entry.path.as_str(), entry)).collect();
    if entries.is_empty() {
        return Ok(());
    }
    let entries = || entries.values();
    let paths: Vec<&str> = entries().map(|entry| entry.path.as_str()).collect();
    let inline: Vec<bool> = entries().map(|entry| entry.place == FilePlace::Inline).collect();
    let removed: Vec<bool> = entries().map(|entry| entry.is_removed).collect();
    let stats = || entries().map(|entry| entry.stat);
    let sizes: Vec<Option<i64>> = stats().map(|stat| Some(stat?.size.cast_signed())).collect();
    let mtimes: Vec<Option<i64>> = stats().map(|stat| Some(stat?.mtime_ns)).collect();
    let ctimes: Vec<Option<i64>> =
        stats().map(|stat| stat.map(|stat| stat.ctime_ns.wrapping_sub(stat.mtime_ns))).collect();
    let inodes: Vec<Option<i64>> = stats().map(|stat| Some(stat?.inode.cast_signed())).collect();
    let raw: Vec<&[u8]> = entries().map(|entry| entry.raw.0.as_slice()).collect();
    let sent: Vec<Option<&[u8]>> =
        entries().map(|entry| Some(entry.sent.0.as_slice()).filter(|_| entry.sent != entry.raw)).collect();
    let tokens: Vec<i64> = entries().map(|entry| entry.tokens.into()).collect();
    tx.execute(
        "INSERT INTO thread_files (owner, thread, path, is_inline, is_removed, size, mtime, ctime, inode, raw, sent,
             tokens)
         SELECT $1::bigint, $2::bigint, u.* FROM unnest($3::text[], $4::bool[], $5::bool[], $6::bigint[],
             $7::bigint[], $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[], $12::bigint[]) u
         ON CONFLICT (owner, thread, path) DO UPDATE SET is_inline = excluded.is_inline,
             is_removed = excluded.is_removed, size = excluded.size, mtime = excluded.mtime, ctime = excluded.ctime,
             inode = excluded.inode, raw = excluded.raw, sent = excluded.sent, tokens = excluded.tokens",
        &[
            &owner, &thread, &paths, &inline, &removed, &sizes, &mtimes, &ctimes, &inodes, &raw, &sent, &tokens,
        ],
    )
    .await?;
    Ok(())
}
