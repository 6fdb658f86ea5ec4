//! The time of a change of a memory's state.

use tiro_base::memory::Millis;

/// How far the clock of a peer may be ahead, in milliseconds: a day. A register with a later stamp could not be changed
/// here for as long, so such a change is refused. Arbitrary.
pub(crate) const MOST_AHEAD: Millis = 24 * 60 * 60 * 1000;

/// How many bits of a stamp count the changes within one millisecond.
const COUNTER: u32 = 16;

/// The time of a change: milliseconds since 1970 UTC and a counter, as one number (a hybrid logical clock).
///
/// A stamp is never earlier than the stamp of the change that it replaces, even if the clock of the machine was set
/// back. So what a user did last, having seen everything before, holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(i64);

impl Stamp {
    /// The stamp of a register that was never changed since the memory was stored.
    pub const NEVER: Stamp = Stamp(0);

    /// Returns the stamp of a change at `now` of a register whose last change has the stamp `self`. The stamp is later
    /// than `self`.
    pub fn next(self, now: Millis) -> Stamp {
        let now = now.clamp(0, i64::MAX >> COUNTER) << COUNTER;
        Stamp(now.max(self.0.saturating_add(1)))
    }

    /// Returns the stamp that an engine, or a message of a peer, has as `number`.
    pub const fn from_number(number: i64) -> Stamp {
        Stamp(if number < 0 { 0 } else { number })
    }

    /// Returns the stamp as a number that can be stored and sent. The order of numbers is the order of stamps.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Returns the time of the stamp.
    pub const fn time(self) -> Millis {
        self.0 >> COUNTER
    }

    /// Returns whether the stamp can't be believed at `now`, because it is more than a day ahead.
    pub fn is_ahead(self, now: Millis) -> bool {
        self.time() > now.saturating_add(MOST_AHEAD)
    }
}
