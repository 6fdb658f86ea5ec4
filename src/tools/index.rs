//! Embeds what is pending, and has made what sessions come down to.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::common::counted;
use super::{catch_up, leaves, queue, summaries};
use crate::engine::{Embedding, Engine};
use crate::error::{Error, Kind, Result};
use crate::project;
use crate::remember;
use crate::scope::Scope;
use crate::spool::Spool;
use crate::store::{PendingChunk, Store};

/// Chunks embedded between two writes by a thread: about half a second of work. Arbitrary.
const BATCH: usize = 32;

/// How long a lease on the work lasts, in milliseconds.
const LEASE: i64 = 10_000;

/// How long ago a purge began that its process is taken to have left, in milliseconds.
const ABANDONED: i64 = 60_000;

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
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let began = Instant::now();
    let is_over = || args.patience.is_some_and(|patience| began.elapsed() >= patience);
    let mut embedded = 0;
    let [(store, scope), _] = places(engine).await?;
    while !is_over() && leaves::mend(engine, store, scope).await? > 0 {}
    summaries::work_off(engine, args.patience.unwrap_or(Duration::MAX)).await?;
    for (store, scope) in places(engine).await? {
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
    for (store, scope) in places(engine).await? {
        pending += store.pending(scope).await?;
    }
    Ok(Output { embedded, pending })
}

/// Works off what waits whenever something was written, until it is dropped; an idle server runs it.
///
/// One process at a time works on a store. The model is loaded only once something waits, and nothing is opened that
/// no call has opened.
pub async fn keep_up(engine: &Engine) {
    // A model that is slow to answer holds nothing up.
    tokio::join!(work_off(engine), queue::keep_up(engine));
}

async fn work_off(engine: &Engine) {
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
        if engine.opened_project().is_none() && !has_references(engine) {
            continue;
        }
        catch_up_idle(engine, wrote).await;
        quiet = if wrote { 0 } else { quiet + 1 };
        if quiet >= QUIET {
            summarise_idle(engine).await;
        }
        let Ok(places) = places(engine).await else { continue };
        // Only an earlier version leaves something to mend; what one writes from now on is mended by the next process.
        if !is_mended {
            is_mended = matches!(leaves::mend(engine, places[0].0, places[0].1).await, Ok(0));
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

/// Whether hooks left something for the project that the process was started for.
fn has_references(engine: &Engine) -> bool {
    let config = engine.config();
    let place = project::directory(config).and_then(|directory| project::place(&directory, config));
    matches!(place, Ok(Some(place)) if !Spool::of(&config.data_dir, &place).is_empty())
}

/// Follows what hooks left and which commits are new, and where this process `wrote` something leaves the pointer for the
/// next session: to count what is remembered takes a look at every memory.
async fn catch_up_idle(engine: &Engine, wrote: bool) {
    /// How long at a time: calls come between.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(Some(project)) = catch_up::to_follow(engine).await else { return };
    if let Err(error) = catch_up::follow(engine, project, STEP, None).await {
        tracing::debug!(%error, "not caught up");
    }
    if let Err(error) = engine.keep_measurements().await {
        tracing::debug!(%error, "measurements not stored");
    }
    if !wrote {
        return;
    }
    if let Err(error) = catch_up::point(engine, project).await {
        tracing::debug!(%error, "no pointer left");
    }
}

/// Makes what sessions come down to, where no other process does.
async fn summarise_idle(engine: &Engine) {
    /// How long at a time: calls come between.
    const STEP: Duration = Duration::from_secs(2);
    let Ok(project) = engine.project().await else { return };
    let (store, scope, holder) = (&project.store, &project.scope, engine.process());
    loop {
        // Nothing is written where there is nothing to do.
        let now = engine.now();
        let is_left = async {
            let grown = store.grown_sessions(scope, 1).await?;
            if grown.is_empty() && store.due_conversations(scope, now, 1).await?.is_empty() {
                return Ok(false);
            }
            if !store.lease(scope, "summaries", holder, now, now + LEASE).await? {
                return Ok(false);
            }
            let worked = summaries::work_off(engine, STEP).await;
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

async fn places(engine: &Engine) -> Result<[(&Store, &Scope); 2]> {
    let project = engine.project().await?;
    let owners = &engine.installation().await?.registry;
    Ok([(&project.store, &project.scope), (owners.memories(), owners.scope())])
}

/// Embeds one batch and returns its size.
async fn step(engine: &Engine, store: &Store, scope: &Scope, threads: usize) -> Result<usize> {
    if store.pending(scope).await? == 0 {
        return Ok(0);
    }
    let embedder = match engine.embedding().await {
        Embedding::Ready(embedder) => embedder,
        Embedding::Missing(notice) => return Err(Error::new(Kind::Model, notice)),
    };
    let holder = engine.process();
    let now = engine.now();
    if !store.lease(scope, "embedding", holder, now, now + LEASE).await? {
        return Err(Error::new(Kind::Busy, "another process embeds already").hint("it will finish the work"));
    }
    let chunks = store.pending_chunks(scope, BATCH * threads).await?;
    let done = chunks.len();
    let space = embedder.space().to_string();
    let embed = move || -> Result<Vec<(PendingChunk, Vec<f32>)>> {
        let texts: Vec<String> = chunks.iter().map(remember::pending_text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = remember::embed_whole(embedder.as_ref(), &texts, threads)?;
        Ok(chunks.into_iter().zip(embeddings).collect())
    };
    let embeddings = tokio::task::spawn_blocking(embed)
        .await
        .map_err(|error| Error::new(Kind::Model, "embedding stopped").source(error))??;
    store.save_embeddings(scope, &space, embeddings).await?;
    if done < BATCH * threads {
        store.release(scope, "embedding", holder).await?;
    }
    Ok(done)
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let embedded = counted(self.embedded, "piece", "pieces");
        format!("Embedded {embedded}; {}.", counted(self.pending, "still waits", "still wait"))
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
