//! Segments of the stash whose time is over: a call that writes ends their stash, and one that only reads hides them.

use crate::engine::Engine;
use crate::error::Result;
use crate::filter::{Expiry, Stash};
use crate::project::OpenProject;
use crate::store::{StashExpired, StashedMemory};

/// The most segments that leave at a call. It takes some milliseconds; the rest leaves at later calls, while the server
/// idles, or with `tiro gc`.
const AT_ONCE: usize = 1_000;

/// Ends the stash of what is due, and returns a notice if that failed: an answer may then show expired segments.
pub(super) async fn end(engine: &Engine, project: &OpenProject) -> Option<String> {
    let Expiry { now, made_before } = expiry(engine);
    let ended = project.store.expire_stash(&project.scope, now, made_before, AT_ONCE).await;
    ended.err().map(|why| format!("segments that expired may still be listed: {why}"))
}

/// Returns the part of the stash whose time is not over.
pub(super) async fn hidden(engine: &Engine, project: &OpenProject) -> Result<Stash> {
    let expiry = expiry(engine);
    let due = project.store.expiring_stash(&project.scope, expiry.now, expiry.made_before).await?;
    // The whole stash is searched faster than a part of it.
    Ok(if due == StashExpired::default() { Stash::Only } else { Stash::Unexpired(expiry) })
}

/// Returns whether the time of a segment is over.
pub(super) fn is_over(segment: &StashedMemory, engine: &Engine) -> bool {
    let Expiry { now, made_before } = expiry(engine);
    !segment.is_protected && (segment.expires_at.is_some_and(|at| at <= now) || segment.time < made_before)
}

fn expiry(engine: &Engine) -> Expiry {
    let now = engine.now();
    Expiry { now, made_before: engine.config().options.stash_made_before(now) }
}
