//! Asks models for the summaries in the queue. These are the summaries that a model failed to write, and the summaries
//! of sessions that have had no new message for a while.
//!
//! Nothing is queued unless the user named a provider for summaries. The idle server asks for one summary at a time, in
//! one process per project, with pauses. After each failure, a summary waits longer for its next try. After several
//! failures, it is dropped from the queue. Until a model's summary is stored, the summary of chosen sentences is used.

use std::time::Duration;

use crate::ask;
use crate::caller::{Caller, WritingCaller};
use crate::config::{Options, Use};
use crate::engine::{Duty, Engine};
use crate::project::WritableProject;
use crate::summaries::wanted::Wanted;
use crate::summaries::{deadline, make, sessions};
use tiro_base::error::{Kind, Result};
use tiro_base::memory::{Level, Millis};
use tiro_store::Queued;

/// The shortest pause between two summaries of the queue.
const PAUSE: Duration = Duration::from_secs(5);

/// If this many milliseconds have passed since a summary's deadline, the process that requested the summary is
/// considered dead.
const GRACE: Millis = 60_000;

/// The time that a summary waits after its first failure, in milliseconds. Each further wait is four times as long as
/// the previous one. A wait is never shorter than the wait that the provider requested.
const FIRST_WAIT: Millis = 60_000;
/// Processes the queue until this future is dropped. It opens no store itself, and uses only a project that a call has
/// opened.
pub async fn keep_up(engine: &Engine, caller: &WritingCaller) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(project) = caller.opened_project(engine) else { continue };
        let Some(_turn) = engine.works_on(&project.scope.project, Duty::Asking) else { continue };
        if let Err(error) = step(engine, caller, &project).await {
            tracing::debug!(%error, "no model was asked for a queued summary");
        }
    }
}

/// Asks for one summary, if one is due and no other process is asking for one.
async fn step(engine: &Engine, caller: &Caller, project: &WritableProject) -> Result<()> {
    let (store, scope, holder) = (project.store.as_ref(), &project.scope, engine.process());
    let now = engine.now();
    if ask::may_ask(engine, Use::Summarize).is_none()
        || !store.is_queue_due(scope, now).await?
        || !ask::is_welcome(engine, Use::Summarize).await?
    {
        return Ok(());
    }
    if !store.lease(scope, "asking", holder, lease(&engine.config().options)).await? {
        return Ok(());
    }
    let asked = next(engine, caller, project).await;
    // The lease is held during the pause, so that other processes pause too.
    store.lease(scope, "asking", holder, PAUSE.as_millis() as Millis).await?;
    asked
}

/// Returns how long a process may keep other processes from asking models, in milliseconds. This is longer than the
/// longest time for a summary.
fn lease(options: &Options) -> Millis {
    // A summary may exceed its deadline by up to a tenth.
    let longest = deadline::longest(options).as_millis() / 10 * 11;
    Millis::try_from(longest).unwrap_or(Millis::MAX / 2).saturating_add(GRACE)
}

async fn next(engine: &Engine, caller: &Caller, project: &WritableProject) -> Result<()> {
    let (store, scope, holder) = (project.store.as_ref(), &project.scope, engine.process());
    let Some(Queued { key, wanted, tries }) =
        store.next_queued(scope, holder, lease(&engine.config().options), engine.now()).await?
    else {
        return Ok(());
    };
    let made = make(engine, caller, project, &wanted).await;
    let now = engine.now();
    match made {
        Ok(()) => store.finish(scope, key, holder, now).await,
        // All messages of the summary were forgotten.
        Err(error) if error.kind() == Kind::NotFound => store.drop_queued(scope, key, holder).await,
        Err(error) => {
            let wait = match error.kind() {
                // The spending limit of the day or month may allow another request later.
                Kind::Limit => ask::LONGEST_WAIT,
                _ => FIRST_WAIT << (2 * tries.clamp(0, 8)),
            };
            let asked =
                error.retry_after().map_or(0, |wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            let wait = wait.max(asked).min(ask::LONGEST_WAIT);
            store.fail(scope, key, holder, &error.to_string(), now + wait, now).await
        }
    }
}

async fn make(
    engine: &Engine,
    caller: &Caller,
    project: &WritableProject,
    queued: &tiro_store::Wanted,
) -> Result<()> {
    let &tiro_store::Wanted { ref session, level, first, last, asked_by, .. } = queued;
    let rows = make::range(project, session, (Some(first), Some(last)), (None, None)).await?;
    let wanted = Wanted {
        session: session.clone(),
        rows,
        level,
        max_tokens: None,
        focus: String::new(),
        by_model: true,
    };
    let made = make::make_by_model(engine, caller, project, &wanted, asked_by).await?;
    if first == 0 && level == Level::Standard {
        sessions::supersede(engine, project, session, &wanted.rows, &made).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_lasts_as_long_as_a_summary_may_take() {
        let of = |local, external| {
            lease(&Options {
                summary_local_deadline_s: local,
                summary_external_deadline_s: external,
                ..Options::default()
            })
        };
        let longest = deadline::LONGEST.as_millis() as Millis;
        assert!(of(600, 1) > 660_000 && of(1, 600) > 660_000 && of(5, 10) > longest);
        assert!(of(5, 10) < longest + longest / 10 + 120_000, "and not for much longer");
    }
}
