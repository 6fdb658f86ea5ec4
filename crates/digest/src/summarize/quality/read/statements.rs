//! Reads the sentences of a summary, and finds the passages that support each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Index, is_content};
use super::quantities::{Quantity, quantities};
use super::tokens::{Kind, Token, sentences, tokens};

/// A sentence of a summary.
#[derive(Debug)]
pub(in crate::summarize::quality) struct Statement<'a> {
    /// The text of the sentence.
    pub(in crate::summarize::quality) text: &'a str,
    /// The tokens of the sentence.
    pub(in crate::summarize::quality) tokens: Vec<Token<'a>>,
    /// The numbers and dates of the sentence, each with the index of its token.
    pub(in crate::summarize::quality) quantities: Vec<(usize, Quantity)>,
    /// The stems of the content words, without names of speakers and without numbers.
    pub(in crate::summarize::quality) words: BTreeSet<String>,
    /// The total weight of these words, and the weight of those that the sources contain.
    pub(in crate::summarize::quality) weight: f64,
    pub(in crate::summarize::quality) known: f64,
    /// For each passage, the weight of the words that it supports.
    pub(in crate::summarize::quality) support: BTreeMap<usize, f64>,
    /// The highest weight that one passage supports.
    pub(in crate::summarize::quality) best: f64,
}

impl Statement<'_> {
    /// Returns the passages that support nearly as much as the best passage.
    pub(in crate::summarize::quality) fn near(&self) -> impl Iterator<Item = usize> {
        self.support.iter().filter(|(_, weight)| **weight >= 0.7 * self.best).map(|(place, _)| *place)
    }
}

/// Reads a summary. `speakers` contains the words of the speakers' names, in lower case.
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
