//! Stores a finished summary: as a new version of the summary of its messages, and in the cache.

use std::collections::HashSet;
use std::time::Duration;

use crate::caller::{Caller, Task};
use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use crate::summaries::wanted::{Made, Wanted};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryId, MemoryKey, Millis, Provenance};
use tiro_store::{Saved, Summary, source_hash};

/// The longest time to wait for other writers. It is short because the wait delays the answer, and a summary that isn't
/// stored can be made again.
const TURN: Duration = Duration::from_millis(250);

/// Whether a new summary is stored at once or later.
#[derive(Clone, Copy)]
pub enum Keeping<'a> {
    /// Before it is returned.
    Now(&'a WritableProject),
    /// The idle worker stores it, because the call only reads.
    Later,
}

/// Stores the summary, or leaves it to the idle worker. Returns its id as [`keep`] does.
pub async fn keep_as(
    keeping: Keeping<'_>,
    (engine, caller): (&Engine, &Caller),
    project: &OpenProject,
    wanted: &Wanted,
    made: &Made,
    began: Millis,
) -> Result<Option<String>> {
    match keeping {
        Keeping::Now(project) => keep(engine, project, wanted, made, began).await,
        Keeping::Later => leave(caller, project, wanted, made, began).await,
    }
}

/// Stores the summary as a new version of the summary of its messages. Returns its id, or the id of the version that
/// another process has stored since `began`. If one of its messages no longer exists, stores nothing and returns
/// `None`.
pub async fn keep(
    engine: &Engine,
    project: &WritableProject,
    wanted: &Wanted,
    made: &Made,
    began: Millis,
) -> Result<Option<String>> {
    if made.provider == "extractive" {
        project.store.await_turn(&project.scope, TURN).await?;
    }
    let new = version(wanted, made);
    Ok(id_of(project.store.save_version(&project.scope, new, began, engine.now()).await?))
}

/// Leaves the summary to the idle worker, which stores it as [`keep`] does. Returns the id that it will have. Stores
/// nothing.
async fn leave(
    caller: &Caller,
    project: &OpenProject,
    wanted: &Wanted,
    made: &Made,
    began: Millis,
) -> Result<Option<String>> {
    let summary = version(wanted, made);
    let foreseen = project.store.foresee_version(&project.scope, summary.clone(), began).await?;
    if let Saved::Made(id) = &foreseen {
        caller.leave(Task::Keep { id: id.clone(), summary: Box::new(summary), began });
    }
    Ok(id_of(foreseen))
}

/// Returns a summary that a call made and left to the idle worker. Does this only if the summary's messages are still
/// the same.
pub async fn left(caller: &Caller, project: &OpenProject, wanted: &MemoryId) -> Result<Option<Summary>> {
    let summary = caller.left().into_iter().find_map(|task| match task {
        Task::Keep { id, summary, .. } if id == *wanted => Some(summary),
        _ => None,
    });
    let Some(summary) = summary else { return Ok(None) };
    let rows = project.store.session_messages(&project.scope, &summary.session, summary.first).await?;
    let within = rows.iter().take_while(|row| row.ordinal <= summary.last);
    let is_same = source_hash(within.map(|row| &row.id)) == summary.source_hash;
    Ok(is_same.then_some(*summary))
}

/// Returns the id of a stored summary. There is no id if the range was chosen by time and lacks messages between its
/// ends, or if a message was forgotten after it was read.
fn id_of(saved: Saved) -> Option<String> {
    match saved {
        Saved::Made(id) | Saved::AlreadyMade(id) => Some(id.to_string()),
        Saved::SourcesChanged => None,
    }
}

/// Returns the summary as a value that a store can save.
fn version(wanted: &Wanted, made: &Made) -> Summary {
    Summary {
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
    }
}

/// Returns the summary that is cached under `key`.
pub async fn cached(engine: &Engine, project: &OpenProject, key: [u8; 32]) -> Result<Option<Made>> {
    let body = project.store.cached(&project.scope, key, engine.now()).await?;
    Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
}

/// Caches the summary, unless one of its messages was forgotten while it was made.
pub async fn cache(
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
    project.books.cache(&project.scope, key, body, engine.now(), ttl, most).await
}

/// Returns how many of the messages still exist.
pub async fn living(project: &OpenProject, wanted: &Wanted) -> Result<usize> {
    let first = wanted.rows.first().map_or(0, |row| row.ordinal);
    let living = project.store.session_messages(&project.scope, &wanted.session, first).await?;
    let living: HashSet<MemoryKey> = living.iter().map(|row| row.key).collect();
    Ok(wanted.rows.iter().filter(|row| living.contains(&row.key)).count())
}
