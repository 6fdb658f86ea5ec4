//! Ends the stash of segments whose time is over, before a call looks at it.

use crate::engine::Engine;
use crate::memory::Millis;
use crate::project::OpenProject;

/// The most segments that leave at a call. It takes some milliseconds; the rest leaves at later calls, while the server
/// idles, or with `tiro gc`.
const AT_ONCE: usize = 1_000;

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Ends the stash of what is due, and returns a notice if that failed: an answer may then show expired segments.
pub(super) async fn end(engine: &Engine, project: &OpenProject) -> Option<String> {
    let (now, before) = (engine.now(), made_before(engine));
    let ended = project.store.expire_stash(&project.scope, now, before, AT_ONCE).await;
    ended.err().map(|error| format!("segments that expired may still be listed: {error}"))
}

/// Returns the time before which segments leave the stash by their age.
fn made_before(engine: &Engine) -> Millis {
    match engine.config().options.stash_max_age_days {
        0 => Millis::MIN,
        days => engine.now().saturating_sub(i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY)),
    }
}
