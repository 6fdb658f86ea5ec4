//! Counts the tokens of one piece, remembering short pieces: most pieces of a text are words seen a moment ago.
//!
//! Merging the bytes of a piece is three quarters of counting; with the table below a count takes less than half the
//! time. A table is 256 KB for each thread and tokenizer that counts, of fixed size and overwritten at will.
//!
//! Merging is linear, but in a run of dashes it tries every length of dashes at every place, a second for a megabyte. A
//! sequence of tokens is the encoding of a piece if and only if each two neighbours are an encoding (the theorem that
//! `bpe` is built on). So where the same token comes twice in a row, any number more of it may stand there, and a
//! long run costs what a shorter one does plus the tokens left out.

use std::cell::RefCell;

use bpe_openai::byte_pair_encoding::BytePairEncoding;

use super::Tokenizer;

/// The longest piece that is remembered, in bytes: it shares 16 bytes with its length and its count.
const LONGEST: usize = 15;

/// log2 of the number of pieces that are remembered (2^16 gain a fifth on 10 MB of code and prose, 2^12 lose a sixth).
const SLOT_BITS: u32 = 14;

/// The shortest run of one byte that is counted from a shorter run (arbitrary, but well over two of any token).
const LONG_RUN: usize = 2048;

thread_local! {
    static COUNTERS: [RefCell<Option<PieceCounter>>; Tokenizer::ALL.len()] = const { [RefCell::new(None), RefCell::new(None)] };
}

/// Counts pieces with one tokenizer.
pub(super) struct PieceCounter {
    dictionary: &'static bpe_openai::Tokenizer,
    /// Pieces by hash. From the lowest byte on: the piece, zeros, then 4 bits of count and 4 bits of length; 0 is empty.
    slots: Box<[u128]>,
}

impl PieceCounter {
    /// Runs `work` with this thread's counter.
    ///
    /// # Panics
    ///
    /// If `work` does the same for the same tokenizer.
    pub(super) fn with<T>(tokenizer: Tokenizer, work: impl FnOnce(&mut PieceCounter) -> T) -> T {
        COUNTERS.with(|counters| {
            let mut counter = counters[tokenizer as usize].borrow_mut();
            work(counter.get_or_insert_with(|| PieceCounter {
                dictionary: tokenizer.dictionary(),
                slots: vec![0; 1 << SLOT_BITS].into(),
            }))
        })
    }

    /// Returns the number of tokens of `piece`, which the tokenizer must not cut.
    pub(super) fn count(&mut self, piece: &str) -> usize {
        if piece.len() > LONGEST {
            return count_with_runs(&self.dictionary.bpe, piece.as_bytes());
        }
        let mut bytes = [0; 16];
        bytes[..piece.len()].copy_from_slice(piece.as_bytes());
        let key = u128::from_le_bytes(bytes) | (piece.len() as u128) << 124;
        let slot = &mut self.slots[slot_of(key)];
        if *slot & !COUNT != key {
            *slot = key | (self.dictionary.bpe.count(piece.as_bytes()) as u128) << 120;
        }
        ((*slot & COUNT) >> 120) as usize
    }
}

/// Returns the number of tokens of `piece`, having shortened its long runs of one byte.
fn count_with_runs(bpe: &BytePairEncoding, piece: &[u8]) -> usize {
    if piece.len() < LONG_RUN {
        return bpe.count(piece);
    }
    let mut shortened = Vec::new();
    // For each shortened run its place in `shortened` and the bytes of its token.
    let mut runs = Vec::new();
    let mut left_out = 0;
    for run in piece.chunk_by(|left, right| left == right) {
        let mut len = run.len();
        if len >= 2 * LONG_RUN {
            let token_len = bpe.token_len(bpe.encode_via_backtracking(&run[..LONG_RUN])[0]);
            let tokens = (len - LONG_RUN) / token_len;
            len -= tokens * token_len;
            left_out += tokens;
            runs.push((shortened.len()..shortened.len() + len, token_len));
        }
        shortened.extend_from_slice(&run[..len]);
    }

    let tokens = bpe.encode_via_backtracking(&shortened);
    let mut end = 0;
    let ends: Vec<usize> = tokens
        .iter()
        .map(|&token| {
            end += bpe.token_len(token);
            end
        })
        .collect();
    let all_repeat = runs.iter().all(|(place, token_len)| {
        // Two neighbours within the run and of the token's length are that token twice.
        ends.windows(3).any(|at| {
            at[0] >= place.start
                && at[2] <= place.end
                && at[1] - at[0] == *token_len
                && at[2] - at[1] == *token_len
        })
    });
    if all_repeat { tokens.len() + left_out } else { bpe.count(piece) }
}

/// The bits of a slot that hold the count, which is at most [`LONGEST`].
const COUNT: u128 = 15 << 120;

fn slot_of(key: u128) -> usize {
    // Fibonacci hashing of both halves; the multiplier is 2^64 divided by the golden ratio.
    let mixed = (key as u64 ^ ((key >> 64) as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_costs_what_merging_it_costs() {
        for tokenizer in Tokenizer::ALL {
            let bpe = &tokenizer.dictionary().bpe;
            for byte in b"-= */#\ta0\n" {
                for (before, after) in [("", ""), ("+", "\n"), ("-=", "=-")] {
                    for len in [2 * LONG_RUN - 1, 2 * LONG_RUN, 5000, 5001, 7919] {
                        let run = vec![*byte; len];
                        let piece = [before.as_bytes(), &run, b"%%", &run, after.as_bytes()].concat();
                        assert_eq!(
                            count_with_runs(bpe, &piece),
                            bpe.count(&piece),
                            "{byte} {len} {before:?}"
                        );
                    }
                }
            }
        }
    }
}
