//! The additional forms in which the text index stores words.
//!
//! The tokenizer of the index splits a text at punctuation, ignores case, and stems every word as if it were English.
//! So four kinds of words are added to a text when it is indexed, and to a question when it is asked:
//!
//! - the exact form of each identifier, as a hash ([`identifiers()`]);
//! - the stem of each word of a text in another language than English ([`language`]);
//! - pairs of characters of texts in Chinese, Japanese and Korean, and characters that are words ([`bigrams`]);
//! - the hash of each emoji ([`signs()`]).
//!
//! Hashes and stems end with a character of the private use area, which the tokenizer treats as a letter. So these
//! stems are never stemmed again, and no ordinary text contains them.

mod bigrams;
mod code_names;
mod identifiers;
mod language;
mod marks;
mod porter;
mod quantities;
pub mod query;
mod signs;

use crate::tuning::EXACT_FACTOR;

pub use bigrams::{Script, characters, is_cjk, pairs, scripts};
pub use code_names::CodeNames;
pub use identifiers::{exact, exact_forms, identifiers};
pub use language::Language;
pub use marks::Marks;
pub use porter::stems;
pub use quantities::quantity;
pub use signs::signs;

/// The character at the end of a stem.
const STEM: char = '\u{E000}';

/// The character at the end of the hash of an identifier.
const EXACT: char = '\u{E001}';

/// Returns whether `c` may be part of a word of the index.
pub fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == STEM || c == EXACT
}

/// Returns whether an identifier may also be a compound of plain words, such as `up-to-date`.
pub fn is_compound(identifier: &str) -> bool {
    identifier.chars().all(|c| c.is_lowercase() || c == '-') && !identifier.starts_with('-')
}

/// A word or a phrase of a question, in all forms in which the index may contain it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    forms: Vec<String>,
    /// The factor by which the weight of the term is multiplied.
    factor: u8,
    is_extra: bool,
}

impl Term {
    /// Returns a term that has a single form, `word`.
    pub fn new(word: impl Into<String>) -> Term {
        Term { forms: vec![word.into()], factor: 1, is_extra: false }
    }

    /// Returns the term for the joined form of an identifier, such as `nocolor`.
    pub fn joined(form: String) -> Term {
        Term { is_extra: true, ..Term::new(form) }
    }

    /// Returns the term for the exact form of `identifier`. The term has more weight if the identifier doesn't look
    /// like a plain word, a compound of plain words, or an abbreviation.
    pub fn exact(identifier: &str) -> Term {
        let is_mixed = identifier
            .as_bytes()
            .windows(2)
            .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
        let is_joined = identifier.contains(|c: char| !c.is_alphanumeric());
        let factor = if is_mixed || (is_joined && !is_compound(identifier)) { EXACT_FACTOR } else { 1 };
        Term { forms: vec![exact(identifier)], factor, is_extra: true }
    }

    /// Returns the term for `word` of a question in `language`: the word and its stem.
    pub fn stemmed(word: &str, language: Option<Language>) -> Term {
        let stem = language.and_then(|language| language.stem(word));
        Term { forms: stem.into_iter().chain([word.to_owned()]).collect(), ..Term::new("") }
    }

    /// Returns the word or phrase as it is written in the question, in lower case.
    pub fn word(&self) -> &str {
        self.forms.last().map_or("", String::as_str)
    }

    /// Returns the forms, the most general one first. A text that contains one of the forms matches.
    pub fn forms(&self) -> &[String] {
        &self.forms
    }

    /// Returns the factor by which the weight of the term is multiplied.
    pub fn factor(&self) -> f64 {
        f64::from(self.factor)
    }

    /// Returns whether the term is an additional form of an identifier whose words are also looked for on their own.
    pub fn is_extra(&self) -> bool {
        self.is_extra
    }
}
