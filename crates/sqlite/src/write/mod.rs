//! Stores memories. The rows, index entries and vectors of the memories are written in one transaction.

mod authors;
pub(super) mod chunks;
mod embedded;
mod mend;
pub(super) mod one;
pub(super) mod pending;
pub(super) mod record;
pub(super) mod reindex;
pub(super) mod session;
pub(super) mod turns;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::Connection;

use self::one::save_one;
use self::session::OpenSession;
use crate::SqliteStore;
use crate::error::Result;
use crate::read::parts::{self, Place};
use crate::superseded;
use tiro_base::error;
use tiro_base::memory::{Millis, Provenance};
use tiro_base::scope::{Scope, SessionId, TenantId};
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

/// Does the work of `save` in the transaction of the caller.
pub(crate) fn save_batch(
    connection: &Connection,
    scope: &Scope,
    memories: &[PreparedMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut sessions: HashMap<(TenantId, SessionId), OpenSession> = HashMap::new();
    for memory in memories {
        let Place { part, session } = parts::of_draft(connection, scope, &memory.draft)?;
        let session = match session {
            Some(id) => {
                let session = match sessions.entry((part.tenant.clone(), id.clone())) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(OpenSession::open(connection, &part, &id)?),
                };
                session.head = memory.draft.head_sha.clone().or(session.head.take());
                session.branch = memory.draft.branch.clone().or(session.branch.take());
                Some(session)
            }
            None => None,
        };
        let outcome = save_one(connection, &part, memory, session, now)?;
        if matches!(outcome, Outcome::Stored | Outcome::AlreadyStored) && !memory.draft.supersedes.is_empty()
        {
            let is_derived = memory.draft.provenance == Provenance::Derived;
            superseded::supersede(
                connection,
                scope,
                &part,
                &memory.id,
                &memory.draft.supersedes,
                !is_derived,
            )?;
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
