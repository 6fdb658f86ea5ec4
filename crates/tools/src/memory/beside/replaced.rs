//! Finds what replaced memories.

use std::collections::BTreeMap;

use crate::memory::hits::SupersededBy;
use crate::memory::hits::from_memory::superseded_by;
use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryKey};
use tiro_base::scope::Scope;
use tiro_store::{ReadStore, ReplacementQuery};

/// Returns what replaced those of `memories` that were replaced, as a whole or in one of their statements.
pub async fn of(
    store: &dyn ReadStore,
    scope: &Scope,
    memories: &[&Memory],
) -> Result<BTreeMap<MemoryKey, SupersededBy>> {
    let stored: Vec<&&Memory> = memories.iter().filter(|memory| memory.key.is_stored()).collect();
    if stored.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted = ReplacementQuery {
        memories: stored.iter().map(|memory| memory.key).collect(),
        ..ReplacementQuery::default()
    };
    let mut replaced = BTreeMap::new();
    for superseded in store.replacements(scope, wanted).await?.superseded {
        if let Some(memory) = stored.iter().find(|memory| memory.key == superseded.memory) {
            replaced.entry(memory.key).or_insert_with(|| superseded_by(&superseded, &memory.text));
        }
    }
    Ok(replaced)
}
