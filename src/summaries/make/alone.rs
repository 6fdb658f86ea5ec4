//! Lets one call at a time ask a model for a summary, so that nobody pays twice for the same one.
//!
//! The call that asks has a lease on the summary and renews it. If the call is cancelled or its process dies, the lease
//! soon ends, and the next call asks.

use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Result;
use crate::memory::Millis;
use crate::project::OpenProject;
use crate::summaries::keep::cached;
use crate::summaries::wanted::Made;

/// How long a lease lasts if it is not renewed, in milliseconds.
const LASTS: Millis = 6_000;

/// How long after its last renewal a lease is renewed. Several renewals may be late before the lease ends.
const RENEWED: Duration = Duration::from_secs(2);

/// How often a waiting call looks for the summary.
const LOOK: Duration = Duration::from_millis(200);

/// What came of a call's turn to ask for a summary.
pub(super) enum Turn<T> {
    /// The call asked, with this result.
    Ours(T),
    /// Another call asked, and made this summary.
    Made(Box<Made>),
    /// Another call is still asking.
    Taken,
}

/// Asks for the summary that is cached under `key` if no other call does. Otherwise waits for the other call, for at most
/// `patience`.
///
/// Errors as reading the cache does. If no lease can be taken because the store can't be written, asks all the same.
pub(super) async fn alone<T>(
    engine: &Engine,
    project: &OpenProject,
    key: [u8; 32],
    patience: Duration,
    ask: impl Future<Output = T>,
) -> Result<Turn<T>> {
    let (store, scope, began) = (&project.store, &project.scope, Instant::now());
    let name = format!("summary {}", blake3::Hash::from_bytes(key).to_hex());
    // Calls of the same process must not take each other's lease.
    let holder = format!("{} {:x}", engine.process(), u64::from_le_bytes(engine.random()));
    let take = || store.lease(scope, &name, &holder, LASTS);
    while matches!(take().await, Ok(false)) {
        if let Some(made) = cached(engine, project, key).await? {
            return Ok(Turn::Made(Box::new(made)));
        }
        if began.elapsed() >= patience {
            return Ok(Turn::Taken);
        }
        tokio::time::sleep(LOOK).await;
    }
    // The call that had the lease before may have made it.
    let turn = match cached(engine, project, key).await {
        Ok(None) => {
            let renew = async {
                loop {
                    tokio::time::sleep(RENEWED).await;
                    let _ = take().await;
                }
            };
            tokio::select! {
                asked = ask => Ok(Turn::Ours(asked)),
                () = renew => unreachable!("leases are renewed until the model was asked"),
            }
        }
        Ok(Some(made)) => Ok(Turn::Made(Box::new(made))),
        Err(error) => Err(error),
    };
    // The lease also ends by itself.
    let _ = store.release(scope, &name, &holder).await;
    turn
}
