//! Returns bounds for the number of tokens of a text. The bounds are computed from the bytes of the text in one pass,
//! without a dictionary.
//!
//! The bounds hold for `o200k_base` and for `cl100k_base`. The bounds follow from the rules by which both tokenizers
//! cut and merge, and from the facts about both dictionaries that are listed below. A test checks these facts against
//! the dictionaries.
//!
//! **From above.** A tokenizer cuts a text into pieces. Within a piece it then merges bytes until no two neighbours
//! together form a token. Every single byte is a token, so a text has at most one token per byte. *Runs* of certain
//! bytes have fewer tokens than bytes:
//!
//! - ASCII letters, with a space before them: in a run, [`is_pair`] allows every pair of neighbouring bytes, and every
//!   such pair is a token. So no two neighbouring tokens in the run are single bytes, and `n` bytes have at most ⌊(2n +
//!   1) / 3⌋ tokens;
//! - spaces, except the last one: up to [`SPACES`] spaces are one token, so two neighbouring tokens together have more
//!   than [`SPACES`] spaces;
//! - digits: a run is cut into groups of three, and any one to three digits are a token.
//!
//! The bytes between runs are called *loose*, and each counts as one token. A token that extends beyond its run, or
//! lies outside of runs, is counted by its first loose byte. Each such token has a loose byte of its own, because no
//! byte is in two tokens and no piece contains two runs that touch. Letters that may start a piece, or that form no
//! token with the letter before them, are loose too: for example an upper-case letter after a lower-case one, and the
//! two letters after an apostrophe (`'re`).
//!
//! **From below.** No token is longer than [`LONGEST_TOKEN`] bytes, and each piece is at least one token. [`Scan`]
//! counts only pieces that both tokenizers cut in the same way.

use super::LONGEST_TOKEN;

/// Every run of up to this many spaces is one token.
pub(super) const SPACES: usize = 79;

/// For each first letter, the set of second letters that form a token with it. Bit 0 of a set is `a` or `A`.
type Pairs = [u32; 26];

#[rustfmt::skip]
const LOWER_LOWER: Pairs = [
    0x3ffffff, 0x3feffff, 0x3ffffff, 0x3ffffff, 0x3ffffff, 0x1fffdff, 0x3fef9ff, 0x3fffdff, 0x3ffffff,
    0x01fffbf, 0x17effff, 0x3feffff, 0x1ffffff, 0x3feffff, 0x3feffff, 0x3ffffff, 0x0dfb99f, 0x3fffdff,
    0x3ffffff, 0x3fefdff, 0x3feffff, 0x1feffff, 0x1deffff, 0x38ef93f, 0x3defddf, 0x3dcfdbf,
];
#[rustfmt::skip]
const UPPER_LOWER: Pairs = [
    0x3feffee, 0x1164951, 0x196499f, 0x01e4113, 0x1bfbc2e, 0x096691d, 0x0164913, 0x310c111, 0x08efc28,
    0x0144011, 0x1022191, 0x1386131, 0x11ec11f, 0x19651db, 0x00ebdaa, 0x19e4dd1, 0x0180100, 0x094c091,
    0x35bfd95, 0x1f6c599, 0x00eb982, 0x1145511, 0x1064191, 0x0000108, 0x0104011, 0x0000090,
];
#[rustfmt::skip]
const UPPER_UPPER: Pairs = [
    0x3ffffff, 0x1feffff, 0x1fefdff, 0x1feffff, 0x2fffdff, 0x1defdff, 0x1fef9ff, 0x3fffdff, 0x2ffffff,
    0x02ed71f, 0x16efdff, 0x13efd7f, 0x1ffffff, 0x3feffff, 0x0fefdff, 0x1feffff, 0x01fb817, 0x1fefdff,
    0x3ffffff, 0x3fefdff, 0x1bebd7f, 0x02efd7f, 0x0cefdff, 0x18e993f, 0x34cf855, 0x3c260b1,
];

/// The fewest and the most tokens that a text can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The text has at least this many tokens.
    pub low: usize,
    /// The text has at most this many tokens.
    pub high: usize,
}

/// Returns bounds that hold for `text` in `o200k_base` and in `cl100k_base`, without loading a dictionary.
///
/// For English prose, `high` is 2 to 3 times the true count. For scripts other than Latin, the factor is larger, but
/// `high` is never more than the number of bytes.
pub fn bounded(text: &str) -> Bounds {
    let scan = Scan::of(text.as_bytes());
    let low = scan.low.max(text.len().div_ceil(LONGEST_TOKEN));
    Bounds { low, high: scan.high }
}

/// Returns whether two neighbouring bytes of a run always lie in the same piece and form a token in both dictionaries.
pub(super) fn is_pair(left: u8, right: u8) -> bool {
    let (pairs, first, second) = match (left, right) {
        (b'a'..=b'z', b'a'..=b'z') => (&LOWER_LOWER, b'a', b'a'),
        (b'A'..=b'Z', b'a'..=b'z') => (&UPPER_LOWER, b'A', b'a'),
        (b'A'..=b'Z', b'A'..=b'Z') => (&UPPER_UPPER, b'A', b'A'),
        (b' ', _) => return right.is_ascii_alphabetic(),
        _ => return false,
    };
    pairs[usize::from(left - first)] >> (right - second) & 1 == 1
}

