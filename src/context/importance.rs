//! How much a message matters, whatever a question asks: document 004's weighted sum.
//!
//! Each part lies between 0 and 1 and the sum is divided by the weights, so importance does too, and the threshold
//! above which a message is shown whatever its age means the same under all weights. Of the parts only the semantic one
//! knows the question. Recency weighs little: what is recent has a part of the budget of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::entities;
use crate::memory::Millis;

/// What the parts of importance count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Of being recent.
    pub recency: f64,
    /// Of answering the question.
    pub semantic: f64,
    /// Of speaking of what the conversation speaks of.
    pub entity: f64,
    /// Of being marked, or of what its author thinks of it.
    pub user: f64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { recency: 0.05, semantic: 1.0, entity: 0.05, user: 0.2 }
    }
}

/// The parts of a message's importance, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// See [`recency`].
    pub recency: f64,
    /// How well it answers.
    pub semantic: f64,
    /// See [`Spoken::importance`].
    pub entity: f64,
    /// 1 where it was marked, else what its author thinks of it.
    pub user: f64,
}

/// Returns the weighted mean of the parts, from 0 to 1.
pub fn importance(signals: &Signals, weights: &Weights) -> f64 {
    let Weights { recency, semantic, entity, user } = *weights;
    let parts = [
        (recency, signals.recency),
        (semantic, signals.semantic),
        (entity, signals.entity),
        (user, signals.user),
    ];
    let all: f64 = parts.iter().map(|(weight, _)| weight.max(0.0)).sum();
    if all == 0.0 {
        return 0.0;
    }
    parts.iter().map(|(weight, part)| weight.max(0.0) * part.clamp(0.0, 1.0)).sum::<f64>() / all
}

/// Returns how recent `time` is beside `newest`: 1 at the end, half of it for every `half_life` before.
pub fn recency(time: Millis, newest: Millis, half_life: Millis) -> f64 {
    let age = newest.saturating_sub(time).max(0) as f64;
    (-age / half_life.max(1) as f64).exp2()
}

/// How often the entities of some messages are spoken of.
#[derive(Clone, Debug, Default)]
pub struct Spoken {
    messages_by_entity: BTreeMap<String, usize>,
    most: usize,
}

impl Spoken {
    /// Counts in how many of `texts` each entity is.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Spoken {
        let mut spoken = Spoken::default();
        for text in texts {
            for entity in entities(text).into_iter().collect::<BTreeSet<_>>() {
                *spoken.messages_by_entity.entry(entity).or_default() += 1;
            }
        }
        spoken.most = spoken.messages_by_entity.values().copied().max().unwrap_or(0);
        spoken
    }

    /// Returns how much of what is spoken of most often `text` speaks of: its most frequent entity's count, as a share
    /// of the most frequent of all, both as logarithms.
    pub fn importance(&self, text: &str) -> f64 {
        let count = |entity: &String| self.messages_by_entity.get(entity).copied().unwrap_or(0);
        let own = entities(text).iter().map(count).max().unwrap_or(0);
        match self.most {
            0 => 0.0,
            most => (1.0 + own as f64).ln() / (1.0 + most as f64).ln(),
        }
    }

    /// Returns the entities that are spoken of most often, at most `count`, ties in order of the alphabet.
    pub fn topics(&self, count: usize) -> Vec<&str> {
        let mut all: Vec<(&String, usize)> =
            self.messages_by_entity.iter().map(|(entity, count)| (entity, *count)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter().take(count).map(|(entity, _)| entity.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mark_lifts_what_is_otherwise_equal() {
        let plain = Signals { recency: 0.5, semantic: 0.5, entity: 0.5, user: 0.0 };
        let marked = Signals { user: 1.0, ..plain };
        let weights = Weights::default();
        assert!(importance(&marked, &weights) > importance(&plain, &weights));
        let unmoved = Weights { user: 0.0, ..weights };
        assert_eq!(importance(&marked, &unmoved), importance(&plain, &unmoved));
    }

    #[test]
    fn recency_halves() {
        let values = [100, 90, 80, 200].map(|time| recency(time, 100, 10));
        assert_eq!(values, [1.0, 0.5, 0.25, 1.0]);
        assert_eq!(recency(Millis::MIN, Millis::MAX, 0), 0.0);
    }

    #[test]
    fn what_is_spoken_of_often_is_a_topic() {
        let texts = ["Ask Ines about `parse_header`.", "Then Ines changed it.", "It rains."];
        let spoken = Spoken::of(texts);
        assert_eq!(spoken.topics(2), ["Ines", "parse_header"]);
        assert!(spoken.importance(texts[1]) == 1.0 && spoken.importance(texts[2]) == 0.0);
    }

    proptest! {
        #[test]
        fn importance_lies_between_0_and_1(parts in prop::array::uniform4(-2.0..3.0f64), weights in prop::array::uniform4(-1.0..5.0f64)) {
            let [recency, semantic, entity, user] = parts;
            let signals = Signals { recency, semantic, entity, user };
            let [recency, semantic, entity, user] = weights;
            let value = importance(&signals, &Weights { recency, semantic, entity, user });
            prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
        }
    }
}
