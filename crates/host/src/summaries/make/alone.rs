//! Lets only one call at a time ask a model for a summary, so that nobody pays twice for the same summary.
//!
//! The call that asks holds a lease on the summary. If the call is cancelled or its process dies, the next call asks.

use std::time::{Duration, Instant};

use crate::ask::Lease;
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::keep::cached;
use crate::summaries::wanted::Made;
use tiro_base::error::Result;

/// A waiting call checks at this interval whether the summary was made.
const LOOK: Duration = Duration::from_millis(200);

/// The outcome of a call's attempt to ask for a summary.
pub(super) enum WhoAsked<T> {
    /// This call asked, with this result.
    Ours(T),
    /// Another call asked, and made this summary.
    Made(Box<Made>),
    /// Another call is still asking.
    Taken,
}

/// Asks for the summary that is cached under `key` if no other call does. Otherwise waits for the other call, for at most
/// `patience`.
///
/// Errors if the cache can't be read. If no lease can be taken because the store can't be written, asks without a
/// lease.
pub(super) async fn alone<T>(
    engine: &Engine,
    project: &OpenProject,
    key: [u8; 32],
    patience: Duration,
    ask: impl Future<Output = T>,
) -> Result<WhoAsked<T>> {
    let (name, began) = (format!("summary {}", blake3::Hash::from_bytes(key).to_hex()), Instant::now());
    let lease = loop {
        match Lease::take(engine, project, name.clone()).await {
            Ok(Some(lease)) => break Some(lease),
            Ok(None) => {}
            Err(_) => break None,
        }
        if let Some(made) = cached(engine, project, key).await? {
            return Ok(WhoAsked::Made(Box::new(made)));
        }
        if began.elapsed() >= patience {
            return Ok(WhoAsked::Taken);
        }
        tokio::time::sleep(LOOK).await;
    };
    // The call that had the lease before may have made the summary.
    if let Some(made) = cached(engine, project, key).await? {
        return Ok(WhoAsked::Made(Box::new(made)));
    }
    let Some(lease) = lease else { return Ok(WhoAsked::Ours(ask.await)) };
    let asked = lease.hold_during(ask).await;
    lease.release().await;
    Ok(WhoAsked::Ours(asked))
}
