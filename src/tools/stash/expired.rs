//! Ends the stash of segments whose time is over, before a call looks at it.

use crate::engine::Engine;
use crate::project::OpenProject;

/// The most segments that leave at a call. It takes some milliseconds; the rest leaves at later calls, while the server
/// idles, or with `tiro gc`.
const AT_ONCE: usize = 1_000;

/// Ends the stash of what is due, and returns a notice if that failed: an answer may then show expired segments.
pub(super) async fn end(engine: &Engine, project: &OpenProject) -> Option<String> {
    let now = engine.now();
    let before = engine.config().options.stash_made_before(now);
    let ended = project.store.expire_stash(&project.scope, now, before, AT_ONCE).await;
    ended.err().map(|why| format!("segments that expired may still be listed: {why}"))
}
