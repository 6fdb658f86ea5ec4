//! The uncased BERT tokenizer. The tokenizer turns text into token ids, and reports the byte ranges of words.
//!
//! Unlike the `tokenizers` crate, this tokenizer needs little heap, loads in a millisecond, and takes linear time on
//! any input. The tokenizer reports each word and its byte range while it reads, so even ten megabytes are split in
//! constant memory. For every code point, both alone and inside a word, this tokenizer gives the same ids as the
//! reference. A test checks this.
//!
//! This module is not a general tokenizer: it can't train or decode, takes no pairs of texts, and supports no other
//! model. One difference from the reference is known: the few spacing combining marks that are kept are not put in
//! canonical order.

use std::ops::{ControlFlow, Range};

use unicode_categories::UnicodeCategories;
use unicode_normalization::char::decompose_canonical;

use super::{Tokenize, Word};
use tiro_base::error::{Context, Error, Kind, Result};

/// The maximum number of characters that a word may have; a longer word becomes one unknown token.
const LONGEST_WORD: usize = 100;
/// Special tokens. Special tokens are recognised before the text is divided into words.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// The vocabulary with an index of its pieces.
pub struct WordPiece {
    /// All pieces, concatenated. Pieces that continue a word are stored without their `##`.
    text: String,
    pieces: Vec<Piece>,
    /// A hash table with linear probing. A slot holds the number of a piece plus one, or zero if it is free.
    slots: Vec<u32>,
    /// The length of the longest piece in bytes.
    longest: usize,
    unknown: u32,
    start: u32,
    end: u32,
}

struct Piece {
    start: u32,
    length: u16,
    place: PiecePosition,
}

/// Where in a word a piece may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PiecePosition {
    First,
    Later,
}

