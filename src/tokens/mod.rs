//! How many tokens a text costs: exactly where the tokenizer is public, as a sound interval where it is not.
//!
//! Exact counts agree with tiktoken's and stay linear on hostile input, where tiktoken aborts. A dictionary costs some
//! milliseconds and 6 MB (o200k) or 3 MB (cl100k), and nothing here touches one before the first exact count;
//! [`bounded`] never does. Counts of stored text are computed once, at write; an answer built
//! from stored pieces adds them up, which [`joins_exactly`] allows at line ends. A budget holds on
//! [`TokenCount::high`].
//!
//! Special tokens (`<|endoftext|>`) are counted as the ordinary text they are.
//!
//! It is not a guess by length: characters divided by four is off by −45% to +52%.

use std::fmt;
use std::sync::LazyLock;

pub use bounded::bounded;

use dictionary::Dictionary;
use pieces::PieceCounter;

mod bounded;
mod dictionary;
mod pieces;
mod split;
#[cfg(test)]
mod tests;

/// The longest token of every dictionary here, in bytes (a run of 128 spaces).
const LONGEST_TOKEN: usize = 128;

/// From this many uncut bytes on, [`Tokenizer::truncate`] is content with a token's end (arbitrary).
const LONG_PIECE: usize = 1024;

/// A number of tokens, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCount {
    /// The count to show and to budget with; equal to `high`.
    pub count: usize,
    /// How it was found.
    pub method: Method,
    /// Whether `low`, `count` and `high` are the one true count.
    pub exact: bool,
    /// The true count is at least this.
    pub low: usize,
    /// The true count is at most this; budgets hold on it.
    pub high: usize,
}

impl TokenCount {
    fn exactly(count: usize, tokenizer: Tokenizer) -> TokenCount {
        TokenCount { count, method: Method::Exact(tokenizer), exact: true, low: count, high: count }
    }
}

/// How a count was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Counted with this tokenizer's dictionary.
    Exact(Tokenizer),
    /// Bounded without a dictionary, see [`bounded`].
    Bounded,
}

impl Method {
    /// Returns the word it is stored and shown as: `o200k`, `cl100k` or `bounded`.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Exact(tokenizer) => tokenizer.as_str(),
            Method::Bounded => "bounded",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tokenizer whose dictionary is public and built in; loaded on its first use and then kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tokenizer {
    /// `o200k_base`: GPT-4o and every later OpenAI model.
    #[default]
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

impl Tokenizer {
    /// Every tokenizer, the default first.
    pub const ALL: [Tokenizer; 2] = [Tokenizer::O200k, Tokenizer::Cl100k];

    /// Returns the word it is configured, stored and shown as.
    pub fn as_str(self) -> &'static str {
        match self {
            Tokenizer::O200k => "o200k",
            Tokenizer::Cl100k => "cl100k",
        }
    }

    /// Returns the tokenizer of that name, with or without `_base`, or `None`.
    pub fn parse(name: &str) -> Option<Tokenizer> {
        let name = name.strip_suffix("_base").unwrap_or(name);
        Tokenizer::ALL.into_iter().find(|tokenizer| tokenizer.as_str() == name)
    }

    /// Returns the exact number of tokens of `text`, as tiktoken's `encode_ordinary` would.
    pub fn count(self, text: &str) -> TokenCount {
        let count =
            PieceCounter::with(self, |pieces| self.pieces(text).map(|piece| pieces.count(piece)).sum());
        TokenCount::exactly(count, self)
    }

    /// Returns the exact count where it is at most `limit`, else `None` after work proportional to `limit`.
    pub fn count_up_to(self, text: &str, limit: usize) -> Option<TokenCount> {
        if text.len().div_ceil(LONGEST_TOKEN) > limit {
            return None;
        }
        let count = PieceCounter::with(self, |pieces| {
            self.pieces(text).try_fold(0, |count, piece| {
                let count = count + pieces.count(piece);
                (count <= limit).then_some(count)
            })
        });
        count.map(|count| TokenCount::exactly(count, self))
    }

    /// Returns the longest prefix of `text` that costs at most `limit` tokens, cut between characters.
    ///
    /// Where it ends within more than 1,024 bytes that the tokenizer doesn't cut, a slightly longer one may
    /// fit too.
    pub fn truncate(self, text: &str, limit: usize) -> &str {
        let text = &text[..text.floor_char_boundary(limit.saturating_mul(LONGEST_TOKEN))];
        let (mut start, mut spent) = (0, 0);
        // Where the last two pieces start, and what the text before them costs.
        let mut recent = [(0, 0); 2];
        let overflowing = PieceCounter::with(self, |pieces| {
            self.pieces(text).find(|piece| {
                recent = [recent[1], (start, spent)];
                start += piece.len();
                spent += pieces.count(piece);
                spent > limit
            })
        });
        let Some(piece) = overflowing else { return text };

        let (piece_start, spent_before) = recent[1];
        let last_end = if piece.len() > LONG_PIECE {
            let ends = self.dictionary().ends(piece.as_bytes());
            let fitting = ends.into_iter().take(limit - spent_before).next_back().unwrap_or(0);
            text.floor_char_boundary(piece_start + fitting)
        } else if piece.trim_start().is_empty() {
            // White space at the end of a prefix is cut otherwise than before a word, and may cost less.
            text.len() - text[start..].trim_start().len()
        } else {
            start
        };
        // For the same reason the piece before this one may change with the end of the prefix, but none further back.
        let (stable, spent_on_stable) = recent[0];
        let fits = |&end: &usize| match end.checked_sub(stable) {
            Some(_) => self.count_up_to(&text[stable..end], limit - spent_on_stable).is_some(),
            None => self.count_up_to(&text[..end], limit).is_some(),
        };
        if piece.len() > LONG_PIECE {
            // Each look counts the whole piece: the steps back grow, so that they are few.
            let mut end = last_end;
            let mut step = 1;
            while end > piece_start && !fits(&end) {
                end = text.floor_char_boundary(end.saturating_sub(step).max(piece_start));
                step *= 2;
            }
            if end > piece_start || fits(&end) {
                return &text[..end];
            }
        }
        let last_end = last_end.min(if piece.len() > LONG_PIECE { piece_start } else { last_end });
        let end = (0..=last_end).rev().filter(|&end| text.is_char_boundary(end)).find(fits);
        &text[..end.unwrap_or(0)]
    }

    /// Splits `text` as the tokenizer does before merging bytes; no token spans two pieces.
    fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        self.dictionary().splitter.split(text)
    }

    fn dictionary(self) -> &'static Dictionary {
        static O200K: LazyLock<Dictionary> = LazyLock::new(|| Dictionary::new(Tokenizer::O200k));
        static CL100K: LazyLock<Dictionary> = LazyLock::new(|| Dictionary::new(Tokenizer::Cl100k));
        match self {
            Tokenizer::O200k => &O200K,
            Tokenizer::Cl100k => &CL100K,
        }
    }
}

/// Tells whether `left` and `right` have together exactly the tokens of the one and of the other, in o200k and cl100k.
///
/// So it is where `left` ends in a line feed and `right` starts with what is neither white space nor `/`: both
/// tokenizers first cut a text into pieces, and no piece goes on past such a place. White space would lengthen the
/// piece that the line feed ends; o200k lets punctuation carry its line feeds and slashes (`;\n//`). It says `false`
/// of many pairs that happen to add up too.
pub fn joins_exactly(left: &str, right: &str) -> bool {
    left.is_empty()
        || right.is_empty()
        || (left.ends_with('\n') && !right.starts_with(|first: char| first.is_whitespace() || first == '/'))
}
