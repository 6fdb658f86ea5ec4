//! The tokens of `o200k_base`, and the merging of a piece's bytes into them.
//!
//! Bytes are merged by byte-pair encoding, as in tiktoken. The pair of neighbours that forms the token of the lowest
//! rank is merged first. If several pairs form this token, the leftmost pair is merged first. Merging is repeated until
//! no pair forms a token. The time is quadratic in the length of a piece, or n log n with a heap. So a long piece is
//! encoded in overlapping windows. The result is exact because of a theorem that the crate `bpe` uses as well: a
//! sequence of tokens is the encoding of its text if and only if every two neighbouring tokens are the encoding of
//! their joined text. Suppose that a window begins with a token that the previous window has at the same place. Then
//! the pair of tokens across this border occurs in the previous window too, so the two encodings can be joined at the
//! border.
//!
//! The table contains only the tokens. The table takes 6 MB of memory and is made in a few milliseconds. The automata
//! of `bpe-openai` take 70 MB and forty milliseconds. The tests compare the results with those of `bpe-openai`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::split::Splitter;

/// The number of bits of a slot that hold the rank of a token. The stored rank is increased by one, so 0 means empty.
/// The other bits hold a part of the token's hash. This part of the hash is compared first, which rejects most bytes
/// that are not the slot's token.
const RANK_BITS: u32 = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// Used as the rank of bytes that are no token.
const NONE: u32 = u32::MAX;

/// The longest piece that is merged without a heap, in bytes. Arbitrary: longer pieces are faster with a heap.
const SHORT: usize = 96;

/// The length of a window of a long piece, and how much of it the next window repeats, both in bytes.
const WINDOW: usize = 4096;
const OVERLAP: usize = 512;

/// The tokens and their ranks. A token is found by its bytes.
pub(super) struct Dictionary {
    /// Cuts a text into pieces before merging.
    pub(super) splitter: Splitter,
    /// All tokens one after another: for each, a byte with its length, then its bytes.
    tokens: &'static [u8],
    /// For each rank, the place in `tokens` where the bytes of its token begin.
    starts: Vec<u32>,
    /// Slots with ranks, found by the hash of a token; 0 means empty.
    slots: Vec<u32>,
    /// The rank of each pair of bytes that is a token.
    pairs: Vec<u32>,
}

impl Dictionary {
    /// Makes the table.
    pub(super) fn new() -> Dictionary {
        let tokens: &'static [u8] = include_bytes!("../../assets/tokens/o200k.tokens");
        let mut starts = Vec::with_capacity(200_000);
        let mut place = 0;
        while place < tokens.len() {
            starts.push(place as u32 + 1);
            place += 1 + usize::from(tokens[place]);
        }
        let slots = vec![0; (2 * starts.len()).next_power_of_two()];
        let mut dictionary =
            Dictionary { splitter: Splitter::new(), tokens, starts, slots, pairs: vec![NONE; 1 << 16] };
        for rank in 0..dictionary.starts.len() as u32 {
            dictionary.insert(rank);
        }
        dictionary
    }

    /// Returns how many tokens result when the bytes of `piece` are merged.
    pub(super) fn count(&self, piece: &[u8]) -> usize {
        if piece.is_empty() {
            return 0;
        }
        if self.rank(piece) != NONE { 1 } else { self.merge(piece).len() }
    }

    /// Returns the end of each token of `piece`.
    pub(super) fn ends(&self, piece: &[u8]) -> Vec<usize> {
        if !piece.is_empty() && self.rank(piece) != NONE { vec![piece.len()] } else { self.merge(piece) }
    }

