//! Cuts a text into pieces, as `o200k_base` does before it merges bytes. No token extends across two pieces.
//!
//! The patterns are those of tiktoken, except for the one with a look-ahead, `\s+(?!\S)`. This module uses a separate
//! pattern in place of the one with the look-ahead, and the last character of a match of this pattern is left to the
//! next piece. `bpe-openai` does the same, because a regular expression without look-ahead is three times as fast.

use std::cell::RefCell;

use regex_automata::meta::{Cache, Regex};
use regex_automata::{Anchored, Input};

/// Matches two or more characters of white space. The last character of the match is not part of the piece.
const BEFORE_MORE: &str = r"\s+\s";

/// The index of [`BEFORE_MORE`] among the three patterns.
const LOOKS_AHEAD: usize = 1;

thread_local! {
    /// The working memory of a search. Without this cache, each search would take its memory from a pool that all
    /// threads share, and would have to lock the pool.
    static CACHE: RefCell<Option<Cache>> = const { RefCell::new(None) };
}

/// Cuts texts into pieces.
pub(super) struct Splitter {
    patterns: Regex,
}

impl Splitter {
    /// Compiles the patterns.
    pub(super) fn new() -> Splitter {
        let words = [
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+$",
        ]
        .join("|");
        let patterns = Regex::new_many(&[words.as_str(), BEFORE_MORE, r"\s+"]);
        Splitter { patterns: patterns.expect("the patterns are sound") }
    }

    /// Returns the pieces of `text` in order. Joined, they are the text.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> Pieces<'a> {
        let kept = CACHE.take();
        let cache = kept.unwrap_or_else(|| self.patterns.create_cache());
        Pieces { splitter: self, rest: text, cache: Some(cache) }
    }
}

/// The remaining pieces of a text.
pub(super) struct Pieces<'a> {
    splitter: &'a Splitter,
    rest: &'a str,
    /// `Some` until the iterator is dropped.
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
        // While the thread ends, this fails, and the cache is dropped.
        let _ = CACHE.try_with(|kept| kept.replace(cache));
    }
}
