//! The clock of the program and of each store. A store uses its clock for leases.
//!
//! Callers pass `now` for dates that are stored, such as when a summary is due. Leases use the store's clock instead,
//! so that all processes that share a store agree on when a lease ends.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tiro_base::memory::Millis;

/// The clock of a store or of the program; a test can set it.
#[derive(Default)]
pub struct Clock {
    /// The time that a test set. If the time is 0, the system's clock is used.
    set: AtomicI64,
}

impl Clock {
    /// Returns the time, in milliseconds since 1970 UTC.
    pub fn now(&self) -> Millis {
        self.stopped().unwrap_or_else(system)
    }

    /// Returns the time at which a test stopped the clock, if one did.
    pub fn stopped(&self) -> Option<Millis> {
        Some(self.set.load(Ordering::Relaxed)).filter(|now| *now > 0)
    }

    /// Stops the clock at `now`, which must be above 0.
    pub fn set(&self, now: Millis) {
        self.set.store(now, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where `now` comes from")]
fn system() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