/// The sum of the lower bounds of all parts of a text, and the sum of their upper bounds. A part is a run of bytes of
/// the same class.
#[derive(Default)]
struct Scan {
    low: usize,
    high: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    /// Line feed, carriage return, tab, vertical tab, form feed.
    Break,
    /// Any other ASCII character: punctuation, and control characters that are not white space.
    Mark,
    /// A byte of a character that is not ASCII.
    Foreign,
}

impl Class {
    /// Returns the class of `byte`. The classes are in a table, because a scan spends most of its time here.
    fn of(byte: u8) -> Class {
        const CLASSES: [Class; 256] = {
            let mut classes = [Class::Foreign; 256];
            let mut byte = 0;
            while byte < 256 {
                classes[byte] = Class::look_up(byte as u8);
                byte += 1;
            }
            classes
        };
        CLASSES[usize::from(byte)]
    }

    const fn look_up(byte: u8) -> Class {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' => Class::Space,
            b'\t'..=b'\r' => Class::Break,
            0x80.. => Class::Foreign,
            _ => Class::Mark,
        }
    }
}

impl Scan {
    fn of(bytes: &[u8]) -> Scan {
        let mut scan = Scan::default();
        let mut start = 0;
        // Whether there are only spaces and tabs between the last letter or digit and `start`.
        let mut after_word = false;
        while start < bytes.len() {
            let class = Class::of(bytes[start]);
            let len = bytes[start..].iter().take_while(|&&byte| Class::of(byte) == class).count();
            let run = &bytes[start..start + len];
            let before = start.checked_sub(1).map(|place| bytes[place]);
            let after = bytes.get(start + len).copied();
            let beside_foreign = before.is_some_and(|byte| !byte.is_ascii());
            match class {
                Class::Letter => {
                    scan.letters(run, before);
                    // A piece has only one run of letters, unless an apostrophe or foreign characters join two runs.
                    scan.low += usize::from(!beside_foreign && before != Some(b'\''));
                }
                Class::Digit if beside_foreign || after.is_some_and(|byte| !byte.is_ascii()) => {
                    // Foreign digits before or after these may shift the groups of three and merge with these
                    // digits.
                    scan.high += len;
                    scan.low += if beside_foreign { 0 } else { len.div_ceil(3) };
                }
                Class::Digit => {
                    scan.high += len.div_ceil(3);
                    scan.low += len.div_ceil(3);
                }
                Class::Space => {
                    let joins_word = after.is_some_and(|byte| Class::of(byte) == Class::Letter);
                    scan.high += at_most_in_spaces(len - 1) + usize::from(!joins_word);
                    // In front of a word, all spaces except the last form a piece of white space.
                    let before_word =
                        after.is_some_and(|byte| byte.is_ascii() && Class::of(byte) != Class::Break);
                    scan.low += usize::from(len > 1 && before_word);
                }
                Class::Break => {
                    scan.high += len;
                    // A line break after a word starts a piece of white space, which ends with the last line break.
                    scan.low +=
                        usize::from(after_word && run.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
                }
                Class::Mark => {
                    scan.high += len;
                    // A single mark may belong to the word after it. Slashes may belong to the
                    // marks at the end of the line before.
                    let stays = len > 1
                        || after.is_none_or(|byte| byte.is_ascii() && Class::of(byte) != Class::Letter);
                    scan.low += usize::from(stays && !beside_foreign && run[0] != b'/');
                }
                Class::Foreign => scan.high += len,
            }
            after_word = match class {
                Class::Letter | Class::Digit => true,
                Class::Space => after_word,
                Class::Break => after_word && run.iter().all(|&byte| byte == b'\t'),
                Class::Mark | Class::Foreign => false,
            };
            start += len;
        }
        scan
    }

    /// Adds the upper bound of a run of letters, including the space before it if there is one.
    fn letters(&mut self, run: &[u8], before: Option<u8>) {
        let loose = if before == Some(b'\'') { run.len().min(2) } else { 0 };
        self.high += loose;
        let mut previous = before.filter(|&byte| byte == b' ');
        let mut unbroken = usize::from(previous.is_some());
        for &letter in &run[loose..] {
            if previous.is_none_or(|previous| is_pair(previous, letter)) {
                unbroken += 1;
                previous = Some(letter);
            } else {
                self.high += at_most_in_pairs(unbroken) + 1;
                unbroken = 0;
                previous = None;
            }
        }
        self.high += at_most_in_pairs(unbroken);
    }
}

/// Returns the maximum number of tokens of `n` bytes if no two neighbouring tokens are single bytes.
fn at_most_in_pairs(n: usize) -> usize {
    (2 * n + 1) / 3
}

/// Returns the maximum number of tokens of `n` spaces if every two neighbouring tokens together have more than
/// [`SPACES`] spaces.
fn at_most_in_spaces(n: usize) -> usize {
    2 * (n / (SPACES + 1)) + usize::from(!n.is_multiple_of(SPACES + 1))
}
