//! Decides whether a clock can be believed before anything is removed because of its age.

use crate::tuning::TRUSTED;
use tiro_base::memory::Millis;

/// Returns by how many milliseconds `now` is later than `newest`, the latest time that a store knows, if that is more
/// than a gap between two uses of a store explains; otherwise `None`. Then the clock may have jumped, and nothing is
/// removed because of its age. A store that knows no time has nothing to remove.
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
