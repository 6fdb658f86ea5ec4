//! Stashes what a client is about to compact: the messages of a session up to the moment at which its hook ran.
//!
//! The messages stay in the contexts that Tiro assembles. An agent whose window was just compacted asks for exactly these
//! contexts, and the stash is a second way to the messages.

use std::path::Path;

use crate::engine::Engine;
use crate::error::Result;
use crate::ingest::cursor::Cursor;
use crate::memory::{MemoryId, Millis};
use crate::project::OpenProject;
use crate::scope::SessionId;
use crate::store::{StashCause, Stashing};

/// Stashes the messages that the session of the transcript `path` had at `at`. Messages that are stashed already stay as
/// they are.
///
/// The name under which the cursor of the transcript is stored is `source`.
pub(super) async fn stash(
    engine: &Engine,
    project: &OpenProject,
    (source, path): (&str, &Path),
    at: Millis,
) -> Result<()> {
    let (cursor, _) = Cursor::of(project, source, path).await?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = cursor.about().session.unwrap_or(stem);
    let session = SessionId::read(&project.redactor, "session", &name)?;
    let rows = project.store.session_messages(&project.scope, &session, 0).await?;
    let named: Vec<MemoryId> = rows.into_iter().filter(|row| row.time <= at).map(|row| row.id).collect();
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
    project.store.stash(&project.scope, stashing, engine.now()).await.map(drop)
}
