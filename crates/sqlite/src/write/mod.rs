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
use crate::SqliteStore;
use crate::error::Result;
use crate::superseded;
use tiro_base::error;
use tiro_base::memory::{Millis, Provenance};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Outcome, PreparedMemory, Receipt};

/// The maximum number of memories that one transaction stores. A larger write is split, so that other processes can
/// write in between.
const BATCH: usize = 500;

impl SqliteStore {
    pub(crate) async fn save_reporting(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
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

/// Stores memories as `save` does, in the transaction of the caller.
pub(crate) fn save_batch(
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
