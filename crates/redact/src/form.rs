//! Judges the form of a string. Computes the entropy of a string, and decides whether the string looks random,
//! generated, or like words.
//!
//! Entropy is not enough to distinguish a key from words: the entropies of sixteen letters of English and of sixteen
//! letters of a key differ by half a bit. Pairs of letters are enough. A table has the rare pairs. The rare pairs are
//! 40% of all possible pairs, but only 1.6% of the pairs in Rust sources and their prose. If a part of a string has few
//! rare pairs, it counts as a word. If few letters of a string are in such words, the string looks random.

pub(super) use super::template::{is_stand_in, is_template};

/// Returns the Shannon entropy of `bytes`, in bits per byte.
pub(super) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f32;
    counts.iter().filter(|&&n| n > 0).map(|&n| n as f32 / total).map(|p| -p * p.log2()).sum()
}

/// The numbers of bytes of each kind in a string.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Makeup {
    /// Lower-case letters.
    pub lower: usize,
    /// Capitals.
    pub upper: usize,
    /// Digits.
    pub digits: usize,
    /// Bytes of `!@#$%^&*?~+=|;`, which are rare in names and paths.
    pub symbols: usize,
    /// Bytes of other printable ASCII characters, such as `_-./:` and brackets.
    pub joiners: usize,
    /// Spaces, control characters and bytes outside ASCII.
    pub other: usize,
}

impl Makeup {
    /// Counts the bytes of `text`.
    pub(super) fn of(text: &[u8]) -> Makeup {
        let mut makeup = Makeup::default();
        for byte in text {
            let count = match byte {
                b'a'..=b'z' => &mut makeup.lower,
                b'A'..=b'Z' => &mut makeup.upper,
                b'0'..=b'9' => &mut makeup.digits,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~' | b'+' | b'=' | b'|'
                | b';' => &mut makeup.symbols,
                b'!'..=b'~' => &mut makeup.joiners,
                _ => &mut makeup.other,
            };
            *count += 1;
        }
        makeup
    }

    /// Returns the number of ASCII letters.
    pub(super) fn letters(&self) -> usize {
        self.lower + self.upper
    }
}

/// Returns whether `text` has at least `least` bytes and looks random: it is hexadecimal, or it consists of letters
/// and digits that form few words.
pub(super) fn looks_random(text: &[u8], least: usize) -> bool {
    if text.len() < least {
        return false;
    }
    let makeup = Makeup::of(text);
    if makeup.other > 0 || is_monotonous(text) {
        return false;
    }
    let letters = makeup.letters();
    if makeup.digits >= 2
        && letters >= 2
        && text.len() >= 16
        && text.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-')
    {
        return true;
    }
    let words = words(text);
    if makeup.digits > 0 {
        let plain = letters + makeup.digits;
        // Names of lower-case words joined by `_` or `-` have few digits.
        let name = makeup.joiners > 0 && makeup.upper == 0 && makeup.digits * 6 < plain;
        let most = if makeup.digits * 4 >= plain { 17 } else { 13 };
        !name && letters * 6 >= plain && words.letters * 20 <= letters * most && makeup.joiners * 4 <= plain
    } else {
        letters >= 16
            && words.rare * 9 >= words.pairs
            && words.letters * 10 <= letters * 7
            && makeup.joiners * 8 <= letters
    }
}

/// Returns whether `text` is a token of more than 256 bytes: letters, digits and the signs of base64 and of tokens that
/// look random at the beginning.
pub(super) fn is_long_token(text: &[u8]) -> bool {
    let kind = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-.~".contains(b);
    text.len() > 256
        && text.iter().all(kind)
        && text[..256].iter().any(u8::is_ascii_digit)
        && looks_random(&text[..256], 256)
}

/// Returns whether `text` may be a key, even if it contains words: it has at least forty bytes, letters of both
/// cases, and digits.
pub(super) fn looks_keyed(text: &[u8]) -> bool {
    let makeup = Makeup::of(text);
    text.len() >= 40 && makeup.lower > 0 && makeup.upper > 0 && makeup.digits > 0 && entropy(text) >= 3.8
}

/// Returns whether few letters of `text` are in words. The test is for strings as short as passwords; [`looks_random`]
/// is for longer ones.
pub(super) fn is_jumbled(text: &[u8]) -> bool {
    let words = words(text);
    let letters = Makeup::of(text).letters();
    letters >= 4 && words.rare * 6 >= words.pairs && words.letters * 2 <= letters
}

