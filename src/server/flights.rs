//! The requests that are being answered, from the line they came in until the line that answers them has left.
//!
//! A client that asks and does not read would fill the memory with its questions and their answers. So what is under way
//! is bounded: a call keeps its place among those at work until its answer has left, and nothing more is read while too
//! many requests wait. A client that goes on reading finds all of them answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// How many requests may be under way. Arbitrary: more than a client asks before it reads, and few megabytes.
const MOST: usize = 4096;

/// How many bytes the lines of requests under way may have together before the next is read.
const MOST_BYTES: usize = 16 << 20;

/// The requests under way; clones are the same.
#[derive(Clone, Default)]
pub(super) struct Flights {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    landed: Notify,
}

#[derive(Default)]
struct State {
    /// Those whose answer is not on its way yet: a second request of the same id would take the first one's answer away.
    unanswered: HashMap<RequestId, Flight>,
    /// All of them, and the bytes of their lines.
    count: usize,
    bytes: usize,
}

/// A request under way; dropped when its answer has left.
pub(super) struct Flight {
    shared: Arc<Shared>,
    bytes: usize,
    /// The places it keeps from others.
    places: Vec<OwnedSemaphorePermit>,
}

impl Flights {
    /// Notes a request whose line had `bytes`; returns whether its id was free.
    pub(super) fn admit(&self, id: &RequestId, bytes: usize) -> bool {
        let mut state = lock(&self.shared.state);
        if state.unanswered.contains_key(id) {
            return false;
        }
        state.count += 1;
        state.bytes += bytes;
        let flight = Flight { shared: Arc::clone(&self.shared), bytes, places: Vec::new() };
        state.unanswered.insert(id.clone(), flight);
        true
    }

    /// Returns the request, which is answered now or is not going to be; its id is free again.
    pub(super) fn land(&self, id: &RequestId) -> Option<Flight> {
        lock(&self.shared.state).unanswered.remove(id)
    }

    /// Keeps `place` until the answer to the request has left, or frees it at once where nobody waits for the answer.
    pub(super) fn keep(&self, id: &RequestId, place: OwnedSemaphorePermit) {
        if let Some(flight) = lock(&self.shared.state).unanswered.get_mut(id) {
            flight.places.push(place);
        }
    }

    /// Returns whether another request may be read.
    pub(super) fn has_room(&self) -> bool {
        let state = lock(&self.shared.state);
        state.count < MOST && state.bytes < MOST_BYTES
    }

    /// Returns once another request may be read.
    pub(super) async fn room(&self) {
        loop {
            let landed = self.shared.landed.notified();
            if self.has_room() {
                return;
            }
            landed.await;
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.count -= 1;
        state.bytes -= self.bytes;
        self.shared.landed.notify_one();
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
