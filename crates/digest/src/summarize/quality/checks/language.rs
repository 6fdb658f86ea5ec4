//! Checks whether a summary is in the language of its sources.

use std::collections::{BTreeMap, HashSet};

use crate::summarize::Source;
use crate::summarize::quality::read::functions::is_function;
use crate::summarize::quality::read::statements::Statement;
use crate::summarize::quality::read::tokens::{Kind, Token, sentences, tokens};
use crate::tuning::gate;

/// Two numbers: how many tokens of the sources are read to find their language, and how many of the most frequent
/// tokens are compared. Arbitrary.
const READ: usize = 5000;
const FREQUENT: usize = 40;

/// The language of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// English, like its sources.
    English,
    /// The language of its sources. It is not English, and few of its words are written with a capital letter.
    Same,
    /// The language of its sources, but names can't be recognised in it, because many other words have a capital letter
    /// too, or no word has one.
    Unknown,
    /// A language other than that of its sources.
    Another,
}

/// Returns the language of the summary.
pub(super) fn language(said: &[Statement<'_>], sources: &[Source<'_>]) -> Language {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let (mut all, mut english, mut capitals) = (0, 0, 0);
    for sentence in sources.iter().flat_map(|source| sentences(source.text)) {
        for (place, token) in tokens(sentence).into_iter().enumerate().filter(|(_, token)| is_word(token)) {
            all += 1;
            english += usize::from(is_function(&token.lower));
            capitals += usize::from(place > 0 && token.is_capital());
            *times.entry(token.lower).or_default() += 1;
        }
        if all > READ {
            break;
        }
    }
    let words: Vec<&Token<'_>> =
        said.iter().flat_map(|statement| &statement.tokens).filter(|token| is_word(token)).collect();
    let share = |count: usize, all: usize| count as f64 / all.max(1) as f64;
    let own = share(words.iter().filter(|token| is_function(&token.lower)).count(), words.len());
    let theirs = share(english, all);
    let weight: f64 = said.iter().map(|statement| statement.weight).sum();
    let known: f64 = said.iter().map(|statement| statement.known).sum();
    let has_words = known >= gate::SAME_WORDS * weight;
    if own >= gate::ENGLISH.0 {
        return if theirs >= gate::ENGLISH.1 || has_words { Language::English } else { Language::Another };
    }
    let mut frequent: Vec<(&String, &usize)> = times.iter().collect();
    frequent.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let frequent: HashSet<&str> =
        frequent.into_iter().take(FREQUENT).map(|(word, _)| word.as_str()).collect();
    let shared = words.iter().filter(|token| frequent.contains(token.lower.as_str())).count();
    let is_same =
        has_words || (theirs < gate::ENGLISH.0 && share(shared, words.len()) >= gate::SAME_LANGUAGE);
    match is_same {
        false => Language::Another,
        // A list of words that is made from English sources contains no function words.
        true if theirs >= gate::ENGLISH.0 => Language::English,
        true if share(capitals, all) < 0.1 && capitals > 0 => Language::Same,
        true => Language::Unknown,
    }
}

fn is_word(token: &Token<'_>) -> bool {
    token.kind != Kind::Number
}
