//! Ranks what a search of the stash finds: by relevance, by the age of the text, and by how long ago it was stashed.
//!
//! The weights and time constants are those of the design of the stash; `evals stash` sweeps them.

use crate::memory::Millis;
use crate::tuning::stash::{AGE, AGE_DAYS, RELEVANCE, STASH_AGE, STASH_AGE_DAYS};

/// The milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// The parts of a score, each multiplied by its weight. Each is between 0 and its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// From how well words and meaning fit the query.
    pub relevance: f64,
    /// From the age of the text.
    pub age: f64,
    /// From the time since it was stashed.
    pub stash_age: f64,
}

impl Parts {
    /// Returns the score, between 0 and 1.
    pub fn sum(&self) -> f64 {
        self.relevance + self.age + self.stash_age
    }
}

/// Returns the parts of the score of a segment that fits the query by `relevance` (0 to 1), was made at `time`, and was
/// stashed at `stashed_at`. Times after `now` count as now.
pub fn parts(relevance: f64, time: Millis, stashed_at: Millis, now: Millis) -> Parts {
    let decay = |then: Millis, days: f64| (-(now.saturating_sub(then).max(0) as f64 / DAY) / days).exp();
    Parts {
        relevance: RELEVANCE * relevance.clamp(0.0, 1.0),
        age: AGE * decay(time, AGE_DAYS),
        stash_age: STASH_AGE * decay(stashed_at, STASH_AGE_DAYS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_falls_with_age_and_never_leaves_its_range() {
        let day = DAY as Millis;
        let fresh = parts(1.0, 0, 0, 0);
        assert!((fresh.sum() - 1.0).abs() < 1e-9);
        let aged = parts(1.0, 0, 0, 30 * day);
        assert!((aged.age - AGE * (-30.0 / AGE_DAYS).exp()).abs() < 1e-9, "{aged:?}");
        assert!(aged.stash_age < aged.age, "a stash is forgotten sooner than a text: {aged:?}");
        for (relevance, time, stashed) in [(7.0, 5 * day, 9 * day), (-1.0, i64::MIN, i64::MIN), (0.5, 0, 0)] {
            let sum = parts(relevance, time, stashed, 0).sum();
            assert!((0.0..=1.0 + 1e-9).contains(&sum), "{sum}");
        }
    }
}