    /// Returns the number of tokens in the dictionary.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the bytes of the token with this rank.
    pub(super) fn token(&self, rank: u32) -> &'static [u8] {
        let start = self.starts[rank as usize] as usize;
        &self.tokens[start..start + usize::from(self.tokens[start - 1])]
    }

    fn insert(&mut self, rank: u32) {
        let bytes = self.token(rank);
        if let [first, second] = *bytes {
            self.pairs[usize::from(first) << 8 | usize::from(second)] = rank;
        }
        let (mut slot, tag) = self.slot(bytes);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = tag | (rank + 1);
    }

    /// Returns the rank of `bytes`, or [`NONE`] if they are not a token.
    fn rank(&self, bytes: &[u8]) -> u32 {
        if let [first, second] = *bytes {
            return self.pairs[usize::from(first) << 8 | usize::from(second)];
        }
        let (mut slot, tag) = self.slot(bytes);
        loop {
            let entry = self.slots[slot];
            if entry == 0 {
                return NONE;
            }
            let rank = (entry & RANK_MASK).wrapping_sub(1);
            if entry & !RANK_MASK == tag && self.token(rank) == bytes {
                return rank;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Returns the slot in which to look for `bytes` first, and the part of their hash that a slot holds.
    fn slot(&self, bytes: &[u8]) -> (usize, u32) {
        // This number is 2^64 divided by the golden ratio.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(26);
        let (words, rest) = bytes.as_chunks::<8>();
        let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let hash = mix(hash, last).wrapping_mul(MULTIPLIER);
        ((hash >> 40) as usize & (self.slots.len() - 1), (hash as u32) & !RANK_MASK)
    }

    /// Returns the end of each token of a piece that is not itself a token.
    fn merge(&self, piece: &[u8]) -> Vec<usize> {
        match piece.len() {
            len if len <= SHORT => self.merge_short(piece),
            len if len <= WINDOW => self.merge_long(piece),
            _ => self.merge_in_windows(piece),
        }
    }

    /// Merges the bytes of a piece and looks at all pairs of neighbours before each merge.
    fn merge_short(&self, piece: &[u8]) -> Vec<usize> {
        // For each token: its beginning, and the rank of the token that it would form with the next one. The last entry
        // is the end of the piece.
        let mut parts: Vec<(usize, u32)> = (0..=piece.len()).map(|start| (start, NONE)).collect();
        let rank = |parts: &[(usize, u32)], place: usize| match parts.get(place + 2) {
            Some((end, _)) => self.rank(&piece[parts[place].0..*end]),
            None => NONE,
        };
        for place in 0..piece.len() {
            parts[place].1 = rank(&parts, place);
        }
        loop {
            let lowest = parts.iter().enumerate().min_by_key(|(_, (_, rank))| *rank);
            let Some((place, (_, rank_of_pair))) = lowest else { break };
            if *rank_of_pair == NONE {
                break;
            }
            parts.remove(place + 1);
            parts[place].1 = rank(&parts, place);
            if place > 0 {
                parts[place - 1].1 = rank(&parts, place - 1);
            }
        }
        parts[1..].iter().map(|(start, _)| *start).collect()
    }

    /// Merges the bytes of a piece and keeps the pairs of neighbours in a heap.
    fn merge_long(&self, piece: &[u8]) -> Vec<usize> {
        let len = piece.len();
        // The first list has, for each place, the end of the token that begins there. The second has the beginning of
        // the token that ends there.
        let mut end_of: Vec<usize> = (1..=len).collect();
        let mut start_of: Vec<usize> = (0..=len).map(|end| end.saturating_sub(1)).collect();
        let mut is_start = vec![true; len];
        let mut heap = BinaryHeap::with_capacity(len);
        let push = |heap: &mut BinaryHeap<_>, start: usize, end: usize| {
            let rank = self.rank(&piece[start..end]);
            if rank != NONE {
                heap.push(Reverse((rank, start, end)));
            }
        };
        for start in 0..len - 1 {
            push(&mut heap, start, start + 2);
        }
        while let Some(Reverse((_, start, end))) = heap.pop() {
            // This skips a pair if one of its tokens was merged with another token since the pair was added to
            // the heap.
            if !is_start[start] || end_of[start] == end {
                continue;
            }
            let middle = end_of[start];
            if middle >= len || end_of[middle] != end {
                continue;
            }
            is_start[middle] = false;
            end_of[start] = end;
            start_of[end] = start;
            if end < len {
                push(&mut heap, start, end_of[end]);
            }
            if start > 0 {
                push(&mut heap, start_of[start], end);
            }
        }
        let mut ends = Vec::new();
        let mut place = 0;
        while place < len {
            place = end_of[place];
            ends.push(place);
        }
        ends
    }

    fn merge_in_windows(&self, piece: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut size = WINDOW;
        let mut start = 0;
        // The text and the result of the previous window. In a run of a single character, all windows are equal.
        let mut last: (&[u8], Vec<usize>) = (&[], Vec::new());
        let mut window = |start: usize, size: usize| -> Vec<usize> {
            let text = &piece[start..piece.len().min(start + size)];
            if last.0 != text {
                last = (text, self.merge_long(text));
            }
            last.1.iter().map(|end| start + end).collect()
        };
        let mut tokens = window(start, size);
        while tokens.last().is_some_and(|end| *end < piece.len()) {
            // This finds the last boundary before the overlap; the next window begins there.
            let cut = tokens.partition_point(|end| *end <= start + size - OVERLAP).max(1);
            let next = window(tokens[cut - 1], size);
            if tokens.len() > cut && next.first() == tokens.get(cut) {
                start = tokens[cut - 1];
                ends.extend_from_slice(&tokens[..cut]);
                tokens = next;
                size = WINDOW;
            } else {
                size *= 2;
                tokens = window(start, size);
            }
        }
        ends.extend(tokens);
        ends
    }
}
