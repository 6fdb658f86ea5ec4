//! Stashes what a client compacted: the messages of a session before the place at which its transcript shows a compaction.
//!
//! A hook alone proves no compaction: some clients run theirs before every request. The messages stay in the contexts that
//! Tiro assembles. An agent whose window was just compacted asks for exactly these contexts, and the stash is a second way
//! to the messages.

use std::collections::HashSet;

use crate::engine::Engine;
use crate::error::Result;
use crate::memory::MemoryId;
use crate::project::OpenProject;
use crate::scope::SessionId;
use crate::store::{StashCause, Stashing};

/// Stashes the messages of the session, except those that came after the compaction: `rest` has the ids that the client
/// gave them. Messages that are stashed already stay as they are.
pub(super) async fn stash(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    rest: &HashSet<String>,
) -> Result<()> {
    let (store, scope) = (&project.store, &project.scope);
    let rows = store.session_messages(scope, session, 0).await?;
    // Only the last messages can be among the rest.
    let last = &rows[rows.len().saturating_sub(rest.len())..];
    let memories = store.memories(scope, last.iter().map(|row| row.key).collect()).await?;
    let is_of_rest = |source: &Option<String>| source.as_ref().is_some_and(|id| rest.contains(id));
    let after: HashSet<MemoryId> =
        memories.into_iter().filter(|memory| is_of_rest(&memory.source_id)).map(|memory| memory.id).collect();
    let named: Vec<MemoryId> = rows.into_iter().map(|row| row.id).filter(|id| !after.contains(id)).collect();
    if named.is_empty() {
        return Ok(());
    }
    let stashing = Stashing {
        named,
        given: Vec::new(),
        cause: StashCause::Compaction,
        expires_at: None,
        is_protected: None,
        topic: None,
    };
    store.stash(scope, stashing, engine.now()).await.map(drop)
}