/// Returns whether `text` has at least `least` bytes and looks like a generated password: its letters form few
/// words, and they are mixed with digits and with characters that are rare in names and paths.
pub(super) fn is_generated(text: &[u8], least: usize) -> bool {
    if text.len() < least || is_monotonous(text) || counts_up(text) {
        return false;
    }
    let makeup = Makeup::of(text);
    let brackets = text.iter().filter(|b| b"()[]{}<>,'\"`\\".contains(b)).count();
    let signs = makeup.symbols + if text.len() < 12 { 0 } else { brackets };
    let kinds = [makeup.lower, makeup.upper, makeup.digits, signs].iter().filter(|n| **n > 0).count();
    let mixed = makeup.lower > 0 && makeup.upper > 0 || makeup.symbols > 0 && makeup.digits > 0;
    let spaced = makeup.other > 0 && (kinds < 4 || text.len() < 16 || makeup.other * 8 > text.len());
    kinds >= 3
        && mixed
        && !spaced
        && (kinds == 4 && changes(text) * 20 >= text.len() * 9
            || makeup.other == 0 && words(text).letters * 2 <= makeup.letters().max(1))
}

/// Returns whether most letters of `text` are in words.
pub(super) fn is_wordy(text: &[u8]) -> bool {
    let letters = Makeup::of(text).letters();
    letters >= 5 && words(text).letters * 2 > letters
}

/// Returns how often the kind of byte changes within `text`. In words it seldom changes, but in generated passwords it
/// changes at about every other byte.
fn changes(text: &[u8]) -> usize {
    let kind = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    text.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count()
}

/// Returns whether `text` has seven bytes in a row that count up, as in an alphabet.
fn counts_up(text: &[u8]) -> bool {
    text.windows(7).any(|run| run.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])))
}

/// Returns whether `text` has few different bytes, like `xxxxxxxx`, `********` and `12121212`.
pub(super) fn is_monotonous(text: &[u8]) -> bool {
    let mut seen = 0u128;
    for byte in text {
        seen |= 1 << (byte & 127);
    }
    let distinct = seen.count_ones() as usize;
    distinct < 4 || distinct < text.len().min(40) / 5
}

/// Counts of the letters of a string that are in words.
struct Words {
    /// How many letters are in words of three letters or more.
    letters: usize,
    /// How many pairs of neighbouring letters there are.
    pairs: usize,
    /// How many pairs of neighbouring letters are rare in words.
    rare: usize,
}

/// Splits `text` at non-letters and at capitals that begin a word, and counts the letters that may be words.
fn words(text: &[u8]) -> Words {
    let mut words = Words { letters: 0, pairs: 0, rare: 0 };
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_alphabetic() {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        while at < text.len() && text[at].is_ascii_alphabetic() {
            let capital = text[at].is_ascii_uppercase();
            let next_is_small = text.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if capital && (text[at - 1].is_ascii_lowercase() || next_is_small) {
                break;
            }
            at += 1;
        }
        let word = &text[start..at];
        let rare = word.windows(2).filter(|pair| is_rare(pair[0], pair[1])).count();
        words.pairs += word.len() - 1;
        words.rare += rare;
        let vowel = word.iter().any(|b| b"aeiouyAEIOUY".contains(b));
        if word.len() >= 3 && rare * 8 <= word.len() && vowel {
            words.letters += word.len();
        }
    }
    words
}

/// Returns whether this pair of letters is rare in words.
fn is_rare(first: u8, second: u8) -> bool {
    let index = |letter: u8| usize::from(letter.to_ascii_lowercase() - b'a');
    RARE_PAIRS[index(first)] >> index(second) & 1 == 1
}

/// For each first letter, the second letters with which it forms a rare pair. A pair is rare if it makes up fewer than
/// 2 of 10,000 pairs in words. Each second letter is a bit; the lowest bit is `a`.
#[rustfmt::skip]
const RARE_PAIRS: [u32; 26] = [
    0x2014290, 0x2e1a4e0, 0x2c10200, 0x2810680, 0x2000200, 0x2e10680, 0x3e1062e, 0x2a186e2, 0x1510380,
    0x3ffbfef, 0x3f3f6e6, 0x2c10280, 0x3e106a0, 0x2c10200, 0x3010280, 0x2810200, 0x3eff7ff, 0x2810280,
    0x0800200, 0x2010640, 0x3710680, 0x3f3a6ca, 0x3f11662, 0x3f77ec2, 0x3f306ea, 0x3ffbeee,
];
