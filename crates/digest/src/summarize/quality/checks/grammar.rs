//! Checks whether a text consists of sentences: whether its words are in an order that is usual in English.
//!
//! Each word has a class. Function words have classes by lists, other words by their form. For each pair of classes,
//! `grammar.txt` contains how much likelier the pair is in summaries than in the same words in a random order. The
//! counts are from 630 summaries of dialogues, and from the same summaries with shuffled words. The summaries were
//! written by people and by models.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::summarize::quality::read::functions::class;
use crate::summarize::quality::read::tokens::{Token, pair_key};

/// The letters of all classes, in the order of the table. `^` and `$` stand for the beginning and the end of a
/// sentence. From `E` on, the letters stand for words that are classified by their form.
const LETTERS: &str = "^$DPTCSNOBMAHQEGLZWKU";

/// For each pair of classes, how much likelier it is in a sentence than in shuffled words, in half bits. The letter `m`
/// is zero.
static TABLE: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    let value = |letter: u8| (f64::from(letter) - f64::from(b'm')) / 2.0;
    include_str!("grammar.txt").lines().map(|line| line.bytes().map(value).collect()).collect()
});

/// Returns how much likelier the order of the words is in a sentence than in shuffled words, in bits.
pub(super) fn order(tokens: &[Token<'_>]) -> f64 {
    let place = |letter: char| LETTERS.find(letter).unwrap_or_default();
    let mut classes = vec![place('^')];
    classes.extend(tokens.iter().enumerate().map(|(at, token)| place(class(token, at == 0))));
    classes.push(place('$'));
    classes.windows(2).map(|pair| TABLE[pair[0]][pair[1]]).sum()
}

/// Returns the number of pairs of neighbouring tokens, and the number of those pairs that `said` contains.
pub(super) fn pairs(tokens: &[Token<'_>], said: &HashSet<u64>) -> (usize, usize) {
    let found = tokens.windows(2).filter(|pair| said.contains(&pair_key(&pair[0], &pair[1]))).count();
    (tokens.len().saturating_sub(1), found)
}
