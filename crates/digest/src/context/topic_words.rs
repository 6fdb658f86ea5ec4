//! Finds the words that characterise the topic of a text.

use std::collections::HashSet;

/// The minimum number of characters of a characteristic word. Arbitrary: this excludes most function words.
const SHORTEST: usize = 4;

/// Common words of four letters and more, which are not characteristic. The list is English. In other languages, every
/// word of this length counts as characteristic.
const COMMON: &[&str] = &[
    "about",
    "after",
    "again",
    "also",
    "always",
    "another",
    "anything",
    "been",
    "before",
    "being",
    "could",
    "does",
    "doing",
    "done",
    "each",
    "even",
    "every",
    "first",
    "from",
    "going",
    "good",
    "great",
    "have",
    "here",
    "into",
    "just",
    "know",
    "like",
    "look",
    "made",
    "make",
    "many",
    "maybe",
    "more",
    "most",
    "much",
    "need",
    "next",
    "okay",
    "only",
    "other",
    "over",
    "please",
    "really",
    "right",
    "same",
    "should",
    "some",
    "something",
    "still",
    "such",
    "sure",
    "take",
    "than",
    "thank",
    "thanks",
    "that",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "think",
    "this",
    "those",
    "through",
    "time",
    "very",
    "want",
    "well",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "will",
    "with",
    "would",
    "your",
    "yours",
];

/// Returns the characteristic words of `text` in lower case, in order. A word that occurs several times is returned
/// several times.
pub(super) fn characteristic(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    words.filter(|word| word.chars().nth(SHORTEST - 1).is_some()).map(stem).filter(|word| !is_common(word))
}

/// Returns the set of the characteristic words of `text`.
pub(super) fn set(text: &str) -> HashSet<String> {
    characteristic(text).collect()
}

/// Returns the word in lower case without a plural `s`.
fn stem(word: &str) -> String {
    let word = word.to_lowercase();
    match word.strip_suffix('s') {
        Some(stem) if stem.len() >= SHORTEST && !stem.ends_with('s') => stem.to_owned(),
        _ => word,
    }
}

fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_for_searching() {
        assert!(COMMON.is_sorted());
    }

    #[test]
    fn connectors_are_left_out_and_plurals_are_one_word() {
        let words: Vec<String> =
            characteristic("What about the caches? The cache_key of THOSE Caches…").collect();
        assert_eq!(words, ["cache", "cache_key", "cache"]);
    }
}
