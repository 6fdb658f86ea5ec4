//! Names the authors of memories that others shared.

use std::collections::BTreeSet;

use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryId};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::ReadStore;

/// Returns the name of the memory's author, unless that is `reader`.
pub fn other(memory: &Memory, reader: &AuthorId) -> Option<String> {
    (memory.author != *reader).then(|| envelope::escape(memory.author.as_str()).into_owned())
}

/// Returns the names of the authors of living memories, in order, if there are others than the scope's reader.
pub async fn others(store: &dyn ReadStore, scope: &Scope, ids: &[MemoryId]) -> Result<Vec<String>> {
    let keys = store.keys_of(scope, ids.to_vec()).await?.into_iter().flatten().collect();
    let memories = store.memories(scope, keys).await?;
    if memories.iter().all(|memory| memory.author == scope.reader) {
        return Ok(Vec::new());
    }
    let authors: BTreeSet<&str> = memories.iter().map(|memory| memory.author.as_str()).collect();
    Ok(authors.into_iter().map(str::to_owned).collect())
}
