//! Computes the importance of a message. It is a weighted mean of the message's recency, its relevance to the question,
//! its entities and the user's mark.
//!
//! Each of these four parts is between 0 and 1, and their weighted sum is divided by the sum of the weights. So
//! importance is between 0 and 1 too, and the threshold above which a message of any age is shown needs no change if
//! the weights change. Only one part, relevance, depends on the question. Recency has a low weight, because recent
//! messages have their own share of the budget anyway.

use std::collections::{BTreeMap, BTreeSet};

use super::entities::entities;
use crate::tuning::contexts;
use tiro_base::memory::Millis;

/// The weights of the parts of importance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Recency.
    pub recency: f64,
    /// Relevance to the question.
    pub semantic: f64,
    /// Entities that the conversation often mentions.
    pub entity: f64,
    /// The user's mark, or the importance that the message's author gave it.
    pub user: f64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            recency: contexts::WEIGHT_RECENCY,
            semantic: contexts::WEIGHT_SEMANTIC,
            entity: contexts::WEIGHT_ENTITY,
            user: contexts::WEIGHT_USER,
        }
    }
}

/// The parts of a message's importance, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// The result of [`recency`].
    pub recency: f64,
    /// The message's score for the question, as a share of the best possible score.
    pub semantic: f64,
    /// The result of [`Mentions::importance`].
    pub entity: f64,
    /// 1 if the user marked the message, otherwise the importance that its author gave it.
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

/// Returns the recency of `time`. The recency is 1 at `newest`, and halves with each `half_life` before `newest`.
pub fn recency(time: Millis, newest: Millis, half_life: Millis) -> f64 {
    let age = newest.saturating_sub(time).max(0) as f64;
    (-age / half_life.max(1) as f64).exp2()
}

/// Counts how many messages mention each entity.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    messages_by_entity: BTreeMap<String, usize>,
    most: usize,
}

impl Mentions {
    /// Counts how many of `texts` mention each entity.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Mentions {
        let mut mentions = Mentions::default();
        for text in texts {
            for entity in entities(text).into_iter().collect::<BTreeSet<_>>() {
                *mentions.messages_by_entity.entry(entity).or_default() += 1;
            }
        }
        mentions.most = mentions.messages_by_entity.values().copied().max().unwrap_or(0);
        mentions
    }

    /// Returns how central the entities of `text` are, from 0 to 1. This is the logarithm of n + 1 divided by the
    /// logarithm of m + 1. Here, n is the number of messages that mention the most frequent entity of `text`, and m is
    /// the number of messages that mention the most frequent entity of all.
    pub fn importance(&self, text: &str) -> f64 {
        let count = |entity: &String| self.messages_by_entity.get(entity).copied().unwrap_or(0);
        let own = entities(text).iter().map(count).max().unwrap_or(0);
        match self.most {
            0 => 0.0,
            most => (1.0 + own as f64).ln() / (1.0 + most as f64).ln(),
        }
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
    fn a_text_with_the_most_frequent_entity_is_central() {
        let texts = ["Ask Ines about `parse_header`.", "Then Ines changed it.", "It rains."];
        let mentions = Mentions::of(texts);
        assert!(mentions.importance(texts[1]) == 1.0 && mentions.importance(texts[2]) == 0.0);
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
