//! Works off the summaries that wait for a model: what one was asked for in vain, and sessions that came to rest.
//!
//! Nothing waits where the user named no provider for summaries. The idle server asks for one at a time, in one process of
//! a project, with a pause before the next; what fails waits longer each time and is given up after some tries. Until then,
//! and for good, what was made without a model stands.

use std::time::Duration;

use super::summary::{self, Wanted};
use super::{ask, summaries};
use crate::config::{Options, Use};
use crate::engine::{Engine, OpenProject};
use crate::error::{Kind, Result};
use crate::memory::{Level, Millis};
use crate::scope::SessionId;
use crate::store::{self, AskedBy, MessageRow, Queued};

/// The least time between two summaries that nobody waits for.
const PAUSE: Duration = Duration::from_secs(5);

/// How long after the last moment of a summary the process that asked for it is taken for dead.
const GRACE: Millis = 60_000;

/// How long what failed waits at first, and at most: each time four times as long, and as long as its provider asked
/// to be left alone.
const FIRST_WAIT: Millis = 60_000;
pub(super) const LONGEST_WAIT: Millis = 6 * 60 * 60 * 1000;

/// How far ahead a session may be put off. Beyond a day a date counts as one of a clock that was wrong.
const FARTHEST: Millis = 23 * 60 * 60 * 1000;

/// Has a summary that the user asked for, and a model failed at, tried again.
pub(super) async fn after_failure(engine: &Engine, project: &OpenProject, wanted: &Wanted) -> Result<()> {
    let (Some(first), Some(last)) = (wanted.rows.first(), wanted.rows.last()) else { return Ok(()) };
    let range = (first.ordinal, last.ordinal);
    wait(engine, project, &wanted.session, wanted.level, range, AskedBy::User, FIRST_WAIT).await
}

/// Has the session that ends with `last` summarised by a model, once nothing was said in it for a while.
pub(super) async fn once_at_rest(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    last: &MessageRow,
) -> Result<()> {
    let rests = last.time.saturating_add(engine.config().options.summary_update_interval());
    let left = rests.saturating_sub(engine.now()).clamp(0, FARTHEST);
    wait(engine, project, session, Level::Standard, (0, last.ordinal), AskedBy::Nobody, left).await
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
    let wanted = store::Wanted { session: session.clone(), level, first, last, provider, asked_by };
    let now = engine.now();
    project.store.enqueue(&project.scope, wanted, now + at_least, now).await
}

/// Works off what waits until it is dropped; an idle server runs it. Nothing is opened that no call has opened.
pub(super) async fn keep_up(engine: &Engine) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(project) = engine.opened_project() else { continue };
        if let Err(error) = step(engine, project).await {
            tracing::debug!(%error, "no summary was asked for");
        }
    }
}

/// Asks for one summary, where one is due and no other process asks.
async fn step(engine: &Engine, project: &OpenProject) -> Result<()> {
    let (store, scope, holder) = (&project.store, &project.scope, engine.process());
    let now = engine.now();
    if ask::may_ask(engine, Use::Summarize).is_none()
        || !store.is_queue_due(scope, now).await?
        || !ask::is_welcome(engine, Use::Summarize).await?
    {
        return Ok(());
    }
    if !store.lease(scope, "asking", holder, now, now + lease(&engine.config().options)).await? {
        return Ok(());
    }
    let asked = next(engine, project).await;
    // Held on to, so that the others pause too.
    let now = engine.now();
    store.lease(scope, "asking", holder, now, now + PAUSE.as_millis() as Millis).await?;
    asked
}

/// Returns how long one process is the one that asks: longer than a summary may take.
fn lease(options: &Options) -> Millis {
    let longest = options.summary_local_deadline_s.max(options.summary_external_deadline_s);
    // A tenth more is what a deadline may be missed by.
    Millis::try_from(longest.saturating_mul(1100)).unwrap_or(Millis::MAX / 2).saturating_add(GRACE)
}

async fn next(engine: &Engine, project: &OpenProject) -> Result<()> {
    let (store, scope, holder) = (&project.store, &project.scope, engine.process());
    let Some(Queued { seq, wanted, tries }) =
        store.next_queued(scope, holder, lease(&engine.config().options), engine.now()).await?
    else {
        return Ok(());
    };
    let made = make(engine, project, &wanted).await;
    let now = engine.now();
    match made {
        Ok(()) => store.finish(scope, seq, holder, now).await,
        // All of it was forgotten.
        Err(error) if error.kind() == Kind::NotFound => store.drop_queued(scope, seq, holder).await,
        Err(error) => {
            let wait = match error.kind() {
                // There may be money again tomorrow.
                Kind::Limit => LONGEST_WAIT,
                _ => FIRST_WAIT << (2 * tries.clamp(0, 8)),
            };
            let asked =
                error.left_alone().map_or(0, |wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            let wait = wait.max(asked).min(LONGEST_WAIT);
            store.fail(scope, seq, holder, &error.to_string(), now + wait, now).await
        }
    }
}

async fn make(engine: &Engine, project: &OpenProject, queued: &store::Wanted) -> Result<()> {
    let &store::Wanted { ref session, level, first, last, asked_by, .. } = queued;
    let rows = summary::range(project, session, (Some(first), Some(last)), (None, None)).await?;
    let wanted = Wanted {
        session: session.clone(),
        rows,
        level,
        max_tokens: None,
        focus: String::new(),
        by_model: true,
    };
    let made = summary::make_by_model(engine, project, &wanted, asked_by).await?;
    if first == 0 && level == Level::Standard {
        summaries::supersede(engine, project, session, &wanted.rows, &made).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_is_let_be_for_as_long_as_a_summary_may_take() {
        let of = |local, external| {
            lease(&Options {
                summary_local_deadline_s: local,
                summary_external_deadline_s: external,
                ..Options::default()
            })
        };
        assert!(of(600, 1) > 660_000 && of(1, 600) > 660_000);
        assert!(of(5, 10) < 120_000, "and not for much longer");
    }
}
