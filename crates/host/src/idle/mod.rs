//! The idle worker, which does the work of a server between calls, in bounded steps.
//!
//! The idle worker does the work that read-only calls left, imports transcripts that hooks reported as grown, imports
//! new commits, summarises sessions that no longer grow, embeds pending chunks, removes expired segments from the
//! stash, finishes purges, and exchanges memories with a team's server. Leases ensure that only one process at a time does such work on a store. The worker
//! opens only stores that a call has opened, and loads the model only if chunks are pending.

mod exchange;
pub mod later;
mod news;
pub mod pending;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use self::pending::{LEASE, places, step};
use crate::caller::{Caller, WritingCaller};
use crate::engine::{Duty, Engine};
use crate::own_files;
use crate::project;
use crate::summaries::{queue, segments, sessions};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::humanize::counted;
use tiro_base::scope::Scope;
use tiro_capture::spool::Spool;
use tiro_store::{Store, Upkeep};

/// If a purge is still unfinished this many milliseconds after it began, its process is considered dead.
const ABANDONED: i64 = 60_000;

/// The number of threads that embed the chunks that a call has just stored. Other work gets one thread, so that it
/// disturbs nobody.
const THREADS_AFTER_WRITE: usize = 2;

/// The time after a failure during which no provider is asked for embeddings. Arbitrary.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// In one step, at most this many segments are removed from the stash. A step takes some milliseconds.
const EXPIRED_AT_ONCE: usize = 1_000;

/// Runs the idle worker until this future is dropped. The worker wakes after each write.
///
/// The worker does nothing while another process has the lease. It opens only stores that a call has opened.
pub async fn keep_up(engine: &Engine, caller: &WritingCaller) {
    // Summaries by models are made at the same time as the other work, so that a slow provider delays nothing else. The
    // work that calls left is also done at the same time, because a later call may wait for it. The exchange with a server
    // waits for the network.
    tokio::join!(
        work_off(engine, caller),
        queue::keep_up(engine, caller),
        keep_up_left(engine, caller),
        exchange::keep_up(engine, caller)
    );
}

/// Does the work that read-only calls left, as soon as there is some.
async fn keep_up_left(engine: &Engine, caller: &WritingCaller) {
    /// The time after which failed work is tried again.
    const AGAIN: Duration = Duration::from_secs(5);
    loop {
        // There may be work in both cases: after a wake-up, and after the time is over.
        let _ = tokio::time::timeout(AGAIN, caller.wait_for_work()).await;
        loop {
            match later::work_off(engine, caller).await {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "what a call left is not done yet");
                    break;
                }
            }
        }
    }
}

async fn work_off(engine: &Engine, caller: &WritingCaller) {
    /// The time between two checks for changes by other processes, in seconds.
    const LOOK: u64 = 5;
    /// Sessions are summarised after this many rounds in which nothing was written. Without this wait, a session that
    /// still grows would be summarised again and again.
    const QUIET: u32 = 2;
    let mut quiet = 0;
    let mut is_mended = false;
    let mut embeds_again = Instant::now();
    let mut told = HashSet::new();
    let mut writes = engine.writes();
    // Data that was written before the worker began has to be processed too.
    if *writes.borrow() > 0 {
        writes.mark_changed();
    }
    loop {
        let wrote = tokio::select! {
            // The engine outlives its worker.
            _ = writes.changed() => true,
            () = tokio::time::sleep(Duration::from_secs(LOOK)) => false,
        };
        // If a server has had no call, it creates no files, unless hooks wrote references to follow.
        if caller.opened_project(engine).is_none() && !has_references(engine, caller) {
            continue;
        }
        let Ok(project) = caller.project(engine).await else { continue };
        // If several callers work on a project, the worker of one of them does the work for all.
        let Some(_turn) = engine.works_on(&project.scope.project, Duty::Upkeep) else { continue };
        catch_up_idle(engine, caller, wrote).await;
        quiet = if wrote { 0 } else { quiet + 1 };
        if quiet >= QUIET {
            summarise_idle(engine, caller).await;
        }
        let Ok(places) = places(engine, caller).await else { continue };
        // Facts that earlier versions stored incompletely are repaired once. This version stores nothing that needs a
        // repair.
        if !is_mended {
            is_mended = matches!(segments::mend(engine, places[0].0.as_ref(), &places[0].1).await, Ok(0));
        }
        for (store, scope) in &places {
            let store = store.as_ref();
            if let Err(error) = finish_purges(engine, caller, store, scope).await {
                tracing::debug!(%error, "a purge is not finished yet");
            }
            if let Some(notice) = expire_stash(engine, store, scope).await
                && told.insert(notice.clone())
            {
                engine.notify(notice);
            }
            // Chunks that a call of this process has just stored may be searched soon.
            let threads = if wrote { THREADS_AFTER_WRITE } else { 1 };
            // If a provider fails, or its spending limit for today is reached, it is not asked again at once.
            while Instant::now() >= embeds_again {
                match step(engine, caller, store, scope, threads).await {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "not embedded");
                        if matches!(error.kind(), Kind::Provider | Kind::Limit) {
                            embeds_again = Instant::now() + PAUSE_AFTER_FAILURE;
                        }
                        break;
                    }
                }
            }
            if quiet >= QUIET {
                tend(store, scope, Upkeep::Index).await;
                tend(store, scope, Upkeep::Merge).await;
            }
            if quiet == QUIET {
                tend(store, scope, Upkeep::Sums).await;
            }
            tend(store, scope, Upkeep::Release).await;
            if quiet == QUIET {
                tend(store, scope, Upkeep::Rest).await;
            }
        }
    }
}

