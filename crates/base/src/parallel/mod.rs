//! Divides work among the cores of the machine.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Kind, Result};

/// Returns how many threads this process can run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` for each of `items`, divided among all cores. Returns the results in the order of `items`.
pub fn on_all_cores<I: Sync, O: Send>(items: &[I], work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let threads = cores().min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs `work` on a thread of its own, so that the waiting call can be cancelled. Cancelling the call doesn't stop
/// `work`, which must notice by other means that nobody waits for its result.
///
/// # Errors
///
/// [`Kind::Io`] if the process is ending.
pub async fn beside<O: Send + 'static>(work: impl FnOnce() -> O + Send + 'static) -> Result<O> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result),
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => Err(Error::new(Kind::Io, "the program is ending")),
    }
}

#[cfg(test)]
mod tests;
