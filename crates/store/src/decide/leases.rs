//! Decides whether a process may take a lease.

use tiro_base::memory::Millis;

/// The longest lease, in milliseconds: an hour. A lease that ends later was written with a wrong clock and counts
/// as ended. Arbitrary: many times as long as any lease that callers take.
const LONGEST: Millis = 60 * 60 * 1000;

/// A lease that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'a> {
    /// The process that took it.
    pub holder: &'a str,
    /// When it ends.
    pub expires: Millis,
}

/// Returns whether `asker` may take or renew the lease at `now`. `asker` may do so if the lease is free, is held by
/// `asker`, has ended, or ends later than any valid lease.
pub fn may_take(held: Option<Held<'_>>, asker: &str, now: Millis) -> bool {
    let Some(held) = held else { return true };
    held.holder == asker || has_ended(held.expires, LONGEST, now)
}

/// Returns whether a lease or wait that ends at `expires` has ended at `now`. If `expires` lies more than `longest`
/// after `now`, it was written with a wrong clock, and the lease or wait counts as ended.
pub fn has_ended(expires: Millis, longest: Millis, now: Millis) -> bool {
    expires <= now || expires > now.saturating_add(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_can_be_taken_if_it_is_free_own_or_over() {
        let held = |holder, expires| Some(Held { holder, expires });
        for (lease, now, expected) in [
            (None, 5, true),
            (held("a", 10), 5, true),
            (held("b", 10), 5, false),
            (held("b", 10), 9, false),
            (held("b", 10), 10, true),
            (held("b", LONGEST + 5), 5, false),
            (held("b", LONGEST + 6), 5, true),
            (held("b", Millis::MAX), Millis::MAX - 1, false),
        ] {
            assert_eq!(may_take(lease, "a", now), expected, "{lease:?} at {now}");
        }
    }
}
