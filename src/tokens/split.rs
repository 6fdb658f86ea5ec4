//! Cuts a text as the tokenizers do before they merge bytes; no token spans two pieces.
//!
//! The patterns are tiktoken's with its one look-ahead, `\s+(?!\S)`, written as a pattern of its own whose last
//! character is given back: a regular expression without look-ahead is three times as fast (after `bpe-openai`).

use std::cell::RefCell;

use regex_automata::meta::{Cache, Regex};
use regex_automata::{Anchored, Input};

use super::Tokenizer;

/// White space before more white space; the last character is not part of the piece.
const BEFORE_MORE: &str = r"\s+\s";

/// The number of that pattern among a tokenizer's three.
const LOOKS_AHEAD: usize = 1;

thread_local! {
    /// What searching needs room for. Without it each search would fetch that from a pool that all threads share,
    /// behind a lock, for every piece of a text.
    static CACHES: [RefCell<Option<Cache>>; Tokenizer::ALL.len()] = const { [RefCell::new(None), RefCell::new(None)] };
}

/// How one tokenizer cuts.
pub(super) struct Splitter {
    tokenizer: Tokenizer,
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
        Splitter { tokenizer, patterns: patterns.expect("the patterns are sound") }
    }

    /// Returns the pieces of `text`, in order; together they are the text.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        let kept = CACHES.with(|caches| caches[self.tokenizer as usize].take());
        let cache = kept.unwrap_or_else(|| self.patterns.create_cache());
        Pieces { splitter: self, rest: text, cache: Some(cache) }
    }
}

/// The pieces of a text that are still to come.
pub(super) struct Pieces<'a> {
    splitter: &'a Splitter,
    rest: &'a str,
    /// There until it is dropped.
    cache: Option<Cache>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let input = Input::new(self.rest).anchored(Anchored::Yes);
        let found = self.splitter.patterns.search_with(self.cache.as_mut()?, &input)?;
        let mut end = found.end();
        if found.pattern().as_usize() == LOOKS_AHEAD {
            end = self.rest[..end].char_indices().next_back().map_or(end, |(last, _)| last);
        }
        let piece;
        (piece, self.rest) = self.rest.split_at(end);
        Some(piece)
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        let cache = self.cache.take();
        // Where the thread is ending there is nowhere to keep it.
        let _ = CACHES.try_with(|caches| caches[self.splitter.tokenizer as usize].replace(cache));
    }
}
