//! Stores memories. The rows, index entries and vectors of the memories are written in one transaction, with a few
//! statements for the whole batch.

mod authors;
mod batch;
pub(crate) mod chunks;
mod embedded;
pub(crate) mod evidence;
pub(crate) mod nul;
pub(crate) mod pending;
pub(crate) mod reindex;
pub(crate) mod session;
pub(crate) mod turns;

pub(crate) use batch::{Batch, NewMemory};
pub(crate) use session::Wanted;

use crate::PostgresStore;
use crate::error::Result;
use crate::superseded;
use crate::transactions::{Transaction, write};
use tiro_base::error;
use tiro_base::memory::{Millis, Provenance};
use tiro_base::scope::Scope;
use tiro_store::{Outcome, PreparedMemory, Receipt};

/// The maximum number of memories that one transaction stores. A larger write is split, so that others can write in
/// between.
const BATCH: usize = 500;

impl PostgresStore {
    pub(crate) async fn save_reporting(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
    ) -> error::Result<Receipt> {
        let mut receipt = Receipt::default();
        for some in memories.chunks(BATCH) {
            let done: error::Result<Receipt> =
                write!(self, scope, tx => { save_batch(&tx, scope, some, now).await });
            let done = done?;
            self.database().grew(some.len()).await;
            receipt.outcomes.extend(done.outcomes);
            receipt.pending += done.pending;
            on_batch(receipt.outcomes.len());
        }
        Ok(receipt)
    }
}

/// Does the work of `save` in the transaction of the caller.
pub(crate) async fn save_batch(
    tx: &Transaction,
    scope: &Scope,
    memories: &[PreparedMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut batch = Batch::open(tx, scope, memories, now).await?;
    for memory in memories {
        let outcome = batch.add(tx, scope, NewMemory::of(memory)).await?;
        if outcome == Outcome::Stored {
            receipt.pending += memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count();
        }
        receipt.outcomes.push((memory.id.clone(), outcome));
    }
    let places = batch.close(tx).await?;
    for ((memory, owner), (_, outcome)) in memories.iter().zip(places).zip(&receipt.outcomes) {
        let replaces = &memory.draft.supersedes;
        if matches!(outcome, Outcome::Stored | Outcome::AlreadyStored) && !replaces.is_empty() {
            let is_derived = memory.draft.provenance == Provenance::Derived;
            superseded::supersede(tx, scope, owner, &memory.id, replaces, !is_derived).await?;
        }
    }
    Ok(receipt)
}
