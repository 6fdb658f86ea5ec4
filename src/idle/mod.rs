//! The idle worker: what a server does between calls, in bounded steps.
//!
//! It follows hooks and commits, summarises sessions that came to rest, embeds what is pending and finishes purges. One
//! process at a time works on a store, under a lease. Nothing is opened that no call has opened, and the model is loaded only
//! when something waits to be embedded.

pub(crate) mod pending;

use std::time::Duration;

use self::pending::{LEASE, places, step};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::ingest::{catch_up, pointer};
use crate::project;
use crate::scope::Scope;
use crate::spool::Spool;
use crate::store::Store;
use crate::summaries::{queue, segments, sessions};

/// How long ago a purge began that its process is taken to have left, in milliseconds.
const ABANDONED: i64 = 60_000;

/// Works off what waits whenever something was written, until it is dropped; an idle server runs it.
///
/// One process at a time works on a store. The model is loaded only once something waits, and nothing is opened that
/// no call has opened.
pub async fn keep_up(engine: &Engine, caller: &Caller) {
    // A model that is slow to answer holds nothing up.
    tokio::join!(work_off(engine, caller), queue::keep_up(engine, caller));
}

async fn work_off(engine: &Engine, caller: &Caller) {
    /// How often to look for what other processes left, in seconds.
    const LOOK: u64 = 5;
    /// After how many looks without a write a session is summarised: while it goes on, that would be done over and over.
    const QUIET: u32 = 2;
    let mut quiet = 0;
    let mut is_mended = false;
    loop {
        let wrote = tokio::select! {
            () = engine.wait_for_writes() => true,
            () = tokio::time::sleep(Duration::from_secs(LOOK)) => false,
        };
        // A server that nobody asked anything leaves no trace where it was started, unless hooks were set up there.
        if caller.opened_project(engine).is_none() && !has_references(engine, caller) {
            continue;
        }
        catch_up_idle(engine, caller, wrote).await;
        quiet = if wrote { 0 } else { quiet + 1 };
        if quiet >= QUIET {
            summarise_idle(engine, caller).await;
        }
        let Ok(places) = places(engine, caller).await else { continue };
        // Only an earlier version leaves something to mend; what one writes from now on is mended by the next process.
        if !is_mended {
            is_mended = matches!(segments::mend(engine, places[0].0, places[0].1).await, Ok(0));
        }
        for (store, scope) in places {
            if let Err(error) = store.finish_purges(scope, engine.now() - ABANDONED).await {
                tracing::debug!(%error, "a purge is still to be finished");
            }
            while matches!(step(engine, store, scope, 1).await, Ok(done) if done > 0) {}
            if quiet >= QUIET {
                merge_text(store, scope).await;
            }
            store.close_idle_readers();
            if quiet == QUIET
                && let Err(error) = store.rest(scope).await
            {
                tracing::debug!(%error, "the log is not moved into the store");
            }
        }
    }
}

/// Whether hooks left something for the caller's project.
fn has_references(engine: &Engine, caller: &Caller) -> bool {
    let config = engine.config();
    let place = caller.directory().and_then(|directory| project::place(&directory, config, caller.named()));
    matches!(place, Ok(Some(place)) if !Spool::of(&config.data_dir, &place).is_empty())
}

/// Follows what hooks left and which commits are new, and where this process `wrote` something leaves the pointer for the
/// next session: to count what is remembered takes a look at every memory.
async fn catch_up_idle(engine: &Engine, caller: &Caller, wrote: bool) {
    /// How long at a time: calls come between.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(Some(project)) = catch_up::to_follow(engine, caller).await else { return };
    if let Err(error) = catch_up::follow(engine, caller, project, STEP, None).await {
        tracing::debug!(%error, "not caught up");
    }
    if let Err(error) = caller.keep_measurements(engine).await {
        tracing::debug!(%error, "measurements not stored");
    }
    if !wrote {
        return;
    }
    if let Err(error) = pointer::point(engine, project).await {
        tracing::debug!(%error, "no pointer left");
    }
}

/// Makes what sessions come down to, where no other process does.
async fn summarise_idle(engine: &Engine, caller: &Caller) {
    /// How long at a time: calls come between.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(project) = caller.project(engine).await else { return };
    let (store, scope, holder) = (&project.store, &project.scope, engine.process());
    loop {
        // Nothing is written where there is nothing to do.
        let now = engine.now();
        let is_left = async {
            let grown = store.grown_sessions(scope, 1).await?;
            if grown.is_empty() && store.due_conversations(scope, now, 1).await?.is_empty() {
                return Ok(false);
            }
            if !store.lease(scope, "summaries", holder, LEASE).await? {
                return Ok(false);
            }
            let worked = sessions::work_off(engine, caller, STEP).await;
            store.release(scope, "summaries", holder).await?;
            Ok::<bool, Error>(worked?.is_left)
        };
        match is_left.await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => return,
            Err(error) => {
                tracing::debug!(%error, "sessions not summarised");
                return;
            }
        }
    }
}

/// Merges the text index, in steps between which others may write.
async fn merge_text(store: &Store, scope: &Scope) {
    loop {
        match store.merge_text(scope).await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => return,
            Err(error) => return tracing::debug!(%error, "the text index is not merged"),
        }
    }
}
