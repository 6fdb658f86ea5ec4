//! Finds the words of a text and the keys that are used to compare words. Also recognises common words and identifiers.
//!
//! In scripts without spaces, each pair of neighbouring characters counts as a word. A dictionary would take megabytes,
//! and pairs show nearly as well what two sentences have in common. Endings of words are removed in English only.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Common English words: function words, greetings, praise and frequent verbs. Other languages have no such list. In
/// these languages, a word counts as common only if it occurs often.
const COMMON: &str = include_str!("common.txt");

static COMMON_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| COMMON.split_whitespace().collect());

static COMMON_STEMS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| COMMON.split_whitespace().map(stem).collect());

/// A word and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// The word as written.
    pub(super) text: &'a str,
    /// The byte at which it begins.
    pub(super) start: usize,
    /// Whether it is a pair of characters of a script without spaces.
    pub(super) is_pair: bool,
}

/// Returns the words of `text` in order.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    // The previous character, if it belongs to a script without spaces, and whether a pair already contains it.
    let mut before: Option<(usize, bool)> = None;
    let end = text.char_indices().map(Some).chain([None]);
    for place in end {
        let (at, c) = place.unwrap_or((text.len(), ' '));
        let spaceless = is_spaceless(c);
        if spaceless || !c.is_alphanumeric() {
            if let Some(start) = start.take() {
                words.push(Word { text: &text[start..at], start, is_pair: false });
            }
        } else if start.is_none() {
            start = Some(at);
        }
        match (before, spaceless) {
            (Some((first, _)), true) => {
                words.push(Word { text: &text[first..at + c.len_utf8()], start: first, is_pair: true });
                before = Some((at, true));
            }
            (None, true) => before = Some((at, false)),
            (Some((first, false)), false) => {
                words.push(Word { text: &text[first..at], start: first, is_pair: true });
                before = None;
            }
            (_, false) => before = None,
        }
    }
    words
}

/// Returns the key of `word`: the word in lower case, without an English ending. Words with the same key count as the
/// same.
pub(super) fn key(word: &str) -> String {
    let lower = word.to_lowercase();
    let length = stem(&lower).len();
    let mut key = lower;
    key.truncate(length);
    key
}

/// Returns whether `word`, which has the key `key`, is common or a single letter.
pub(super) fn is_common(word: &str, key: &str) -> bool {
    let is_letter = key.chars().nth(1).is_none() && !key.starts_with(|c: char| c.is_numeric());
    (is_letter && key.is_ascii())
        || COMMON_STEMS.contains(key)
        || (word.is_ascii() && COMMON_WORDS.contains(word.to_ascii_lowercase().as_str()))
}

/// Returns whether `word` is a number or contains a digit, as some identifiers do.
pub(super) fn has_digit(word: &str) -> bool {
    word.contains(|c: char| c.is_numeric())
}

/// Returns whether `word` is written like an identifier, with a capital letter inside.
pub(super) fn is_identifier(word: &str) -> bool {
    let mut letters = word.chars().skip_while(|c| c.is_uppercase());
    letters.next().is_some_and(char::is_lowercase) && letters.any(char::is_uppercase)
}

/// Returns whether the script of `character` has no spaces between words.
pub(super) fn is_spaceless(character: char) -> bool {
    match character {
        // Thai, Lao, Myanmar, Khmer.
        '\u{e01}'..='\u{e4f}' | '\u{e81}'..='\u{edf}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}' => {
            true
        }
        // Kana, ideographs and their extensions. Hangul is not included, because Korean has spaces.
        '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => {
            character.is_alphanumeric() || character == 'ー'
        }
        '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => true,
        _ => false,
    }
}

/// Returns `word`, which is in lower case, without its English ending.
fn stem(word: &str) -> &str {
    if !word.is_ascii() || has_digit(word) {
        return word;
    }
    let ending =
        ["ing", "ies", "ed", "es", "s", "ly"].into_iter().find_map(|ending| word.strip_suffix(ending));
    ending.filter(|rest| rest.len() >= 3).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_script() {
        for (text, expected) in [
            ("Don't stop, Ana!", &["Don", "t", "stop", "Ana"][..]),
            ("run foo_bar 3.5x", &["run", "foo", "bar", "3", "5x"]),
            ("東京は雨", &["東京", "京は", "は雨"]),
            ("雨 in 東", &["雨", "in", "東"]),
            ("한국어 문장", &["한국어", "문장"]),
            ("", &[]),
        ] {
            let found: Vec<&str> = words(text).iter().map(|word| word.text).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_equal_by_their_stems() {
        for (word, expected) in [
            ("Painting", "paint"),
            ("paints", "paint"),
            ("agencies", "agenc"),
            ("bed", "bed"),
            ("V2s", "v2s"),
            ("ÉTÉS", "étés"),
        ] {
            assert_eq!(key(word), expected);
        }
    }

    #[test]
    fn common_words_and_names() {
        for (word, common) in
            [("Really", true), ("loved", true), ("t", true), ("sqlite", false), ("7", false)]
        {
            assert_eq!(is_common(word, &key(word)), common, "{word}");
        }
        for (word, identifier) in
            [("HttpClient", true), ("useState", true), ("Caroline", false), ("HTTP", false), ("plain", false)]
        {
            assert_eq!(is_identifier(word), identifier, "{word}");
        }
    }
}
