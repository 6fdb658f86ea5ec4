//! The clock that a store measures leases by.
//!
//! Callers pass `now` for what is dated: when a memory was stored, when a summary is due. How long a lease lasts is the store's
//! own affair: processes that share a store then agree on when one ended, whatever their callers believe the time to be.

#[cfg(test)]
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::memory::Millis;

/// Tells a store the time; a test can set it.
#[derive(Default)]
pub struct Clock {
    /// The time that a test set; 0 for that of the system.
    #[cfg(test)]
    set: AtomicI64,
}

impl Clock {
    /// Returns the time, in milliseconds since 1970 UTC.
    pub(in crate::store) fn now(&self) -> Millis {
        #[cfg(test)]
        if let now @ 1.. = self.set.load(Ordering::Relaxed) {
            return now;
        }
        system()
    }

    /// Stops the clock at `now`, which is above 0.
    #[cfg(test)]
    pub(crate) fn set(&self, now: Millis) {
        self.set.store(now, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "leases end by the store's own clock, not by what callers believe"
)]
fn system() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
