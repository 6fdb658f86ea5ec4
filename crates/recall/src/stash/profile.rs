//! Ranks the results of a search in the stash by their relevance, the age of the text, and the time since it was
//! stashed.
//!
//! The time constants come from the first design of the stash. The weights of that design (0.6, 0.2, 0.2) lose evidence
//! if a conversation is younger than some months, so age has a lower weight here. `evals stash` measures other weights.

use crate::tuning::stash::{AGE_DAYS, STASH_AGE_DAYS};
use tiro_base::memory::Millis;

/// The milliseconds of a day.
const DAY: f64 = 86_400_000.0;

/// The weights of the parts of a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The weight of relevance: how well the words and the meaning of a segment fit the query.
    pub relevance: f64,
    /// The weight of the age of the text.
    pub age: f64,
    /// The weight of the time since the text was stashed.
    pub stash_age: f64,
}

/// The parts of a score, each multiplied by its weight. Each is between 0 and its weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// The part for relevance: how well the words and the meaning of a segment fit the query.
    pub relevance: f64,
    /// The part for the age of the text.
    pub age: f64,
    /// The part for the time since the text was stashed.
    pub stash_age: f64,
}

impl Parts {
    /// Returns the score, between 0 and the sum of the weights.
    pub fn sum(&self) -> f64 {
        self.relevance + self.age + self.stash_age
    }
}

/// Returns the parts of the score of a segment. `relevance` says how well the segment fits the query, from 0 to 1. The
/// segment was made at `time` and stashed at `stashed_at`. Times after `now` count as `now`.
pub fn parts(relevance: f64, (time, stashed_at): (Millis, Millis), now: Millis, weights: &Weights) -> Parts {
    let decay = |then: Millis, days: f64| (-(now.saturating_sub(then).max(0) as f64 / DAY) / days).exp();
    Parts {
        relevance: weights.relevance * relevance.clamp(0.0, 1.0),
        age: weights.age * decay(time, AGE_DAYS),
        stash_age: weights.stash_age * decay(stashed_at, STASH_AGE_DAYS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = Weights { relevance: 0.6, age: 0.2, stash_age: 0.2 };

    #[test]
    fn a_score_falls_with_age_and_never_leaves_its_range() {
        let day = DAY as Millis;
        let of = |relevance, times, now| parts(relevance, times, now, &WEIGHTS);
        assert!((of(1.0, (0, 0), 0).sum() - 1.0).abs() < 1e-9);
        let aged = of(1.0, (0, 0), 30 * day);
        assert!((aged.age - 0.2 * (-30.0 / AGE_DAYS).exp()).abs() < 1e-9, "{aged:?}");
        assert!(aged.stash_age < aged.age, "a stash is forgotten sooner than a text: {aged:?}");
        for (relevance, times) in [(7.0, (5 * day, 9 * day)), (-1.0, (i64::MIN, i64::MIN)), (0.5, (0, 0))] {
            let sum = of(relevance, times, 0).sum();
            assert!((0.0..=1.0 + 1e-9).contains(&sum), "{sum}");
        }
    }
}
