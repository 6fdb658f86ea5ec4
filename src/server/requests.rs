//! The open requests. A request is open from the reading of its line until its answer is written.
//!
//! A client that sends requests but reads no answers would fill the memory with requests and answers. So the open
//! requests are limited: a call keeps its permit to run until its answer is written, and no line is read while too many
//! requests are open. A client that reads later still gets all answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::batch::Batch;

/// The maximum number of open requests. Arbitrary: more than a client sends before it reads, but few enough to take
/// only a few megabytes.
const MOST: usize = 4096;

/// No line is read while the lines of all open requests together have at least this many bytes. Arbitrary.
const MOST_BYTES: usize = 16 << 20;

/// The open requests. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Requests {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<OpenRequests>,
    ended: Notify,
}

#[derive(Default)]
struct OpenRequests {
    /// The requests that have no answer yet. A second request with the same id is refused, because it would get the
    /// answer of the first.
    unanswered: HashMap<RequestId, Request>,
    /// The number of open requests, and the number of bytes of all their lines.
    count: usize,
    bytes: usize,
}

/// An open request. The request is dropped when its answer is written.
pub(super) struct Request {
    shared: Arc<Shared>,
    bytes: usize,
    /// The batch in which the request came, if any.
    pub(super) batch: Option<Arc<Batch>>,
    /// Permits that the request holds until it is dropped.
    permits: Vec<OwnedSemaphorePermit>,
}

impl Requests {
    /// Adds a request whose line has `bytes` bytes and that came in `batch`. Returns false if an open request has the same
    /// id.
    pub(super) fn admit(&self, id: &RequestId, bytes: usize, batch: Option<Arc<Batch>>) -> bool {
        let mut state = lock(&self.shared.state);
        if state.unanswered.contains_key(id) {
            return false;
        }
        state.count += 1;
        state.bytes += bytes;
        let request = Request { shared: Arc::clone(&self.shared), bytes, batch, permits: Vec::new() };
        state.unanswered.insert(id.clone(), request);
        true
    }

    /// Removes and returns a request that is being answered or will never be answered. The request's id can then be
    /// used again.
    pub(super) fn remove(&self, id: &RequestId) -> Option<Request> {
        lock(&self.shared.state).unanswered.remove(id)
    }

    /// Keeps `permit` in the request until its answer is written. If the request is no longer open, drops the permit.
    pub(super) fn hold(&self, id: &RequestId, permit: OwnedSemaphorePermit) {
        if let Some(request) = lock(&self.shared.state).unanswered.get_mut(id) {
            request.permits.push(permit);
        }
    }

    /// Returns whether another line may be read.
    pub(super) fn has_room(&self) -> bool {
        let state = lock(&self.shared.state);
        state.count < MOST && state.bytes < MOST_BYTES
    }

    /// Waits until another line may be read.
    pub(super) async fn room(&self) {
        loop {
            let ended = self.shared.ended.notified();
            if self.has_room() {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.count -= 1;
        state.bytes -= self.bytes;
        self.shared.ended.notify_one();
    }
}

fn lock(state: &Mutex<OpenRequests>) -> std::sync::MutexGuard<'_, OpenRequests> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
