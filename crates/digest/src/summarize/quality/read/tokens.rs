//! Reads a text as tokens: words with their stems, and numbers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

use crate::summarize::word_keys::is_spaceless;
use tiro_text::blocks::{self, Block};

/// The number of letters that a stem keeps. In every language that adds endings, words with the same beginning mostly
/// have the same meaning ("inspired", "inspiration"). Arbitrary.
const STEM: usize = 5;

/// Irregular forms of frequent verbs and nouns. Each irregular form is followed by another form of the same word, whose
/// stem it gets.
static IRREGULAR: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let words: Vec<&str> = include_str!("irregular.txt").split_whitespace().collect();
    words.as_chunks::<2>().0.iter().map(|[form, base]| (*form, *base)).collect()
});

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::summarize::quality) enum Kind {
    /// A word.
    Word,
    /// A pair of characters of a script without spaces.
    Pair,
    /// A word that begins with a digit.
    Number,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::summarize::quality) struct Token<'a> {
    /// The token as written, without the ending `'s`.
    pub(in crate::summarize::quality) text: &'a str,
    /// Its kind.
    pub(in crate::summarize::quality) kind: Kind,
    /// The token in lower case.
    pub(in crate::summarize::quality) lower: String,
    /// Its stem. Words with the same stem count as the same.
    pub(in crate::summarize::quality) stem: String,
    /// Whether it ends in `'s`.
    pub(in crate::summarize::quality) is_possessive: bool,
    /// Whether a comma or another mark follows it.
    pub(in crate::summarize::quality) is_before_mark: bool,
}

impl Token<'_> {
    /// Returns whether the token is written with a capital letter.
    pub(in crate::summarize::quality) fn is_capital(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }
}

/// Returns the tokens of `text` in order.
pub(in crate::summarize::quality) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut start: Option<usize> = None;
    // The previous character, if it belongs to a script without spaces, and whether a pair already contains it.
    let mut before: Option<(usize, bool)> = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let is_spaceless = is_spaceless(c);
        if !is_spaceless
            && (c.is_alphanumeric() || start.is_some_and(|start| joins(&text[start..at], c, next)))
        {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            found.push(token(text, start, at, Kind::Word));
        }
        match (before, is_spaceless) {
            (Some((first, _)), true) => {
                found.push(token(text, first, at + c.len_utf8(), Kind::Pair));
                before = Some((at, true));
            }
            (None, true) => before = Some((at, false)),
            (Some((first, is_used)), false) => {
                if !is_used {
                    found.push(token(text, first, at, Kind::Pair));
                }
                before = None;
            }
            (None, false) => {}
        }
        if matches!(c, ',' | ';' | ':' | '(' | ')' | '—' | '–') && start.is_none() {
            found.last_mut().into_iter().for_each(|last| last.is_before_mark = true);
        }
    }
    if let Some(start) = start {
        found.push(token(text, start, text.len(), Kind::Word));
    }
    if let Some((first, false)) = before {
        found.push(token(text, first, text.len(), Kind::Pair));
    }
    found
}

/// Returns whether the mark `c` continues the token `open`. For example, an apostrophe continues a word, and a point
/// continues a number.
fn joins(open: &str, c: char, next: Option<char>) -> bool {
    match c {
        '\'' | '’' => next.is_some_and(char::is_alphanumeric),
        '.' | ',' | ':' => {
            let is_digit = |c: char| c.is_ascii_digit();
            open.starts_with(is_digit) && open.ends_with(is_digit) && next.is_some_and(is_digit)
        }
        _ => false,
    }
}

fn token(text: &str, start: usize, end: usize, kind: Kind) -> Token<'_> {
    let word = &text[start..end];
    let bare = ["'s", "’s", "'S"].iter().find_map(|ending| word.strip_suffix(ending));
    let is_possessive = bare.is_some();
    let word = bare.unwrap_or(word);
    let kind = match kind {
        Kind::Word if word.starts_with(char::is_numeric) => Kind::Number,
        kind => kind,
    };
    let lower = word.to_lowercase().replace('’', "'");
    let stem = if kind == Kind::Word { stem(&lower) } else { lower.clone() };
    Token { text: word, kind, lower, stem, is_possessive, is_before_mark: false }
}

/// Returns the stem of a word, which is in lower case.
pub(in crate::summarize::quality) fn stem(word: &str) -> String {
    if let Some(base) = IRREGULAR.get(word) {
        return base.trim_end_matches(['e', 'y']).chars().take(STEM).collect();
    }
    let endings = ["ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e"];
    let bare = match word.is_ascii() {
        true => {
            endings.into_iter().find_map(|ending| word.strip_suffix(ending)).filter(|rest| rest.len() >= 3)
        }
        false => None,
    };
    let mut bare = bare.unwrap_or(word);
    // "planned" gets the stem of "plan".
    let last = bare.as_bytes().last().copied().unwrap_or_default();
    let is_double = bare.len() > 3 && bare.len() < word.len() && bare.as_bytes()[bare.len() - 2] == last;
    if is_double && !matches!(last, b'l' | b's') {
        bare = &bare[..bare.len() - 1];
    }
    bare.chars().take(STEM).collect()
}

/// Returns the sentences of `text` in order, and the lines of its code and tables.
pub(in crate::summarize) fn sentences(text: &str) -> Vec<&str> {
    let parts = |block: &Block| -> Vec<Range<usize>> {
        match block.kind {
            blocks::Kind::Prose | blocks::Kind::Item | blocks::Kind::Heading | blocks::Kind::Quotation => {
                blocks::sentences(block).into_iter().map(|sentence| sentence.range).collect()
            }
            _ => {
                let lines = text[block.range.clone()].split_inclusive('\n');
                let ends = lines.scan(block.range.start, |end, line| {
                    let start = *end;
                    *end += line.len();
                    Some(start..*end)
                });
                ends.collect()
            }
        }
    };
    let all = blocks::blocks(text);
    let part = |range: Range<usize>| {
        text[text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)].trim()
    };
    all.iter().flat_map(parts).map(part).filter(|part| !part.is_empty()).collect()
}

/// Returns the key by which pairs of neighbouring tokens are compared.
pub(in crate::summarize::quality) fn pair_key(first: &Token<'_>, second: &Token<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&first.lower, &second.lower).hash(&mut hasher);
    hasher.finish()
}