impl WordPiece {
    /// Reads a vocabulary that has one token per line. The number of the line, counted from 0, is the id of the
    /// token.
    pub fn new(vocabulary: &[u8]) -> Result<WordPiece> {
        let vocabulary = std::str::from_utf8(vocabulary)
            .context(Kind::Model, || "the vocabulary of the embedding model is not text".into())?;
        let count = vocabulary.lines().count();
        let mut wordpiece = WordPiece {
            text: String::with_capacity(vocabulary.len()),
            pieces: Vec::with_capacity(count),
            slots: vec![0; (count * 2).next_power_of_two().max(2)],
            longest: 0,
            unknown: 0,
            start: 0,
            end: 0,
        };
        for token in vocabulary.lines() {
            wordpiece.add(token)?;
        }
        let special = |token: &str| {
            wordpiece
                .find(PiecePosition::First.hash_of(token), token.as_bytes(), PiecePosition::First)
                .ok_or_else(|| {
                    Error::new(Kind::Model, format!("the vocabulary of the embedding model has no `{token}`"))
                })
        };
        let (unknown, start, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        for token in SPECIAL {
            special(token)?;
        }
        Ok(WordPiece { unknown, start, end, ..wordpiece })
    }

    fn add(&mut self, token: &str) -> Result<()> {
        let (place, piece) = match token.strip_prefix("##") {
            Some(piece) if !piece.is_empty() => (PiecePosition::Later, piece),
            _ => (PiecePosition::First, token),
        };
        let (Ok(length), Ok(start)) = (u16::try_from(piece.len()), u32::try_from(self.text.len())) else {
            return Err(Error::new(Kind::Model, "the vocabulary of the embedding model is too large"));
        };
        self.text.push_str(piece);
        self.pieces.push(Piece { start, length, place });
        self.longest = self.longest.max(piece.len());
        let mut slot = self.slot(place.hash_of(piece));
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = self.pieces.len() as u32;
        Ok(())
    }

    /// Divides a normalised word into pieces, and appends their ids to `ids`. At each place, the longest matching piece
    /// is taken. If no pieces make up the word, appends the unknown token.
    fn split(&self, word: &str, ids: &mut Vec<u32>) {
        let (first, bytes) = (ids.len(), word.as_bytes());
        let mut at = 0;
        while at < bytes.len() {
            let place = if at == 0 { PiecePosition::First } else { PiecePosition::Later };
            let (mut hash, mut found) = (place.seed(), None);
            for end in at + 1..=bytes.len().min(at + self.longest) {
                hash = step(hash, bytes[end - 1]);
                if word.is_char_boundary(end)
                    && let Some(id) = self.find(hash, &bytes[at..end], place)
                {
                    found = Some((id, end));
                }
            }
            let Some((id, end)) = found else {
                ids.truncate(first);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            at = end;
        }
    }

    fn find(&self, hash: u64, piece: &[u8], place: PiecePosition) -> Option<u32> {
        let mut slot = self.slot(hash);
        loop {
            let id = self.slots[slot].checked_sub(1)?;
            let candidate = &self.pieces[id as usize];
            if candidate.place == place && usize::from(candidate.length) == piece.len() {
                let start = candidate.start as usize;
                if &self.text.as_bytes()[start..start + piece.len()] == piece {
                    return Some(id);
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn slot(&self, hash: u64) -> usize {
        (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (self.slots.len() - 1)
    }
}

impl Tokenize for WordPiece {
    fn ends(&self) -> (u32, u32) {
        (self.start, self.end)
    }

    fn words(&self, text: &str, on_word: impl FnMut(Word<'_>) -> ControlFlow<()>) {
        let mut reader = WordCollector {
            wordpiece: self,
            on_word,
            word: String::new(),
            characters: 0,
            range: 0..0,
            ids: vec![],
        };
        // If `on_word` returns `Break` before the end of the text, nothing is left to do.
        let _ = reader.read(text);
    }
}

impl PiecePosition {
    fn seed(self) -> u64 {
        match self {
            PiecePosition::First => 0xcbf2_9ce4_8422_2325,
            PiecePosition::Later => 0x8422_2325_cbf2_9ce4,
        }
    }

    fn hash_of(self, piece: &str) -> u64 {
        piece.bytes().fold(self.seed(), step)
    }
}

/// Returns the FNV-1a hash of a text followed by `byte`, where `hash` is the hash of the text. So one pass over a word
/// gives the hashes of all its prefixes.
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Collects normalised characters into words.
struct WordCollector<'a, F> {
    wordpiece: &'a WordPiece,
    on_word: F,
    /// The normalised word so far, up to [`LONGEST_WORD`] characters.
    word: String,
    /// How many characters the word has, including those beyond the limit.
    characters: usize,
    /// The range of the word in the text, in bytes.
    range: Range<usize>,
    ids: Vec<u32>,
}

impl<F: FnMut(Word<'_>) -> ControlFlow<()>> WordCollector<'_, F> {
    fn read(&mut self, text: &str) -> ControlFlow<()> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let width = match byte {
                b'[' => self.bracket(text, at)?,
                b'\t' | b'\n' | b'\r' | b' ' => self.finish().map_continue(|()| 1)?,
                0..0x20 | 0x7f => 1,
                b'a'..=b'z' | b'0'..=b'9' => self.push(byte as char, at..at + 1),
                b'A'..=b'Z' => self.push(byte.to_ascii_lowercase() as char, at..at + 1),
                0x21..0x7f => self.alone(byte as char, at..at + 1).map_continue(|()| 1)?,
                0x80.. => {
                    let c = text[at..].chars().next().expect("a character starts at every byte reached");
                    self.wide(c, at..at + c.len_utf8())?
                }
            };
            at += width;
        }
        self.finish()
    }

    /// Reads a special token, which begins with `[`. If there is none, reads the `[` as punctuation.
    fn bracket(&mut self, text: &str, at: usize) -> ControlFlow<(), usize> {
        let token = SPECIAL.into_iter().find(|token| text[at..].starts_with(token)).unwrap_or("[");
        self.finish()?;
        self.range = at..at + token.len();
        self.word.push_str(token);
        self.characters = 1;
        let place = PiecePosition::First;
        let id = self.wordpiece.find(place.hash_of(token), token.as_bytes(), place);
        self.emit(id)?;
        ControlFlow::Continue(token.len())
    }

    /// Reads a character outside ASCII: drops it, treats it as a blank, or decomposes it and drops its accents.
    fn wide(&mut self, c: char, range: Range<usize>) -> ControlFlow<(), usize> {
        let width = range.len();
        if c == char::REPLACEMENT_CHARACTER || c.is_other() {
            return ControlFlow::Continue(width);
        }
        if c.is_whitespace() {
            return self.finish().map_continue(|()| width);
        }
        let ideograph = is_ideograph(c);
        if ideograph {
            self.finish()?;
        }
        let mut flow = ControlFlow::Continue(());
        decompose_canonical(c, |part| {
            if part.is_mark_nonspacing() {
                return;
            }
            for lower in part.to_lowercase() {
                if flow.is_break() {
                    return;
                }
                if lower.is_ascii_punctuation() || lower.is_punctuation() {
                    flow = self.alone(lower, range.clone());
                } else {
                    self.push(lower, range.clone());
                }
            }
        });
        flow?;
        if ideograph {
            self.finish()?;
        }
        ControlFlow::Continue(width)
    }

    fn push(&mut self, c: char, range: Range<usize>) -> usize {
        if self.characters == 0 {
            self.range.start = range.start;
        }
        self.characters += 1;
        self.range.end = range.end;
        if self.characters <= LONGEST_WORD {
            self.word.push(c);
        }
        range.len()
    }

    /// Reads a character that is a word by itself.
    fn alone(&mut self, c: char, range: Range<usize>) -> ControlFlow<()> {
        self.finish()?;
        self.push(c, range);
        self.finish()
    }

    /// Ends the current word, if there is one.
    fn finish(&mut self) -> ControlFlow<()> {
        match self.characters {
            0 => ControlFlow::Continue(()),
            1..=LONGEST_WORD => {
                self.wordpiece.split(&self.word, &mut self.ids);
                self.emit(None)
            }
            _ => self.emit(Some(self.wordpiece.unknown)),
        }
    }

    fn emit(&mut self, id: Option<u32>) -> ControlFlow<()> {
        self.ids.extend(id);
        let flow = (self.on_word)(Word { range: self.range.clone(), ids: &self.ids });
        self.word.clear();
        self.ids.clear();
        self.characters = 0;
        flow
    }
}

/// Returns whether a character is a CJK ideograph. BERT treats each ideograph as a separate word; kana and hangul
/// are no ideographs.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&str, Vec<u32>)> {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##believ\n##able\ncafe\n!\n日\n[\nb\n]";
        let wordpiece = WordPiece::new(vocabulary.as_bytes()).unwrap();
        let mut words = vec![];
        wordpiece.words(text, |word| {
            words.push((&text[word.range], word.ids.to_vec()));
            ControlFlow::Continue(())
        });
        words
    }

    #[test]
    fn words_are_pieced_together_from_the_longest() {
        assert_eq!(words("Unbelievable!"), [("Unbelievable", vec![5, 6, 7]), ("!", vec![9])]);
        assert_eq!(words("unbelief"), [("unbelief", vec![1])]);
        assert_eq!(words(&"b".repeat(101)), [("b".repeat(101).as_str(), vec![1])]);
    }

    #[test]
    fn accents_control_characters_and_blanks_leave_no_tokens() {
        assert_eq!(words("CAFÉ\u{7}"), [("CAFÉ", vec![8])]);
        assert_eq!(words("cafe\u{301}日"), [("cafe", vec![8]), ("日", vec![10])]);
        assert_eq!(words("un\u{200d}un\u{3000}b"), [("un\u{200d}un", vec![1]), ("b", vec![12])]);
        assert_eq!(words(" \t\r\n\0\u{fffd}\u{301}"), []);
    }

    #[test]
    fn special_tokens_stand_for_themselves_only_when_written_exactly() {
        assert_eq!(words("b[SEP]b"), [("b", vec![12]), ("[SEP]", vec![3]), ("b", vec![12])]);
        assert_eq!(words("[b]"), [("[", vec![11]), ("b", vec![12]), ("]", vec![13])]);
    }

    #[test]
    fn a_limit_counts_the_start_and_end() {
        let wordpiece = WordPiece::new(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na").unwrap();
        assert_eq!(wordpiece.encode("a a a a", 4), [2, 5, 5, 3]);
        assert_eq!(wordpiece.encode("a a", 4), [2, 5, 5, 3]);
        assert_eq!(wordpiece.encode("", 4), [2, 3]);
        assert_eq!(wordpiece.count("a a a a"), 6);
    }
}
