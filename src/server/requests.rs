//! The open requests: from reading the line of a request to writing the line of its answer.
//!
//! A client that sends requests and reads no answers would fill the memory with both. So open requests are bounded: a call
//! keeps its permit to run until its answer is written, and no line is read while too many requests are open. A client
//! that reads later gets all answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// Requests that may be open. Arbitrary: more than a client sends before it reads, and few megabytes.
const MOST: usize = 4096;

/// Bytes of the lines of all open requests, beyond which no line is read. Arbitrary.
const MOST_BYTES: usize = 16 << 20;

/// The open requests; clones share them.
#[derive(Clone, Default)]
pub(super) struct Requests {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Default)]
struct State {
    /// The requests that no answer was sent for. A second one with the same id is refused: it would get the first one's
    /// answer.
    unanswered: HashMap<RequestId, Request>,
    /// How many requests are open, and the bytes of their lines.
    count: usize,
    bytes: usize,
}

/// An open request; dropped when its answer is written.
pub(super) struct Request {
    shared: Arc<Shared>,
    bytes: usize,
    /// Permits that it holds until it is dropped.
    permits: Vec<OwnedSemaphorePermit>,
}

impl Requests {
    /// Adds a request with a line of `bytes`; returns false if an open request has its id.
    pub(super) fn admit(&self, id: &RequestId, bytes: usize) -> bool {
        let mut state = lock(&self.shared.state);
        if state.unanswered.contains_key(id) {
            return false;
        }
        state.count += 1;
        state.bytes += bytes;
        let request = Request { shared: Arc::clone(&self.shared), bytes, permits: Vec::new() };
        state.unanswered.insert(id.clone(), request);
        true
    }

    /// Removes a request that is answered now, or will not be, and returns it; its id is free again.
    pub(super) fn remove(&self, id: &RequestId) -> Option<Request> {
        lock(&self.shared.state).unanswered.remove(id)
    }

    /// Lets the request hold `permit` until its answer is written; drops the permit if the request is gone.
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

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
