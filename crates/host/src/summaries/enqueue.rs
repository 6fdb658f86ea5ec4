//! Puts summaries into the queue. A model will write them.

use crate::ask;
use crate::config::Use;
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::wanted::Wanted;
use tiro_base::error::Result;
use tiro_base::memory::{Level, Millis};
use tiro_base::scope::SessionId;
use tiro_store::{AskedBy, MessageRow};

/// The time that a summary waits after its first failure, in milliseconds.
pub const FIRST_WAIT: Millis = 60_000;

/// The longest time that a session's summary is postponed, in milliseconds. This limit matters if a wrong clock gave
/// the last message a time in the future, or if `summary.update_interval` is longer.
const FARTHEST: Millis = 23 * 60 * 60 * 1000;

/// Queues a summary that the user requested and that a model failed to write.
pub async fn after_failure(engine: &Engine, project: &OpenProject, wanted: &Wanted) -> Result<()> {
    let (Some(first), Some(last)) = (wanted.rows.first(), wanted.rows.last()) else { return Ok(()) };
    let range = (first.ordinal, last.ordinal);
    wait(engine, project, &wanted.session, wanted.level, range, AskedBy::User, FIRST_WAIT).await
}

/// Queues a summary of the session up to its last message, `last`. It is due once the session has had no new message
/// for a while.
pub async fn once_at_rest(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    last: &MessageRow,
) -> Result<()> {
    let rests = last.time.saturating_add(engine.config().options.summary_update_interval());
    let left = rests.saturating_sub(engine.now()).clamp(0, FARTHEST);
    wait(engine, project, session, Level::Standard, (0, last.ordinal), AskedBy::Program, left).await
}

async fn wait(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    level: Level,
    (first, last): (i64, i64),
    asked_by: AskedBy,
    at_least: Millis,
) -> Result<()> {
    let Some(provider) = ask::may_ask(engine, Use::Summarize) else { return Ok(()) };
    let provider = provider.provider.name;
    let wanted = tiro_store::Wanted { session: session.clone(), level, first, last, provider, asked_by };
    let now = engine.now();
    project.books.enqueue(&project.scope, wanted, now + at_least, now).await
}
