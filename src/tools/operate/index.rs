//! Embeds what is pending, and has made what sessions come down to.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::caller::Caller;
use crate::engine::{Embedding, Engine};
use crate::error::{Kind, Result};
use crate::humanize::counted;
use crate::idle::pending::{LEASE, places, step};
use crate::summaries::{segments, sessions};

/// How often to see whether another process has finished the work.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What `tiro index` takes.
#[derive(Debug, Default)]
pub struct Args {
    /// Threads to embed with.
    pub threads: usize,
    /// When to stop, leaving the rest pending; never if left out.
    pub patience: Option<Duration>,
}

/// What `tiro index` answers.
#[derive(Debug, Serialize)]
pub struct Output {
    /// Pieces embedded by this call.
    pub embedded: usize,
    /// Pieces that still wait.
    pub pending: usize,
}

/// Makes what sessions come down to and embeds everything that waits, in the project and in the owner's memories;
/// `progress` hears done and left.
///
/// Errors with [`Kind::Model`] where no model is installed, and with [`Kind::Busy`] where another process holds the
/// work and doesn't get on with it.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let began = Instant::now();
    let is_over = || args.patience.is_some_and(|patience| began.elapsed() >= patience);
    let mut embedded = 0;
    let [(store, scope), _] = places(engine, caller).await?;
    while !is_over() && segments::mend(engine, store, scope).await? > 0 {}
    sessions::work_off(engine, caller, args.patience.unwrap_or(Duration::MAX)).await?;
    for (store, scope) in places(engine, caller).await? {
        // Vectors of another model can't be compared with: they are made anew, and this can be interrupted.
        if let Embedding::Ready(embedder) = engine.embedding().await {
            store.mark_other_spaces_pending(scope, embedder.space().as_str()).await?;
        }
        let mut others = Others::default();
        while !is_over() {
            let done = match step(engine, store, scope, args.threads.max(1)).await {
                // A server of the project is at it, or was until it died and its lease runs out.
                Err(error) if error.kind() == Kind::Busy => {
                    if !others.get_on(store.pending(scope).await?) {
                        return Err(error);
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                    progress(embedded, store.pending(scope).await?);
                    continue;
                }
                done => done?,
            };
            if done == 0 {
                break;
            }
            embedded += done;
            progress(embedded, store.pending(scope).await?);
        }
    }
    let mut pending = 0;
    for (store, scope) in places(engine, caller).await? {
        pending += store.pending(scope).await?;
    }
    Ok(Output { embedded, pending })
}

/// What can be told of a process that holds the lease.
#[derive(Default)]
struct Others {
    left: Option<(usize, u32)>,
}

impl Others {
    /// Returns whether work still goes on, `pending` being left now: whether less was left some time in the last two
    /// terms of a lease.
    fn get_on(&mut self, pending: usize) -> bool {
        let looks = match self.left {
            Some((left, looks)) if left <= pending => looks + 1,
            _ => 0,
        };
        self.left = Some((pending, looks));
        u128::from(looks) * LOOK_AGAIN.as_millis() < 2 * LEASE.unsigned_abs() as u128
    }
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let embedded = counted(self.embedded, "piece", "pieces");
        format!("Embedded {embedded}; {}.", counted(self.pending, "still waits", "still wait"))
    }
}
