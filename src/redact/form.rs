//! How a string looks: its entropy, whether it looks random, whether it stands in for a secret.
//!
//! Entropy alone does not tell a key from a word: sixteen letters of English and sixteen letters of a key differ by
//! half a bit. What tells them is that words are made of pairs of letters that go together. A table of the pairs
//! that don't (counted over Rust sources and their prose: 40% of all pairs, 1.6% of those written) finds the words in
//! a string; what is left when the words are taken away is what looks random.

pub(super) use super::template::{is_stand_in, is_template};

/// Returns the Shannon entropy of `bytes`, in bits a byte.
pub(super) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f32;
    counts.iter().filter(|&&n| n > 0).map(|&n| n as f32 / total).map(|p| -p * p.log2()).sum()
}

/// What a string is made of.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Makeup {
    pub lower: usize,
    pub upper: usize,
    pub digits: usize,
    /// Bytes of `!@#$%^&*?~+=|;`, seldom found in names and paths.
    pub symbols: usize,
    /// Other printable ASCII: `_-./:` and brackets.
    pub joiners: usize,
    /// Space, control and anything beyond ASCII.
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

/// Whether `text`, of at least `least` bytes, looks drawn at random: hexadecimal, or letters and digits in no words.
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
        // Names in small letters joined by `_` and `-` have few digits.
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

/// Whether `text` could be a key of forty letters and digits and more, even if it spells some words.
pub(super) fn looks_keyed(text: &[u8]) -> bool {
    let makeup = Makeup::of(text);
    text.len() >= 40 && makeup.lower > 0 && makeup.upper > 0 && makeup.digits > 0 && entropy(text) >= 3.8
}

/// Whether the letters of `text` are in no words: what [`looks_random`] asks of a longer string, for a password.
pub(super) fn is_jumbled(text: &[u8]) -> bool {
    let words = words(text);
    let letters = Makeup::of(text).letters();
    letters >= 4 && words.rare * 6 >= words.pairs && words.letters * 2 <= letters
}

/// Whether `text`, of at least `least` bytes, looks made by a generator of passwords: letters in no words, mixed with
/// digits and with signs that names and paths seldom hold.
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

/// Whether the letters of `text` are mostly in words.
pub(super) fn is_wordy(text: &[u8]) -> bool {
    let letters = Makeup::of(text).letters();
    letters >= 5 && words(text).letters * 2 > letters
}

/// Returns how often the kind of byte changes from one to the next: seldom in words, at every other byte when drawn.
fn changes(text: &[u8]) -> usize {
    let kind = |b: u8| match b {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    text.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count()
}

/// Whether seven bytes of `text` follow one another as they do in an alphabet.
fn counts_up(text: &[u8]) -> bool {
    text.windows(7).any(|run| run.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])))
}

/// Whether `text` is made of few different bytes, or counts up: `xxxxxxxx`, `********`, `12345678`.
pub(super) fn is_monotonous(text: &[u8]) -> bool {
    let mut seen = 0u128;
    for byte in text {
        seen |= 1 << (byte & 127);
    }
    let distinct = seen.count_ones() as usize;
    distinct < 4 || distinct < text.len().min(40) / 5
}

/// What of a string is words.
struct Words {
    /// Letters that stand in words of three and more.
    letters: usize,
    /// Pairs of letters.
    pairs: usize,
    /// Pairs of letters that hardly ever stand together.
    rare: usize,
}

/// Splits `text` at everything but letters and where a capital begins a word, and counts what could be words.
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

/// Whether the two letters hardly ever follow one another in words.
fn is_rare(first: u8, second: u8) -> bool {
    let index = |letter: u8| usize::from(letter.to_ascii_lowercase() - b'a');
    RARE_PAIRS[index(first)] >> index(second) & 1 == 1
}

/// For each first letter, the second letters that follow it in fewer than 2 of 10,000 pairs, as bits from `a`.
#[rustfmt::skip]
const RARE_PAIRS: [u32; 26] = [
    0x2014290, 0x2e1a4e0, 0x2c10200, 0x2810680, 0x2000200, 0x2e10680, 0x3e1062e, 0x2a186e2, 0x1510380,
    0x3ffbfef, 0x3f3f6e6, 0x2c10280, 0x3e106a0, 0x2c10200, 0x3010280, 0x2810200, 0x3eff7ff, 0x2810280,
    0x0800200, 0x2010640, 0x3710680, 0x3f3a6ca, 0x3f11662, 0x3f77ec2, 0x3f306ea, 0x3ffbeee,
];
