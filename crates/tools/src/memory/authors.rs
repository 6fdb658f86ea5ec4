//! Names the authors of memories that others shared.

use std::collections::{BTreeMap, BTreeSet};

use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::memory::MemoryId;
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
    let keys = store.keys_of(scope, ids.to_vec()).await?.into_iter().flatten().collect();
    let memories = store.memories(scope, keys).await?;
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
    let keys = store.keys_of(scope, ids.to_vec()).await?.into_iter().flatten().collect();
    let memories = store.memories(scope, keys).await?.into_iter();
    let others = memories.filter(|memory| memory.author != scope.reader);
    Ok(others.map(|memory| (memory.id, memory.author.shown().into_owned())).collect())
}

/// Returns memories of others in words: their ids, and who shared them.
pub fn listed(others: &BTreeMap<MemoryId, String>) -> String {
    let line =
        |(id, author): (&MemoryId, &String)| format!("`{id}` was shared by {}", envelope::name(author));
    others.iter().take(MOST_LISTED).map(line).collect::<Vec<_>>().join(", ")
}

/// The most memories of others that an answer lists. Arbitrary.
const MOST_LISTED: usize = 5;
