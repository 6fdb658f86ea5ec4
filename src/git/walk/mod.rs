//! Walks of the history: the commits to import, and the commits that are new.

mod history;
mod since;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use history::{History, Known, Listed};

/// Says to a reading that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets it for all that share it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
