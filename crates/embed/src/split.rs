//! Divides texts that are longer than the model's limit.
//!
//! Texts are cut between words, so a piece alone has the same tokens as within the text. Each piece before a cut is at
//! least half full. The best place for a cut is the end of a paragraph, followed by the end of a line, of a sentence,
//! and of a word. Among equally good cuts, the last is taken. `chunk` divides documents by their structure; this module
//! only keeps pieces within the limit.

use std::collections::VecDeque;
use std::ops::Range;

/// The kinds of gaps before a word, from the weakest to the strongest separation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    Word,
    Sentence,
    Line,
    Paragraph,
}

struct Word {
    start: usize,
    tokens: usize,
    before: Break,
}

/// Collects the words of a text, in order, into pieces. Only the words of the current piece are kept in memory.
pub struct Splitter<'a> {
    text: &'a str,
    limit: usize,
    overlap: usize,
    /// The words of the piece that is being filled.
    words: VecDeque<Word>,
    tokens: usize,
    /// How many words at the beginning of `words` repeat the end of the previous piece.
    repeated: usize,
    /// Where the last word ended.
    end: usize,
    pieces: Vec<Range<usize>>,
}

impl<'a> Splitter<'a> {
    /// Returns a splitter that cuts `text` into pieces of at most `limit` tokens. Each piece begins with up to
    /// `overlap` tokens from the end of the previous piece. The overlap is at most a quarter of the limit, so that each
    /// piece makes progress.
    pub fn new(text: &'a str, limit: usize, overlap: usize) -> Splitter<'a> {
        let limit = limit.max(1);
        Splitter {
            text,
            limit,
            overlap: overlap.min(limit / 4),
            words: VecDeque::new(),
            tokens: 0,
            repeated: 0,
            end: 0,
            pieces: vec![],
        }
    }

    /// Adds the next word. A word with more tokens than the limit becomes a piece by itself, which exceeds the
    /// limit.
    pub fn push(&mut self, range: Range<usize>, tokens: usize) {
        // The text before the first word has no tokens and belongs to the piece of the first word.
        let start = if self.words.is_empty() && self.pieces.is_empty() { 0 } else { range.start };
        if self.tokens + tokens > self.limit && self.repeated < self.words.len() {
            self.cut(range.start);
        }
        // A long word may still not fit beside the words that are left. To make room, repeated words are dropped. If
        // there are none, the piece is cut once more.
        while self.tokens + tokens > self.limit && !self.words.is_empty() {
            if self.repeated > 0 {
                self.drop_words(1);
            } else {
                self.cut(range.start);
            }
        }
        self.words.push_back(Word { start, tokens, before: self.gap(range.start) });
        self.tokens += tokens;
        self.end = range.end;
    }

    /// Returns the pieces as ranges of bytes, in order, without blanks at their ends. A blank text has no pieces.
    pub fn finish(mut self) -> Vec<Range<usize>> {
        if let Some(first) = self.words.front() {
            let range = first.start..self.text.len();
            self.keep(range);
        }
        self.pieces
    }

    /// Ends the current piece at the best place, and keeps the overlap and the words after this place for the next
    /// piece.
    fn cut(&mut self, next: usize) {
        let half = self.tokens / 2;
        let mut best = (self.gap(next), self.words.len());
        let mut before = 0;
        for (i, word) in self.words.iter().enumerate() {
            let ends_later_or_better =
                word.before > best.0 || (word.before == best.0 && best.1 < self.words.len());
            if i > self.repeated && before >= half && ends_later_or_better {
                best = (word.before, i);
            }
            before += word.tokens;
        }
        let cut = best.1;
        let end = self.words.get(cut).map_or(next, |word| word.start);
        self.keep(self.words[0].start..end);
        // The overlap ends at the cut and never includes the first word of the piece, so that the next piece begins
        // later than this one.
        let (mut first, mut overlap) = (cut, 0);
        while first > 1 && overlap + self.words[first - 1].tokens <= self.overlap {
            first -= 1;
            overlap += self.words[first].tokens;
        }
        self.drop_words(first);
        self.repeated = cut - first;
    }

    fn drop_words(&mut self, count: usize) {
        self.tokens -= self.words.drain(..count).map(|word| word.tokens).sum::<usize>();
        self.repeated = self.repeated.saturating_sub(count);
    }

    fn keep(&mut self, range: Range<usize>) {
        let piece = &self.text[range.clone()];
        let start = range.start + (piece.len() - piece.trim_start().len());
        let end = start + piece.trim().len();
        if start < end {
            self.pieces.push(start..end);
        }
    }

    /// Returns the gap before the word that starts at `start`.
    fn gap(&self, start: usize) -> Break {
        let gap = &self.text[self.end.min(start)..start];
        let lines = gap.bytes().filter(|&byte| byte == b'\n').count();
        let last = self.text[..self.end].chars().next_back();
        match (lines, last) {
            (2.., _) => Break::Paragraph,
            (1, _) => Break::Line,
            (0, Some('。' | '！' | '？')) => Break::Sentence,
            (0, Some('.' | '!' | '?')) if !gap.is_empty() => Break::Sentence,
            _ => Break::Word,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns how many tokens the tests count for a word: three if it has an `x`, else one.
    fn tokens(word: &str) -> usize {
        if word.contains('x') { 3 } else { 1 }
    }

    /// Splits `text`, treating every run of non-blanks as a word.
    fn split(text: &str, limit: usize, overlap: usize) -> Vec<&str> {
        let mut splitter = Splitter::new(text, limit, overlap);
        for word in text.split_whitespace() {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            splitter.push(start..start + word.len(), tokens(word));
        }
        splitter.finish().into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn cuts_prefer_paragraphs_then_lines_then_sentences() {
        assert_eq!(split("a b. c d\ne f\n\ng h i", 7, 0), ["a b. c d\ne f", "g h i"]);
        assert_eq!(split("a b. c d\ne f g h", 7, 0), ["a b. c d", "e f g h"]);
        assert_eq!(split("a b c d. e f g h", 7, 0), ["a b c d.", "e f g h"]);
        assert_eq!(split("a b c d e f g h", 7, 0), ["a b c d e f g", "h"]);
        assert_eq!(split("  a\n", 7, 0), ["a"]);
        assert_eq!(split(" \n ", 7, 0), Vec::<&str>::new());
    }

    #[test]
    fn an_overlap_repeats_the_end_of_the_piece_before() {
        assert_eq!(split("a b c d e f g h i j", 8, 2), ["a b c d e f g h", "g h i j"]);
    }

    proptest! {
        /// The pieces hold every word, in order. No piece exceeds the limit, and each has a word that no earlier
        /// piece has.
        #[test]
        fn pieces_cover_the_text_within_the_limit(text in "([a-dx]{1,3}[ .\n]{1,2}){0,80}", limit in 3usize..20, overlap in 0usize..20) {
            let pieces = split(&text, limit, overlap);
            for piece in &pieces {
                prop_assert!(piece.split_whitespace().map(tokens).sum::<usize>() <= limit);
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut covered = 0;
            for piece in &pieces {
                let start = (piece.as_ptr() as usize - text.as_ptr() as usize, piece.len());
                let first = text[..start.0].split_whitespace().count();
                let last = text[..start.0 + start.1].split_whitespace().count();
                prop_assert!(first <= covered && last > covered, "{first}..{last} after {covered}");
                covered = last;
            }
            prop_assert_eq!(covered, words.len());
            if overlap == 0 {
                prop_assert_eq!(pieces.iter().flat_map(|piece| piece.split_whitespace()).collect::<Vec<_>>(), words);
            }
        }
    }
}
