//! Decides whether the clock can be trusted when something is removed because of its age.

use crate::tuning::TRUSTED;
use tiro_base::memory::Millis;

/// Returns the milliseconds from `newest`, the latest time in a store, to `now`, if there are more than [`TRUSTED`]. In
/// this case, the clock may have jumped, and nothing is removed because of its age. Returns `None` for a shorter time,
/// which may be a pause between two uses of the store. An empty store has no `newest`, and nothing to remove.
pub fn ahead(newest: Option<Millis>, now: Millis) -> Option<Millis> {
    newest.map(|newest| now.saturating_sub(newest)).filter(|ahead| *ahead > TRUSTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_up_to_a_gap_and_never_behind() {
        for (newest, now, expected) in [
            (None, Millis::MAX, None),
            (Some(5), 5 + TRUSTED, None),
            (Some(5), 6 + TRUSTED, Some(TRUSTED + 1)),
            (Some(TRUSTED * 100), 5, None),
            (Some(Millis::MIN), Millis::MAX, Some(Millis::MAX)),
        ] {
            assert_eq!(ahead(newest, now), expected, "{newest:?} at {now}");
        }
    }
}