/// Finishes purges that were interrupted. This includes purging the list of what was sent to providers.
async fn finish_purges(engine: &Engine, caller: &Caller, store: &dyn Store, scope: &Scope) -> Result<()> {
    let finished = store.finish_purges(scope, engine.now() - ABANDONED).await?;
    let project = caller.project(engine).await?;
    engine.installation().await?.registry.forget_sent(&project.scope.project, &finished.sessions).await
}

/// Removes from the stash the segments that expired some time ago. Returns a notice about this for the next answer.
pub async fn expire_stash(engine: &Engine, store: &dyn Store, scope: &Scope) -> Option<String> {
    let now = engine.now();
    let times = (now, engine.config().options.stash_made_before(now));
    let operation = engine.operation();
    let expired = match store.expire_stash(scope, times, &operation, EXPIRED_AT_ONCE).await {
        Ok(expired) => expired,
        Err(error) => {
            tracing::debug!(%error, "expired segments are not removed yet");
            return None;
        }
    };
    let texts = |count| counted(count, "text", "texts");
    if expired.ahead.is_some() {
        return Some(
            "the clock is more than a month later than everything stored, so nothing that expired in the stash is removed"
                .to_owned(),
        );
    }
    if expired.removed > 0 {
        let texts = texts(expired.removed);
        return Some(format!(
            "{texts} of the stash expired and were removed; `tiro undo {operation}` brings them back"
        ));
    }
    let texts = Some(texts(expired.returned)).filter(|_| expired.returned > 0);
    texts.map(|texts| format!("{texts} of the stash came back, which a clock that was ahead had removed"))
}

/// Returns whether hooks wrote references for the caller's project.
fn has_references(engine: &Engine, caller: &Caller) -> bool {
    if !caller.has_files() {
        return false;
    }
    let config = engine.config();
    let finder = project::finder(config, caller.named());
    let place = caller.directory().and_then(|directory| finder.place(&directory));
    matches!(place, Ok(Some(place)) if !Spool::of(&config.data_dir, &place).is_empty())
}

/// Follows the transcripts that the references of hooks name, and imports new commits. If this process `wrote`, also
/// rewrites the pointer for the next session. Otherwise the pointer isn't rewritten, because this requires counting all
/// memories.
async fn catch_up_idle(engine: &Engine, caller: &WritingCaller, wrote: bool) {
    /// The length of a step. Calls run between the steps.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(true) = own_files::while_idle(engine, caller, STEP).await else { return };
    if let Err(error) = caller.keep_measurements(engine).await {
        tracing::debug!(%error, "measurements not stored");
    }
    if !wrote {
        return;
    }
    let Ok(project) = caller.writable_project(engine).await else { return };
    if let Err(error) = own_files::point(engine, caller, &project).await {
        tracing::debug!(%error, "no pointer left");
    }
}

/// Summarises sessions, unless another process does this already.
async fn summarise_idle(engine: &Engine, caller: &WritingCaller) {
    /// The length of a step. Calls run between the steps.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(project) = caller.writable_project(engine).await else { return };
    let (store, scope, holder) = (project.store.as_ref(), &project.scope, engine.process());
    loop {
        // The lease is taken only if there is something to do, because taking it writes to the store.
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

/// Lets the store do its upkeep in steps. Other processes can write between the steps.
async fn tend(store: &dyn Store, scope: &Scope, work: Upkeep) {
    loop {
        match store.tend(scope, work).await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => return,
            Err(error) => return tracing::debug!(%error, ?work, "the store is not tended"),
        }
    }
}
