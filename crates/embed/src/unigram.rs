//! The tokenizer of XLM-RoBERTa. The tokenizer turns text into token ids by a unigram language model, like
//! SentencePiece (Kudo, "Subword Regularization", 2018).
//!
//! Each word is divided into the pieces whose scores have the largest sum, by Viterbi's algorithm. A piece never
//! extends across a blank, so each word is divided separately, in time linear in its length. Before that, each
//! character is normalised by itself, with a table in the vocabulary. A test compares the ids with the ids of the
//! reference.
//!
//! This module is not a general tokenizer: it can't train, sample or decode.

use std::ops::{ControlFlow, Range};

use super::{Tokenize, Word};
use tiro_base::error::{Error, Kind, Result};

/// The character that stands for the blank before a word.
const BLANK: char = '\u{2581}';

/// A word with more characters than this is first divided into parts of this length. Arbitrary: only encoded data and
/// texts without blanks have such long words.
const LONGEST_WORD: usize = 1024;

/// The score of an unknown character is lower than the lowest score of a piece by this number.
const UNKNOWN: f64 = 10.0;

/// The vocabulary with an index of its pieces.
pub struct Unigram {
    /// All pieces, concatenated. `starts` says where each piece begins; its last number is the length of this text.
    text: Vec<u8>,
    starts: Vec<u32>,
    scores: Vec<f32>,
    /// A hash table with linear probing. A slot holds the number of a piece plus one, or zero if it is free.
    slots: Vec<u32>,
    /// The length of the longest piece in bytes.
    longest: usize,
    unknown: u32,
    unknown_score: f64,
    start: u32,
    end: u32,
    /// The replacements of characters, ordered by character.
    replacements: Vec<(char, Box<[char]>)>,
}

/// A character of a word after normalisation, and the range of the text that it represents.
struct Letter {
    character: char,
    range: Range<usize>,
}

impl Unigram {
    /// Reads the vocabulary of a published file: the number of pieces, the ids of the special tokens, the pieces and
    /// their scores, and the replacements of characters.
    pub fn new(vocabulary: &[u8]) -> Result<Unigram> {
        read(vocabulary).ok_or_else(|| {
            Error::new(Kind::Model, "the vocabulary of the embedding model has another format")
        })
    }

    /// Returns the characters that replace a character in the normalisation.
    fn replaced<'c>(&'c self, character: &'c char) -> &'c [char] {
        match self.replacements.binary_search_by_key(character, |(replaced, _)| *replaced) {
            Ok(place) => &self.replacements[place].1,
            Err(_) => std::slice::from_ref(character),
        }
    }

    /// Divides a word into the pieces with the largest sum of scores, and appends their ids and ranges.
    fn split(&self, word: &[Letter], ids: &mut Vec<(u32, Range<usize>)>) {
        let mut text = String::with_capacity(3 * word.len());
        let mut ends = Vec::with_capacity(word.len() + 1);
        ends.push(0);
        for letter in word {
            text.push(letter.character);
            ends.push(text.len());
        }
        // For each possible end of a piece: the best score up to this end, the piece, and the place where the piece
        // begins.
        let mut best: Vec<(f64, u32, usize)> = vec![(f64::NEG_INFINITY, self.unknown, 0); word.len() + 1];
        best[0].0 = 0.0;
        for from in 0..word.len() {
            let score = best[from].0;
            let mut hash = SEED;
            for to in from + 1..=word.len() {
                if ends[to] - ends[from] > self.longest {
                    break;
                }
                hash =
                    text.as_bytes()[ends[to - 1]..ends[to]].iter().fold(hash, |hash, byte| step(hash, *byte));
                let Some(piece) = self.find(hash, &text.as_bytes()[ends[from]..ends[to]]) else { continue };
                let sum = score + f64::from(self.scores[piece as usize]);
                if piece != self.unknown && sum > best[to].0 {
                    best[to] = (sum, piece, from);
                }
            }
            let sum = score + self.unknown_score;
            if sum > best[from + 1].0 {
                best[from + 1] = (sum, self.unknown, from);
            }
        }
        let first = ids.len();
        let mut to = word.len();
        while to > 0 {
            let (_, piece, from) = best[to];
            ids.push((piece, word[from].range.start..word[to - 1].range.end));
            to = from;
        }
        ids[first..].reverse();
    }

