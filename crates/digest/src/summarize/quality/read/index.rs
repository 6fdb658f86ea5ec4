//! Reads the sources into an index of their sentences and of short passages.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::functions::is_function;
use super::negatives::{self, Negated};
use super::tokens::{Kind, Token, pair_key, sentences, stem, tokens};
use crate::summarize::Source;
use crate::summarize::word_keys::is_common;

/// The maximum number of tokens of a passage. A passage may have more tokens if it is a single sentence. Arbitrary.
const PASSAGE: usize = 60;

/// The maximum number of bytes that are read of all sources together. `MOST_OF_ONE` is the maximum number of bytes that
/// are read from the beginning of one source, and from its end. Reading [`MOST_BYTES`] takes some 0.15 s.
const MOST_BYTES: usize = 1 << 18;
const MOST_OF_ONE: usize = 32 << 10;

/// The stems of words with which summaries report a conversation. These words need no support.
static REPORTING: LazyLock<HashSet<String>> =
    LazyLock::new(|| include_str!("reporting.txt").split_whitespace().map(stem).collect());

/// Words with which speakers refer to themselves, and words with which they refer to the listener.
const FIRST: [&str; 17] = [
    "i", "i'm", "i've", "i'll", "i'd", "my", "me", "mine", "myself", "we", "we're", "we've", "we'll", "our",
    "us", "we'd", "ours",
];
const SECOND: [&str; 9] = ["you", "you're", "you've", "you'll", "you'd", "your", "yours", "yourself", "ya"];

/// A sentence of a source.
#[derive(Debug)]
pub(in crate::summarize::quality) struct Said {
    /// The index of its source.
    pub(in crate::summarize::quality) source: usize,
    /// The index of its passage.
    pub(in crate::summarize::quality) passage: usize,
    /// How far the sentence is about its speaker and not about the others, from 0 to 1.
    pub(in crate::summarize::quality) own: f64,
    /// The stems of the words that the sentence negates.
    pub(in crate::summarize::quality) negated: BTreeSet<String>,
    /// Whether the sentence contains a negating word.
    pub(in crate::summarize::quality) negates: bool,
}

/// The sentences, words and passages of the sources.
#[derive(Debug, Default)]
pub(in crate::summarize::quality) struct Index {
    /// The sentences in order.
    pub(in crate::summarize::quality) said: Vec<Said>,
    /// The index of the source of each passage.
    pub(in crate::summarize::quality) passages: Vec<usize>,
    /// For each stem, the sentences that contain it.
    pub(in crate::summarize::quality) places: HashMap<String, Vec<u32>>,
    /// The pairs of neighbouring tokens.
    pub(in crate::summarize::quality) pairs: HashSet<u64>,
    /// The pairs of neighbouring words that are negated.
    pub(in crate::summarize::quality) negated: Negated,
}

/// Returns whether a token is a content word, so that the sources must support it.
pub(in crate::summarize::quality) fn is_content(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Pair => true,
        Kind::Number => false,
        Kind::Word => {
            !(is_function(&token.lower)
                || is_common(&token.lower, &token.lower)
                || REPORTING.contains(&token.stem))
        }
    }
}

/// Returns whether a token is a word with which summaries report a conversation.
pub(in crate::summarize::quality) fn is_reporting(token: &Token<'_>) -> bool {
    REPORTING.contains(&token.stem)
}

