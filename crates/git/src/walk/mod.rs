//! Walks of the history: the commits to import, and the commits that are new.

mod history;
mod since;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use history::{History, KnownCommit, Listed};

/// A flag that stops a walk when its result is no longer needed. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops every walk that shares the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
