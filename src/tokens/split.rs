//! Cuts a text as the tokenizers do before they merge bytes; no token spans two pieces.
//!
//! The patterns are tiktoken's with its one look-ahead, `\s+(?!\S)`, written as a pattern of its own whose last
//! character is given back: a regular expression without look-ahead is three times as fast (after `bpe-openai`).

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use super::Tokenizer;

/// White space before more white space; the last character is not part of the piece.
const BEFORE_MORE: &str = r"\s+\s";

/// The number of that pattern among a tokenizer's three.
const LOOKS_AHEAD: usize = 1;

/// How one tokenizer cuts.
pub(super) struct Splitter {
    patterns: Regex,
}

impl Splitter {
    /// Returns the splitter of `tokenizer`.
    pub(super) fn new(tokenizer: Tokenizer) -> Splitter {
        let words = match tokenizer {
            Tokenizer::O200k => [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+$",
            ]
            .join("|"),
            // tiktoken has since put `\s++$` before line breaks; no token could tell, so counts are the same.
            Tokenizer::Cl100k => [
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
                r"[^\r\n\p{L}\p{N}]?\p{L}+",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"\s*[\r\n]+",
                r"\s+$",
            ]
            .join("|"),
        };
        let patterns = Regex::new_many(&[words.as_str(), BEFORE_MORE, r"\s+"]);
        Splitter { patterns: patterns.expect("the patterns are sound") }
    }

    /// Returns the pieces of `text`, in order; together they are the text.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let found = self.patterns.find(Input::new(rest).anchored(Anchored::Yes))?;
            let mut end = found.end();
            if found.pattern().as_usize() == LOOKS_AHEAD {
                end = rest[..end].char_indices().next_back().map_or(end, |(last, _)| last);
            }
            let piece;
            (piece, rest) = rest.split_at(end);
            Some(piece)
        })
    }
}
