//! Computes the missing embeddings and the missing session summaries.

use std::time::{Duration, Instant};

use serde::Serialize;

use tiro_base::error::{Kind, Result};
use tiro_base::humanize::counted;
use tiro_host::ask;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::idle::pending::{LEASE, places, step};
use tiro_host::summaries::{segments, sessions};
use tiro_store::{Mended, Upkeep};

/// The pause between two checks of whether another process has finished the work.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The arguments of `tiro index`.
#[derive(Debug, Default)]
pub struct Args {
    /// How many threads compute embeddings.
    pub threads: usize,
    /// The time after which the rest is left pending; no limit if `None`.
    pub patience: Option<Duration>,
}

/// The answer of `tiro index`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// How many chunks this call embedded.
    pub embedded: usize,
    /// The number of damaged embeddings that were removed and will be computed again.
    pub mended: usize,
    /// The number of pieces that were missing in the text index and were added.
    pub indexed: usize,
    /// The number of counts that were wrong and were counted anew.
    pub counted: usize,
    /// The number of damaged embeddings that stay, because their texts are damaged too. Saving the right texts again
    /// repairs both.
    pub unmended: usize,
    /// How many chunks have no embedding yet.
    pub pending: usize,
}

/// Makes the missing session summaries. Updates rows of the text index that an earlier version made. Embeds every
/// pending chunk and every chunk whose embedding is damaged, in the project's store and the owner's store. Calls
/// `progress` with the number of chunks done and the number of chunks left.
///
/// Errors with [`Kind::Model`] if no model is installed, and with [`Kind::Busy`] if another process holds the lease and
/// makes no progress.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    let began = Instant::now();
    let is_over = || args.patience.is_some_and(|patience| began.elapsed() >= patience);
    let (mut embedded, mut mended) = (0, Mended::default());
    let [(store, scope), _] = places(engine, caller).await?;
    let (store, scope) = (store.as_ref(), &scope);
    while !is_over() && segments::mend(engine, store, scope).await? > 0 {}
    sessions::work_off(engine, caller, args.patience.unwrap_or(Duration::MAX)).await?;
    for (store, scope) in &places(engine, caller).await? {
        let store = store.as_ref();
        while !is_over() && store.tend(scope, Upkeep::Index).await? {}
        let found = store.mend(scope).await?;
        mended.vectors += found.vectors;
        mended.rows += found.rows;
        mended.left += found.left;
        mended.counts += found.counts;
        // Vectors of different models can't be compared. So vectors of another model are removed and their chunks are
        // embedded again. If the run is interrupted, the next run continues with the rest.
        let encoders = ask::encoders(engine, caller, &mut Vec::new()).await;
        if let Some([prose, code]) = encoders.spaces().await? {
            store.mark_other_spaces_pending(scope, prose.as_str(), code.as_str()).await?;
        }
        let mut others = Others::default();
        while !is_over() {
            let done = match step(engine, caller, store, scope, args.threads.max(1)).await {
                // A server of the project holds the lease. Either it is working, or it died and the lease hasn't
                // expired yet.
                Err(error) if error.kind() == Kind::Busy => {
                    if !others.make_progress(store.pending(scope).await?) {
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
    for (store, scope) in &places(engine, caller).await? {
        let store = store.as_ref();
        pending += store.pending(scope).await?;
    }
    let Mended { vectors, rows, left, counts } = mended;
    Ok(Output { embedded, mended: vectors, indexed: rows, counted: counts, unmended: left, pending })
}

/// Observations about the process that holds the lease.
#[derive(Default)]
struct Others {
    left: Option<(usize, u32)>,
}

impl Others {
    /// Returns whether the other process makes progress. This is so if the number of pending chunks has decreased
    /// during the last two terms of a lease. `pending` is the present number.
    fn make_progress(&mut self, pending: usize) -> bool {
        let looks = match self.left {
            Some((left, looks)) if left <= pending => looks + 1,
            _ => 0,
        };
        self.left = Some((pending, looks));
        u128::from(looks) * LOOK_AGAIN.as_millis() < 2 * LEASE.unsigned_abs() as u128
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.mended > 0 {
            let embeddings = counted(self.mended, "damaged embedding is", "damaged embeddings are");
            text += &format!("{embeddings} computed again.\n");
        }
        if self.indexed > 0 {
            let pieces = counted(
                self.indexed,
                "piece that the text index lacked was",
                "pieces that the text index lacked were",
            );
            text += &format!("{pieces} indexed.\n");
        }
        if self.counted > 0 {
            text +=
                &format!("{} corrected.\n", counted(self.counted, "wrong count was", "wrong counts were"));
        }
        if self.unmended > 0 {
            let stay = counted(self.unmended, "damaged embedding stays", "damaged embeddings stay");
            text +=
                &format!("{stay}: the texts are damaged too, and saving the right ones again mends both.\n");
        }
        let embedded = counted(self.embedded, "piece", "pieces");
        text + &format!("Embedded {embedded}; {}.", counted(self.pending, "still waits", "still wait"))
    }
}
