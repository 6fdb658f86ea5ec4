//! Chooses the parts of an account that contribute most for their tokens.

use std::collections::BTreeSet;

use super::read::Account;
use crate::statements::own_words::is_prose;
use crate::summarize::Summary;
use crate::summarize::reading::roughly;
use crate::tuning::summaries::AGAIN;

/// Choosing stops after this many candidates in a row that don't fit. Arbitrary: rendering and counting each candidate
/// takes time.
const MISFITS: usize = 24;

/// The maximum number of parts that are compared. If there are more, only the best of them are compared. Arbitrary: an
/// account has a few dozen.
const MOST_PARTS: usize = 1000;

/// The maximum number of bytes of a sentence for each available token. A longer sentence can't fit, so its tokens
/// aren't counted.
const BYTES_OF_TOKEN: usize = 12;

/// A sentence that may be added to the summary, with its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The user's request, with its outcome if there is one.
    Exchange(usize),
    /// Another sentence of the user, given by the index of the exchange and the index of the sentence.
    Said(usize, usize),
    /// Another sentence of the outcome, given by the index of the exchange and the index of the sentence.
    Answered(usize, usize),
}

impl Account<'_> {
    /// Adds the parts that contribute most, as long as the summary that `render` makes of them fits.
    pub(super) fn fitted(
        &self,
        max_tokens: usize,
        count: &dyn Fn(&str) -> usize,
        render: &dyn Fn(&BTreeSet<Part>) -> Summary,
    ) -> Summary {
        let mut left = self.parts();
        let mut covered = vec![false; self.central.len()];
        let mut chosen = BTreeSet::new();
        let mut best = Summary::default();
        // The goal and the last exchange are in every account that has enough room.
        let mut first: Vec<Part> = self.goal(usize::MAX).map(Part::Exchange).into_iter().collect();
        let last = self.exchanges.len() - 1;
        first.extend(self.says_something(last).then_some(Part::Exchange(last)));
        first.extend(self.stand(usize::MAX).map(|(at, _)| Part::Exchange(at)));
        if left.len() > MOST_PARTS {
            let mut rated: Vec<(f64, Part)> =
                left.into_iter().map(|part| (self.rate(part, &chosen, &covered), part)).collect();
            rated.sort_by(|a, b| b.0.total_cmp(&a.0));
            left = rated.into_iter().take(MOST_PARTS).map(|(_, part)| part).collect();
        }
        let mut misfits = 0;
        while misfits < MISFITS && (!left.is_empty() || !first.is_empty()) {
            let next = match first.is_empty() {
                false => first.remove(0),
                true => {
                    let rated = left
                        .iter()
                        .enumerate()
                        .map(|(place, part)| (self.rate(*part, &chosen, &covered), place));
                    let Some((rate, place)) = rated.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
                    else {
                        break;
                    };
                    if rate <= 0.0 {
                        break;
                    }
                    left.swap_remove(place)
                }
            };
            left.retain(|part| *part != next);
            let bytes: usize =
                self.sentences(next).iter().map(|place| self.sentence(*place).text.len()).sum();
            if bytes > max_tokens * BYTES_OF_TOKEN || !chosen.insert(next) {
                misfits += 1;
                continue;
            }
            let summary = render(&chosen);
            if count(&summary.text) > max_tokens {
                chosen.remove(&next);
                misfits += 1;
                continue;
            }
            misfits = 0;
            for place in self.sentences(next) {
                self.sentence(place).words.iter().for_each(|word| covered[*word as usize] = true);
            }
            best = summary;
        }
        best
    }

    /// Returns all parts that an account can contain.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (at, exchange) in self.exchanges.iter().enumerate() {
            if !self.says_something(at) {
                continue;
            }
            parts.push(Part::Exchange(at));
            let is_more = |place: &&usize| !self.requests[at].contains(place) && self.is_specific(**place);
            let said = exchange.asked.iter().filter(is_more);
            parts.extend(said.map(|place| Part::Said(at, *place)));
            parts.extend(self.outcomes[at].iter().skip(1).map(|place| Part::Answered(at, *place)));
        }
        parts
    }

    /// Returns whether an exchange has an outcome, a request for work that says what it is about, or a last request
    /// without an answer. A question without its answer says nothing.
    pub(super) fn says_something(&self, at: usize) -> bool {
        let exchange = &self.exchanges[at];
        let is_open = at + 1 == self.exchanges.len() && exchange.answered.is_empty() && !exchange.has_calls;
        self.asks[at].is_some_and(|ask| {
            !self.outcomes[at].is_empty()
                || (self.is_specific(ask) && !self.only_asks(at))
                || (is_open && is_prose(&self.sentence(ask).text))
        })
    }

    /// Returns the sentences of a part.
    fn sentences(&self, part: Part) -> Vec<usize> {
        match part {
            Part::Exchange(at) => {
                self.requests[at].iter().chain(self.outcomes[at].first()).copied().collect()
            }
            Part::Said(_, place) | Part::Answered(_, place) => vec![place],
        }
    }

    /// Returns how much a part adds to the chosen parts, relative to the part's length. Words that the chosen parts
    /// already contain count less. A further sentence adds something only together with its request.
    fn rate(&self, part: Part, chosen: &BTreeSet<Part>, covered: &[bool]) -> f64 {
        if let Part::Said(at, _) | Part::Answered(at, _) = part
            && !chosen.contains(&Part::Exchange(at))
        {
            return 0.0;
        }
        let places = self.sentences(part);
        let words = places.iter().flat_map(|place| self.sentence(*place).words.iter());
        let mut seen = BTreeSet::new();
        let gain: f64 = words
            .filter(|word| seen.insert(**word))
            .map(|word| self.central[*word as usize] * if covered[*word as usize] { AGAIN } else { 1.0 })
            .sum();
        let length: usize = places.iter().map(|place| roughly(&self.sentence(*place).text)).sum();
        gain / (length as f64 + 5.0).sqrt()
    }
}
