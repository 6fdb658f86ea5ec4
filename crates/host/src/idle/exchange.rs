//! Exchanges memories with the server that the project is connected with, while a server of this machine waits.
//!
//! What a call stored is sent some seconds later. What others stored is asked for when the server says that there is
//! something ([`news`](super::news)), and every minute, because not every server can say so. A failure is told by
//! `tiro connect` and `tiro doctor` alone: everything else goes on without the network. After a failure, the pauses
//! grow. They are kept in a file, so that all processes of the machine share them.

use std::time::{Duration, Instant};

use super::news::news;
use crate::caller::WritingCaller;
use crate::engine::{Duty, Engine};
use crate::exchange::run::{self, place};

/// The time between two looks at whether there is something to do.
const LOOK: Duration = Duration::from_secs(5);

/// The time after a write before it is sent, so that the writes of one call are sent together.
const SETTLE: Duration = Duration::from_secs(2);

/// The time between two questions for what others stored. Arbitrary.
const POLL: Duration = Duration::from_secs(60);

/// The longest time after the server said that there is something. It is random, because the server says so to all machines
/// at once.
const SPREAD_MS: u16 = 1_000;

/// Exchanges until this future is dropped.
pub(super) async fn keep_up(engine: &Engine, caller: &WritingCaller) {
    // What an author with a key stores is already on a server.
    if !caller.has_files() {
        return;
    }
    let mut writes = engine.writes();
    let mut last: Option<Instant> = None;
    let (mut wrote, mut told) = (false, None);
    let mut waiting = std::pin::pin!(news(engine, caller, None));
    loop {
        tokio::select! {
            // The engine outlives its worker.
            _ = writes.changed() => {
                wrote = true;
                tokio::time::sleep(SETTLE).await;
                writes.mark_unchanged();
            }
            after = waiting.as_mut(), if told.is_none() => {
                told = Some(after);
                let spread = u16::from_le_bytes(engine.random()) % SPREAD_MS;
                tokio::time::sleep(Duration::from_millis(spread.into())).await;
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let is_due = wrote || told.is_some() || last.is_none_or(|last| last.elapsed() >= POLL);
        if is_due && exchange(engine, caller).await {
            last = Some(Instant::now());
            wrote = false;
            waiting.set(news(engine, caller, told.take()));
            // What has just been received isn't sent back.
            writes.mark_unchanged();
        }
    }
}

/// Exchanges once if the project is open and connected, and no failure asks for a pause. Returns whether it was tried.
async fn exchange(engine: &Engine, caller: &WritingCaller) -> bool {
    let Some(project) = caller.opened_project(engine) else { return false };
    let place = place(engine, &project);
    let Ok(Some(connection)) = place.connection() else { return false };
    let progress = place.progress(&connection);
    if progress.failing.is_some_and(|failing| engine.now() < failing.next) {
        return false;
    }
    let Some(_turn) = engine.works_on(&project.scope.project, Duty::Exchange) else { return false };
    if let Err(error) = run::run(engine, caller, Duration::ZERO).await {
        tracing::debug!(%error, "nothing is exchanged with the server now");
    }
    true
}
