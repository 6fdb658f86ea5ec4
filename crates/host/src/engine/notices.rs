//! Notices that wait until the next answer reports them.

use std::sync::{Mutex, PoisonError};

/// A list of notices, each of which is taken only once.
#[derive(Default)]
pub struct Notices(Mutex<Vec<String>>);

impl Notices {
    /// Keeps a notice until it is taken, and logs it.
    pub fn add(&self, notice: String) {
        tracing::warn!("{notice}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// Returns the notices that were added since the last call, in order.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
