//! Splits a sentence into words, and finds the stems by which sentences are compared.

use std::collections::BTreeSet;

use tiro_text::words::{Language, is_cjk, pairs, scripts};

/// Words that begin a question even if it has no question mark.
pub(crate) const ASKS: &str =
    "should can could would do does did is are was will shall what why how when where which who whose
    what's how's";

/// A word, a number, or a mark of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The token as written.
    pub text: &'a str,
    /// The byte at which it begins.
    pub start: usize,
    /// The byte after its end.
    pub end: usize,
}

impl Token<'_> {
    /// Returns whether it is a word.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(char::is_alphabetic)
    }

    /// Returns whether it begins with a digit, or with a sign of money and a digit.
    pub fn is_number(&self) -> bool {
        self.text.trim_start_matches(['$', '€', '£']).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Returns the stems by which the token is compared: none for a mark and for a word in `stopwords`.
    pub fn stems(&self, language: Option<Language>) -> Vec<String> {
        let lower = self.lower();
        match () {
            () if !self.is_word() && !self.is_number() => Vec::new(),
            () if lower.contains(is_cjk) => {
                let of_part = |(script, part): (Option<_>, &str)| match script {
                    Some(_) => pairs(part).map(str::to_owned).collect(),
                    None => vec![stem(part)],
                };
                scripts(&lower).flat_map(of_part).collect::<Vec<String>>()
            }
            () if Language::is_stopword_of(language, &lower) => Vec::new(),
            () => vec![stem(&lower)],
        }
    }

    /// Returns the token in lower case, with straight apostrophes.
    pub fn lower(&self) -> String {
        self.text.to_lowercase().replace('’', "'")
    }
}

/// Returns the tokens of `text` in order. White space is left out.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((start, first)) = characters.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut end = start + first.len_utf8();
        let is_money = matches!(first, '$' | '€' | '£');
        let is_number =
            first.is_ascii_digit() || (is_money && text[end..].starts_with(|c: char| c.is_ascii_digit()));
        if is_number || first.is_alphanumeric() || first == '_' {
            while let Some((at, c)) = characters.peek().copied() {
                let next = text[at + c.len_utf8()..].chars().next();
                let joins = match c {
                    '\'' | '’' | '-' | '_' => next.is_some_and(char::is_alphanumeric) && !is_number,
                    '.' | ',' | ':' | '/' if is_number => next.is_some_and(|next| next.is_ascii_digit()),
                    '.' | '/' => next.is_some_and(char::is_alphanumeric) && !is_number,
                    '%' => is_number,
                    _ => c.is_alphanumeric(),
                };
                if !joins {
                    break;
                }
                end = at + c.len_utf8();
                characters.next();
            }
        }
        tokens.push(Token { text: &text[start..end], start, end });
    }
    tokens
}

/// Returns the stems of the words and numbers of `text`. Stopwords are left out.
pub fn stems(text: &str) -> BTreeSet<String> {
    let language = Language::of(text);
    tokens(text).iter().flat_map(|token| token.stems(language)).collect()
}

/// Returns the stem of the first word of `text` that is no stopword; `None` if there is none.
pub fn first_stem(text: &str) -> Option<String> {
    let language = Language::of(text);
    tokens(text).iter().flat_map(|token| token.stems(language)).next()
}

/// Returns a word in lower case without its usual English endings. Words that are not English stay as they are.
pub(super) fn stem(word: &str) -> String {
    let mut word = word.to_lowercase().replace('’', "'");
    if let Some(owner) = word.strip_suffix("'s") {
        word.truncate(owner.len());
    }
    if !word.is_ascii() {
        return word;
    }
    let endings =
        [("ies", "y", 5), ("ing", "", 6), ("ed", "", 6), ("ly", "", 6), ("es", "e", 5), ("s", "", 4)];
    let ending = endings
        .iter()
        .find(|(ending, _, least)| word.ends_with(ending) && word.len() >= *least && !word.ends_with("ss"));
    if let Some((ending, instead, _)) = ending {
        word.truncate(word.len() - ending.len());
        word.push_str(instead);
    }
    if word.len() > 4 && word.ends_with('e') {
        word.pop();
    }
    let bytes = word.as_bytes();
    if let [.., before, last] = bytes
        && word.len() > 3
        && before == last
        && !b"aeiousl".contains(last)
    {
        word.pop();
    }
    word
}

/// Returns the words of `text` in lower case. `must-read` is one word.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '_' | '-')));
    words
        .map(|word| word.trim_matches(['\'', '-']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns whether a list of words, separated by spaces, has a word.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|each| each == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_numbers_and_marks() {
        let text = "It's $1,200.50 (≈ 95%), v1.2.3 on src/main.rs at 4:30 PM—or 12/15.";
        let found: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(
            found,
            [
                "It's",
                "$1,200.50",
                "(",
                "≈",
                "95%",
                ")",
                ",",
                "v1.2.3",
                "on",
                "src/main.rs",
                "at",
                "4:30",
                "PM",
                "—",
                "or",
                "12/15",
                "."
            ]
        );
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [["source", "sources"], ["mapping", "mapped"], ["weekly", "week"], ["query", "queries"]]
        {
            assert_eq!(stem(forms[0]), stem(forms[1]), "{forms:?}");
        }
        assert_eq!((stem("class"), stem("größen")), ("class".into(), "größen".into()));
    }
}
