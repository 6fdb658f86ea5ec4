//! Stores memories: their rows, index entries and vectors in one transaction.

mod authors;
pub(super) mod chunks;
mod embedded;
mod mend;
pub(super) mod one;
pub(super) mod pending;
pub(super) mod record;
mod reindex;
pub(super) mod session;
pub(super) mod turns;

use std::collections::HashMap;

use rusqlite::Connection;

use self::one::save_one;
use self::session::OpenSession;
use crate::sqlite::error::Result;
use crate::sqlite::superseded;
use crate::{Outcome, PreparedMemory, Receipt, Store};
use tiro_base::error;
use tiro_base::memory::{Millis, Provenance};
use tiro_base::scope::{Scope, SessionId};

/// The maximum number of memories that one transaction stores. A larger write is split, so that other processes can
/// write in between.
const BATCH: usize = 500;

impl Store {
    /// Stores `memories` in order with the date `now`, and returns the result of each.
    ///
    /// Storing is idempotent: a memory whose id exists is not stored again, and one that was forgotten stays
    /// forgotten. A derived memory is stored only if all its sources are living. A message gets the next
    /// ordinal of its session; if two callers write to the same session at once, the ordinals follow the order
    /// of their transactions.
    ///
    /// A memory that names others it replaces supersedes them in the same transaction. Errors with
    /// [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if one of them is not a living memory of the scope, and
    /// with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if it would replace itself, directly or through
    /// others; then nothing of the transaction is stored.
    ///
    /// Writes of more than 500 memories take several transactions, in order; after each, `on_batch` gets the
    /// number of memories that are durable so far. If a transaction fails, the earlier ones stay, and a
    /// repeated call stores the rest.
    pub async fn save(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        mut on_batch: impl FnMut(usize) + Send,
    ) -> error::Result<Receipt> {
        let mut receipt = Receipt::default();
        let mut memories = memories.into_iter().peekable();
        while memories.peek().is_some() {
            let batch: Vec<PreparedMemory> = memories.by_ref().take(BATCH).collect();
            let done = self
                .write(scope, move |connection, scope| save_batch(connection, scope, &batch, now))
                .await?;
            receipt.outcomes.extend(done.outcomes);
            receipt.pending += done.pending;
            on_batch(receipt.outcomes.len());
        }
        Ok(receipt)
    }
}

/// Stores memories as [`Store::save`] does, in the transaction of the caller.
pub(in crate::sqlite) fn save_batch(
    connection: &Connection,
    scope: &Scope,
    memories: &[PreparedMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut sessions: HashMap<&SessionId, OpenSession> = HashMap::new();
    for memory in memories {
        if let Some(id) = &memory.draft.session {
            if !sessions.contains_key(id) {
                sessions.insert(id, OpenSession::open(connection, scope, id)?);
            }
            let session = sessions.get_mut(id).expect("inserted above");
            session.head = memory.draft.head_sha.clone().or(session.head.take());
            session.branch = memory.draft.branch.clone().or(session.branch.take());
        }
        let session = memory.draft.session.as_ref().map(|id| sessions.get_mut(id).expect("opened above"));
        let outcome = save_one(connection, scope, memory, session, now)?;
        if matches!(outcome, Outcome::Stored | Outcome::AlreadyStored) && !memory.draft.supersedes.is_empty()
        {
            let is_derived = memory.draft.provenance == Provenance::Derived;
            superseded::supersede(connection, scope, &memory.id, &memory.draft.supersedes, !is_derived)?;
        }
        if outcome == Outcome::Stored {
            receipt.pending += memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count();
        }
        receipt.outcomes.push((memory.id.clone(), outcome));
    }
    for session in sessions.values() {
        session.close(connection)?;
    }
    Ok(receipt)
}
