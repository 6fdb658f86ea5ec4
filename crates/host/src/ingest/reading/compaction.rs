//! Stashes what a client compacted: the messages of a session before the place at which its transcript shows a compaction.
//!
//! A hook alone proves no compaction: some clients run theirs before every request. The messages stay in the contexts that
//! Tiro assembles. An agent whose window was just compacted asks for exactly these contexts, and the stash is a second way
//! to the messages.

use crate::engine::Engine;
use crate::project::WritableProject;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::MemoryId;
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::{StashCause, Stashing};

/// How many messages after a compaction are looked for in the store. Arbitrary: the first is there, unless it was left out.
const LOOKED_FOR: usize = 20;

/// Stashes the messages of the session before the compaction. `rest` has the ids that the client gave the messages after
/// it, in order. Messages that are stashed already stay as they are.
pub(super) async fn stash(
    engine: &Engine,
    project: &WritableProject,
    session: &SessionId,
    rest: &[String],
) -> Result<()> {
    let store = &project.store;
    let scope = Scope { sessions: Sessions::Only(vec![session.clone()]), ..project.scope.clone() };
    let mut first_after = None;
    for id in rest.iter().take(LOOKED_FOR) {
        let filter = Filter { source_id: Some(id.clone()), ..Filter::default() };
        let found = store.list(&scope, &filter, None, 1).await?;
        first_after = found.first().and_then(|memory| memory.ordinal);
        if first_after.is_some() {
            break;
        }
    }
    let rows = store.session_messages(&scope, session, 0).await?;
    let before = rows.into_iter().filter(|row| first_after.is_none_or(|after| row.ordinal < after));
    let named: Vec<MemoryId> = before.map(|row| row.id).collect();
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
    store.stash(&scope, stashing, engine.now()).await.map(drop)
}
