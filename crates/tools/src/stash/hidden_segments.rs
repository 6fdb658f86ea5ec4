//! Finds expired segments of the stash. Calls hide them. `tiro gc` and the idle worker remove them later.

use std::collections::HashSet;

use tiro_base::error::Result;
use tiro_base::filter::{Expiry, Stash};
use tiro_base::memory::MemoryKey;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_store::{StashExpired, StashedMemory};

/// Returns the part of the stash that is not expired.
pub(super) async fn hidden(engine: &Engine, project: &OpenProject) -> Result<Stash> {
    let expiry = expiry(engine);
    let due = project.store.expiring_stash(&project.scope, expiry.now, expiry.made_before).await?;
    // The whole stash is searched faster than a part of it.
    Ok(if due == StashExpired::default() { Stash::Only } else { Stash::Unexpired(expiry) })
}

/// Returns whether a segment is expired.
pub(super) fn is_over(segment: &StashedMemory, engine: &Engine) -> bool {
    let Expiry { now, made_before } = expiry(engine);
    !segment.is_protected && (segment.expires_at.is_some_and(|at| at <= now) || segment.time < made_before)
}

/// Returns which of `memories` are expired texts that were given to the stash.
pub(crate) async fn given_and_over(
    engine: &Engine,
    project: &OpenProject,
    memories: Vec<MemoryKey>,
) -> Result<HashSet<MemoryKey>> {
    let stashed = project.store.stashed(&project.scope, memories).await?;
    let over = stashed.into_iter().filter(|segment| segment.is_given && is_over(segment, engine));
    Ok(over.map(|segment| segment.key).collect())
}

fn expiry(engine: &Engine) -> Expiry {
    let now = engine.now();
    Expiry { now, made_before: engine.config().options.stash_made_before(now) }
}
