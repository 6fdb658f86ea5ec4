//! The answers to a batch. A batch is an array of messages on one line; only the revisions of MCP before 2025-06-18
//! have batches. The answers are written together, as an array on one line.

use std::sync::{Mutex, PoisonError};

/// The answers to one batch.
pub(super) struct Batch {
    state: Mutex<BatchState>,
}

struct BatchState {
    /// How many requests of the batch have no answer yet.
    waiting: usize,
    answers: Vec<Vec<u8>>,
}

impl Batch {
    /// Returns a batch of `waiting` requests.
    pub(super) fn of(waiting: usize) -> Batch {
        Batch { state: Mutex::new(BatchState { waiting, answers: Vec::new() }) }
    }

    /// Ends the wait for one request. `answer` is the line that answers the request, or `None` if the request was
    /// cancelled. If no other request of the batch is open, and at least one was answered, returns the line to write.
    pub(super) fn end(&self, answer: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answers.extend(answer);
        state.waiting = state.waiting.saturating_sub(1);
        if state.waiting > 0 || state.answers.is_empty() {
            return None;
        }
        let answers = std::mem::take(&mut state.answers);
        let mut line = vec![b'['];
        for (place, answer) in answers.iter().enumerate() {
            line.extend_from_slice(if place > 0 { b"," } else { b"" });
            line.extend_from_slice(answer.trim_ascii_end());
        }
        line.extend_from_slice(b"]\n");
        Some(line)
    }
}
