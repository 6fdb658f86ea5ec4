//! Names the authors of memories that others shared.

use std::collections::{BTreeMap, BTreeSet};

use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::humanize;
use tiro_base::memory::{Memory, MemoryId};
use tiro_base::scope::Scope;
use tiro_store::ReadStore;

/// Returns the end of a line that names the author, if there is one.
pub fn by(author: Option<&str>) -> String {
    author.map(|author| format!(", shared by {}", envelope::name(author))).unwrap_or_default()
}

/// Returns an excerpt whose first line, in brackets, also names the author, if there is one.
pub fn with_author(excerpt: String, author: Option<&str>) -> String {
    match (author, excerpt.split_once("]\n")) {
        (Some(_), Some((head, rest))) => format!("{head}{}]\n{rest}", by(author)),
        _ => excerpt,
    }
}

/// Returns the names of the authors of living memories, in order, if there are others than the scope's reader.
pub async fn others(store: &dyn ReadStore, scope: &Scope, ids: &[MemoryId]) -> Result<Vec<String>> {
    let memories = living(store, scope, ids).await?;
    if memories.iter().all(|memory| memory.author == scope.reader) {
        return Ok(Vec::new());
    }
    let authors: BTreeSet<String> =
        memories.iter().map(|memory| memory.author.shown().into_owned()).collect();
    Ok(authors.into_iter().collect())
}

/// Returns which of `ids` are living memories of others, with the names of their authors.
pub async fn of_others(
    store: &dyn ReadStore,
    scope: &Scope,
    ids: &[MemoryId],
) -> Result<BTreeMap<MemoryId, String>> {
    let memories = living(store, scope, ids).await?;
    let others = memories.into_iter().filter(|memory| memory.author != scope.reader);
    Ok(others.map(|memory| (memory.id, memory.author.shown().into_owned())).collect())
}

/// Returns memories of others in words: their ids, and who shared them.
pub fn listed(others: &BTreeMap<MemoryId, String>) -> String {
    let ids: Vec<String> = others.keys().map(MemoryId::to_string).collect();
    let authors: BTreeSet<&str> = others.values().map(String::as_str).collect();
    let authors: Vec<_> = authors.into_iter().map(envelope::name).collect();
    format!("{}: this was shared by {}", humanize::some(&ids), authors.join(", "))
}

/// Returns those of the memories `ids` that are living.
pub async fn living(store: &dyn ReadStore, scope: &Scope, ids: &[MemoryId]) -> Result<Vec<Memory>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let keys = store.keys_of(scope, ids.to_vec()).await?.into_iter().flatten().collect();
    store.memories(scope, keys).await
}