    fn find(&self, hash: u64, piece: &[u8]) -> Option<u32> {
        let mut slot = slot(hash, self.slots.len());
        loop {
            let id = self.slots[slot].checked_sub(1)?;
            if self.piece(id) == piece {
                return Some(id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    fn piece(&self, id: u32) -> &[u8] {
        &self.text[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize]
    }
}

impl Tokenize for Unigram {
    fn ends(&self) -> (u32, u32) {
        (self.start, self.end)
    }

    /// In scripts without blanks, and in very long words, each token counts as a word.
    fn words(&self, text: &str, mut on_word: impl FnMut(Word<'_>) -> ControlFlow<()>) {
        let mut word: Vec<Letter> = Vec::new();
        let mut ids: Vec<(u32, Range<usize>)> = Vec::new();
        let mut finish = |word: &mut Vec<Letter>| {
            if word.is_empty() {
                return ControlFlow::Continue(());
            }
            ids.clear();
            self.split(word, &mut ids);
            let is_long = word.iter().any(|letter| tiro_text::words::is_cjk(letter.character))
                || word.len() >= LONGEST_WORD;
            word.clear();
            if is_long {
                return ids
                    .iter()
                    .try_for_each(|(id, range)| on_word(Word { range: range.clone(), ids: &[*id] }));
            }
            let whole =
                ids.first().map_or(0, |(_, first)| first.start)..ids.last().map_or(0, |(_, last)| last.end);
            let ids: Vec<u32> = ids.iter().map(|(id, _)| *id).collect();
            on_word(Word { range: whole, ids: &ids })
        };
        let (mut has_begun, mut is_after_blank) = (false, false);
        for (at, c) in text.char_indices() {
            let range = at..at + c.len_utf8();
            for &character in self.replaced(&c) {
                let is_blank = character == ' ';
                if is_blank && is_after_blank {
                    continue;
                }
                is_after_blank = is_blank;
                let is_first = !std::mem::replace(&mut has_begun, true);
                if is_blank || word.len() >= LONGEST_WORD {
                    if finish(&mut word).is_break() {
                        return;
                    }
                } else if is_first {
                    word.push(Letter { character: BLANK, range: 0..0 });
                }
                let character = if is_blank { BLANK } else { character };
                word.push(Letter { character, range: range.clone() });
            }
        }
        if !has_begun {
            word.push(Letter { character: BLANK, range: 0..0 });
        }
        // If `on_word` returns `Break` at the last word, nothing is left to do.
        let _ = finish(&mut word);
    }
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// One step of FNV-1a.
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

fn slot(hash: u64, slots: usize) -> usize {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (slots - 1)
}

/// Reads the vocabulary. Returns `None` if the vocabulary has another format.
fn read(vocabulary: &[u8]) -> Option<Unigram> {
    let mut rest = vocabulary;
    let take = |rest: &mut &[u8], length: usize| {
        let (taken, left) = rest.split_at_checked(length)?;
        let taken = taken.to_vec();
        *rest = left;
        Some(taken)
    };
    let number = |rest: &mut &[u8]| {
        let (bytes, left) = rest.split_first_chunk::<4>()?;
        *rest = left;
        Some(u32::from_le_bytes(*bytes))
    };
    let pieces = number(&mut rest)?;
    let (start, end, _, unknown) =
        (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
    let length = number(&mut rest)? as usize;
    number(&mut rest).filter(|high| *high == 0)?;
    let starts: Vec<u32> = (0..=pieces).map(|_| number(&mut rest)).collect::<Option<_>>()?;
    let scores: Vec<f32> =
        (0..pieces).map(|_| number(&mut rest).map(f32::from_bits)).collect::<Option<_>>()?;
    let text = take(&mut rest, length)?;
    let is_sound = starts.is_sorted() && starts.last().is_some_and(|last| *last as usize == length);
    if !is_sound || [start, end, unknown].iter().any(|id| *id >= pieces) {
        return None;
    }
    let count = number(&mut rest)?;
    number(&mut rest)?;
    let mut replacements = Vec::new();
    for _ in 0..count {
        let replaced = char::from_u32(number(&mut rest)?)?;
        let by = take(&mut rest, 1)?[0];
        let by = (0..by).map(|_| number(&mut rest).and_then(char::from_u32)).collect::<Option<_>>()?;
        replacements.push((replaced, by));
    }
    if !rest.is_empty() || !replacements.is_sorted_by_key(|(replaced, _)| *replaced) {
        return None;
    }
    let mut unigram = Unigram {
        longest: starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max()?,
        unknown_score: f64::from(scores.iter().copied().fold(f32::INFINITY, f32::min)) - UNKNOWN,
        slots: vec![0; (2 * pieces as usize).next_power_of_two().max(2)],
        text,
        starts,
        scores,
        unknown,
        start,
        end,
        replacements,
    };
    for id in 0..pieces {
        let hash = unigram.piece(id).iter().fold(SEED, |hash, byte| step(hash, *byte));
        let mut slot = slot(hash, unigram.slots.len());
        while unigram.slots[slot] != 0 {
            slot = (slot + 1) & (unigram.slots.len() - 1);
        }
        unigram.slots[slot] = id + 1;
    }
    Some(unigram)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a vocabulary of `pieces` with scores, in which `Ａ` is replaced by `a` and a tab by a blank.
    fn unigram(pieces: &[(&str, f32)]) -> Unigram {
        let special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)];
        let pieces: Vec<(&str, f32)> = special.iter().chain(pieces).copied().collect();
        let text: String = pieces.iter().map(|(piece, _)| *piece).collect();
        let mut bytes = Vec::new();
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        [pieces.len() as u32, 0, 2, 1, 3, text.len() as u32, 0].into_iter().for_each(&mut put);
        let mut start = 0;
        for (piece, _) in &pieces {
            put(start);
            start += piece.len() as u32;
        }
        put(start);
        pieces.iter().for_each(|(_, score)| put(score.to_bits()));
        bytes.extend(text.as_bytes());
        let replacements = [('\t', ' '), ('Ａ', 'a')];
        bytes.extend((replacements.len() as u32).to_le_bytes());
        bytes.extend(18u32.to_le_bytes());
        for (replaced, by) in replacements {
            bytes.extend(u32::from(replaced).to_le_bytes());
            bytes.push(1);
            bytes.extend(u32::from(by).to_le_bytes());
        }
        Unigram::new(&bytes).unwrap()
    }

    fn words<'t>(unigram: &Unigram, text: &'t str) -> Vec<(&'t str, Vec<u32>)> {
        let mut words = vec![];
        unigram.words(text, |word| {
            words.push((&text[word.range], word.ids.to_vec()));
            ControlFlow::Continue(())
        });
        words
    }

    #[test]
    fn a_word_has_the_pieces_with_the_best_sum_of_scores() {
        let unigram =
            unigram(&[("▁", -3.0), ("▁a", -1.0), ("ab", -1.5), ("b", -2.0), ("▁ab", -4.0), ("日", -1.0)]);
        assert_eq!(words(&unigram, "ab b"), [("ab", vec![5, 7]), (" b", vec![4, 7])]);
        assert_eq!(words(&unigram, "Ａb\t\tb"), [("Ａb", vec![5, 7]), ("\t\tb", vec![4, 7])]);
        assert_eq!(words(&unigram, "a?b"), [("a?b", vec![5, 3, 7])]);
        assert_eq!(words(&unigram, "a日日"), [("a", vec![5]), ("日", vec![9]), ("日", vec![9])]);
        assert_eq!(words(&unigram, ""), [("", vec![4])]);
    }

    #[test]
    fn a_limit_counts_the_start_and_end() {
        let unigram = unigram(&[("▁a", -1.0)]);
        assert_eq!(unigram.encode("a a a a", 4), [0, 4, 4, 2]);
        assert_eq!(unigram.count("a a a a"), 6);
    }

    #[test]
    fn another_format_is_an_error() {
        for bytes in [&b""[..], &[1; 40], &[255; 40]] {
            assert_eq!(Unigram::new(bytes).err().unwrap().kind(), Kind::Model);
        }
    }
}
