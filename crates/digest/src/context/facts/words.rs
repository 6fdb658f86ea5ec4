//! Divides texts into words.

/// Words that begin a question even if it has no question mark.
pub(super) const ASKS: &str =
    "should can could would do does did is are was will shall what why how when where which who whose
    what's how's";

/// Returns the words of `text` in lower case. `must-read` is one word.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '_' | '-')));
    words
        .map(|word| word.trim_matches(['\'', '-']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns whether a list of words, separated by spaces, has a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|each| each == word)
}