/// Returns the sources that are read to judge `summary`. If all sources together are too long, these are the sources
/// that contain the largest number of different words of the summary. Only the beginning and the end of a long source
/// are read.
pub(in crate::summarize::quality) fn readable<'a>(summary: &str, sources: &[Source<'a>]) -> Vec<Source<'a>> {
    let cut = |source: &Source<'a>| -> Vec<Source<'a>> {
        let text = source.text;
        if text.len() <= 2 * MOST_OF_ONE {
            return vec![*source];
        }
        let first = &text[..text.floor_char_boundary(MOST_OF_ONE)];
        let last = &text[text.ceil_char_boundary(text.len() - MOST_OF_ONE)..];
        [first, last].map(|text| Source { text, ..*source }).into()
    };
    let all: Vec<Source<'a>> = sources.iter().flat_map(cut).collect();
    if all.iter().map(|source| source.text.len()).sum::<usize>() <= MOST_BYTES {
        return all;
    }
    let words: BTreeSet<String> = tokens(summary)
        .into_iter()
        .filter(|token| is_content(token) || token.kind == Kind::Number)
        .map(|token| token.lower)
        .collect();
    let Ok(finder) = AhoCorasick::builder().ascii_case_insensitive(true).build(&words) else {
        return Vec::new();
    };
    let shared =
        |text: &str| finder.find_iter(text).map(|found| found.pattern()).collect::<HashSet<_>>().len();
    let mut order: Vec<(usize, usize)> =
        all.iter().enumerate().map(|(place, source)| (shared(source.text), place)).collect();
    order.sort_by_key(|(shared, place)| (std::cmp::Reverse(*shared), *place));
    let mut left = MOST_BYTES;
    let fits = |(_, place): &(usize, usize)| {
        let rest = left.checked_sub(all[*place].text.len());
        left = rest.unwrap_or(left);
        rest.map(|_| *place)
    };
    let mut chosen: Vec<usize> = order.iter().filter_map(fits).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|place| all[place]).collect()
}

impl Index {
    /// Reads the sources.
    pub(in crate::summarize::quality) fn of(sources: &[Source<'_>]) -> Index {
        let mut index = Index::default();
        for (source, text) in sources.iter().enumerate() {
            let mut length = 0;
            let mut is_open = false;
            for sentence in sentences(text.text) {
                let found = tokens(sentence);
                if !is_open || length + found.len() > PASSAGE {
                    index.passages.push(source);
                    (is_open, length) = (true, 0);
                }
                length += found.len();
                index.add(source, &found);
            }
        }
        index
    }

    fn add(&mut self, source: usize, tokens: &[Token<'_>]) {
        let place = self.said.len() as u32;
        for token in tokens {
            let places = self.places.entry(token.stem.clone()).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        self.negated.add(tokens, self.passages.len() - 1);
        self.pairs.extend(tokens.windows(2).map(|pair| pair_key(&pair[0], &pair[1])));
        let has = |list: &[&str]| tokens.iter().any(|token| list.contains(&token.lower.as_str()));
        let own = match (has(&FIRST), has(&SECOND)) {
            (true, false) => 1.0,
            (false, true) => 0.0,
            _ => 0.7,
        };
        self.said.push(Said {
            source,
            passage: self.passages.len() - 1,
            own,
            negated: negatives::around(tokens),
            negates: tokens.iter().any(negatives::negates),
        });
    }

    /// Returns whether any source contains a word with this stem.
    pub(in crate::summarize::quality) fn has(&self, stem: &str) -> bool {
        self.places.contains_key(stem)
    }

    /// Returns the sentences that contain a word with this stem.
    pub(in crate::summarize::quality) fn with(&self, stem: &str) -> impl Iterator<Item = &Said> {
        let places = self.places.get(stem).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| &self.said[*place as usize])
    }

    /// Returns the weight of a word. Rare words have a higher weight.
    pub(in crate::summarize::quality) fn weight(&self, stem: &str) -> f64 {
        let spread = self.places.get(stem).map_or(0, Vec::len);
        (1.0 + self.passages.len() as f64 / (1.0 + spread as f64)).ln()
    }

    /// For each passage that shares words with `words`, or whose neighbours do, returns the weight of the shared words.
    pub(in crate::summarize::quality) fn support<'a>(
        &self,
        words: impl Iterator<Item = &'a String>,
    ) -> BTreeMap<usize, f64> {
        let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
        for word in words {
            let weight = self.weight(word);
            let mut windows: BTreeSet<usize> = BTreeSet::new();
            for said in self.with(word) {
                windows
                    .extend(said.passage.saturating_sub(1)..=(said.passage + 1).min(self.passages.len() - 1));
            }
            windows.into_iter().for_each(|window| *shared.entry(window).or_default() += weight);
        }
        shared
    }
}
