//! Finds the words that negate, and the words that a sentence negates.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use super::tokens::Token;

/// Words that negate the words after them.
const NEGATIONS: [&str; 16] = [
    "not", "no", "never", "cannot", "without", "none", "nothing", "nobody", "neither", "nor", "cant", "dont",
    "didnt", "doesnt", "isnt", "wont",
];

/// Words with a negative meaning. A summary may express them by a negation.
const NEGATIVE: &str = "hard difficult unable lack lacks lacking fail failed fails miss missed missing avoid stop stopped \
    refuse refused reject rejected decline declined away instead only rather few little hardly barely too wrong bad \
    problem issue less but impossible unless until yet allergic sad sorry unfortunately regret wish unlike drop dropped \
    skip skipped remove removed quit gave lost lose than different hate worry worried afraid scared doubt wonder if \
    anymore longer enough ill sick busy";

/// Two numbers of tokens: how many a negating word negates after it, and how many it may negate before it. Arbitrary.
pub(in crate::summarize::quality) const REACH: usize = 8;
const REACH_BACK: usize = 4;

static ALL: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| NEGATIONS.into_iter().chain(NEGATIVE.split_whitespace()).collect());

/// Returns whether a token negates.
pub(in crate::summarize::quality) fn negates(token: &Token<'_>) -> bool {
    token.lower.ends_with("n't") || NEGATIONS.contains(&token.lower.as_str())
}

/// Returns whether a token has a negative meaning, so that a summary may express it by a negation.
pub(in crate::summarize::quality) fn is_negative(token: &Token<'_>) -> bool {
    let starts = ["un", "in", "im", "dis", "non"];
    negates(token)
        || ALL.contains(token.lower.as_str())
        || (token.lower.len() > 6 && starts.iter().any(|start| token.lower.starts_with(start)))
}

/// Returns the stems of the words that are negated or are near a word with a negative meaning.
pub(in crate::summarize::quality) fn around(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (place, _) in tokens.iter().enumerate().filter(|(_, token)| is_negative(token)) {
        let near = &tokens[place.saturating_sub(REACH_BACK)..(place + REACH + 1).min(tokens.len())];
        found.extend(near.iter().map(|token| token.stem.clone()));
    }
    found
}

/// The pairs of words that the sources negate directly, and the pairs that they use without a negation.
#[derive(Debug, Default)]
pub(in crate::summarize::quality) struct Negated {
    /// The pairs of stems of neighbouring words right after a negating word, each with the passages that contain the
    /// pair.
    pub(in crate::summarize::quality) after: HashMap<String, Vec<usize>>,
    /// The pairs of stems of neighbouring words at other places.
    pub(in crate::summarize::quality) elsewhere: HashSet<String>,
}

/// A negating word directly negates this many tokens after it. Arbitrary.
const DIRECT: usize = 2;

impl Negated {
    /// Adds a sentence of a source.
    pub(in crate::summarize::quality) fn add(&mut self, tokens: &[Token<'_>], passage: usize) {
        let mut left = 0;
        for (place, token) in tokens.iter().enumerate() {
            let next = tokens.get(place + 1);
            if negates(token) {
                // "Can't wait" and "don't worry" negate nothing.
                let is_idiom = next.is_some_and(|next| IDIOMS.contains(&next.lower.as_str()));
                left = if is_idiom { 0 } else { DIRECT };
                continue;
            }
            if let Some(next) = next {
                let pair = format!("{} {}", token.stem, next.stem);
                match left {
                    0 => drop(self.elsewhere.insert(pair)),
                    _ => self.after.entry(pair).or_default().push(passage),
                }
            }
            left = if token.is_before_mark { 0 } else { usize::saturating_sub(left, 1) };
        }
    }
}

/// Words that form an idiom with a negating word before them.
const IDIOMS: [&str; 6] = ["wait", "only", "just", "worry", "forget", "problem"];
