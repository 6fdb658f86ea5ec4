//! Stores a finished summary, as a version of its range and in the cache.

use std::collections::HashSet;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::Result;
use crate::memory::{MemoryKey, Millis, Provenance};
use crate::project::OpenProject;
use crate::store::{Saved, Summary};
use crate::summaries::wanted::{Made, Wanted};

/// How long to wait for other writers. The wait is short because it delays the answer, and a summary that isn't stored
/// can be made again.
const TURN: Duration = Duration::from_millis(250);

/// Stores the summary as a version of its range. Returns its id, or the id of the version that another process has
/// stored since `began`. If one of its messages no longer exists, stores nothing and returns `None`.
pub(crate) async fn keep(
    engine: &Engine,
    project: &OpenProject,
    wanted: &Wanted,
    made: &Made,
    began: Millis,
) -> Result<Option<String>> {
    if made.provider == "extractive" {
        project.store.await_turn(&project.scope, TURN).await?;
    }
    let new = Summary {
        session: wanted.session.clone(),
        segment: None,
        level: wanted.level,
        first: wanted.rows.first().map_or(0, |row| row.ordinal),
        last: wanted.rows.last().map_or(0, |row| row.ordinal),
        messages: wanted.rows.len() as i64,
        text: made.text.clone(),
        tokens: made.tokens as i64,
        provider: made.provider.clone(),
        model: made.model.clone(),
        quality: made.quality,
        provenance: Provenance::lowest(wanted.rows.iter().map(|row| row.provenance)),
        cited: made.cited.clone(),
        source_hash: wanted.hash(),
    };
    match project.store.save_version(&project.scope, new, began, engine.now()).await? {
        Saved::Made(id) | Saved::AlreadyMade(id) => Ok(Some(id.to_string())),
        // Either the range was chosen by time and lacks messages between its ends, or a message was forgotten after it
        // was read.
        Saved::SourcesChanged => Ok(None),
    }
}

/// Caches the summary, unless one of its messages was forgotten while it was made.
pub(crate) async fn cache(
    engine: &Engine,
    project: &OpenProject,
    wanted: &Wanted,
    key: [u8; 32],
    made: &Made,
) -> Result<()> {
    if living(project, wanted).await? < wanted.rows.len() {
        return Ok(());
    }
    let body = serde_json::to_string(made).expect("a summary serialises");
    let options = &engine.config().options;
    let (ttl, most) = (options.cache_ttl(), options.cache_bytes());
    project.store.cache(&project.scope, key, body, engine.now(), ttl, most).await
}

/// Returns how many of the messages still exist.
pub(crate) async fn living(project: &OpenProject, wanted: &Wanted) -> Result<usize> {
    let first = wanted.rows.first().map_or(0, |row| row.ordinal);
    let living = project.store.session_messages(&project.scope, &wanted.session, first).await?;
    let living: HashSet<MemoryKey> = living.iter().map(|row| row.key).collect();
    Ok(wanted.rows.iter().filter(|row| living.contains(&row.key)).count())
}
