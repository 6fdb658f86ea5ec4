//! The sentences of a summary, and what supports each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Index, is_content};
use super::quantities::{Quantity, quantities};
use super::tokens::{Kind, Token, sentences, tokens};

/// A sentence of a summary.
#[derive(Debug)]
pub(in crate::summarize::quality) struct Statement<'a> {
    /// Its text.
    pub(in crate::summarize::quality) text: &'a str,
    /// Its tokens.
    pub(in crate::summarize::quality) tokens: Vec<Token<'a>>,
    /// Its numbers and dates, each with the index of its token.
    pub(in crate::summarize::quality) quantities: Vec<(usize, Quantity)>,
    /// The stems of its words of meaning, without names of speakers and without numbers.
    pub(in crate::summarize::quality) words: BTreeSet<String>,
    /// The weight of these words, and of those that the sources have.
    pub(in crate::summarize::quality) weight: f64,
    pub(in crate::summarize::quality) known: f64,
    /// The weight that each passage supports.
    pub(in crate::summarize::quality) support: BTreeMap<usize, f64>,
    /// The most that one passage supports.
    pub(in crate::summarize::quality) best: f64,
}

impl Statement<'_> {
    /// Returns the passages that support nearly as much as the best one.
    pub(in crate::summarize::quality) fn near(&self) -> impl Iterator<Item = usize> {
        self.support.iter().filter(|(_, weight)| **weight >= 0.7 * self.best).map(|(place, _)| *place)
    }
}

/// Reads a summary. `speakers` has the words of the speakers' names, in lower case.
pub(in crate::summarize::quality) fn statements<'a>(
    summary: &'a str,
    index: &Index,
    speakers: &BTreeSet<String>,
) -> Vec<Statement<'a>> {
    let read = |text: &'a str| {
        let tokens = tokens(text);
        let quantities = quantities(&tokens);
        let is_counted = |at: usize| quantities.iter().any(|(place, _)| *place == at);
        let words: BTreeSet<String> = tokens
            .iter()
            .enumerate()
            .filter(|(at, token)| {
                let is_clock = token.kind == Kind::Word && matches!(token.lower.as_str(), "am" | "pm");
                is_content(token) && !is_counted(*at) && !is_clock && !speakers.contains(&token.lower)
            })
            .map(|(_, token)| token.stem.clone())
            .collect();
        let weight = words.iter().map(|word| index.weight(word)).fold(0.0, |sum, weight| sum + weight);
        let known = words.iter().filter(|word| index.has(word)).map(|word| index.weight(word));
        let known = known.fold(0.0, |sum, weight| sum + weight);
        let support = index.support(words.iter());
        let best = support.values().copied().fold(0.0, f64::max);
        Statement { text, tokens, quantities, words, weight, known, support, best }
    };
    sentences(summary).into_iter().map(read).filter(|statement| !statement.tokens.is_empty()).collect()
}
