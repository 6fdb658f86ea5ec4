//! Finds passwords near a word for a password, by their shape alone.
//!
//! People mention passwords in more ways than rules could describe, and in every language:
//! `try … as the sudo password`, `… is what the zip opens with`. So if a string has a shape that only passwords have,
//! and is near such a word in the same line, it counts as a password. Names, versions, algorithms, paths and code have
//! other shapes ([`is_strong`]).

use std::ops::Range;

use crate::form::{Makeup, is_generated, is_jumbled, is_monotonous, is_stand_in, looks_keyed, looks_random};
use crate::shape::{is_code, is_designation, is_hash};

/// The maximum number of bytes between the word and a password.
const REACH: usize = 120;

/// Passwords, including the signs around them, have fewer bytes than this. Longer runs are keys, hashes and pictures.
const LONGEST: usize = 72;

/// Returns the passwords near the word at `hit`, and where reading stopped.
pub(crate) fn password(text: &[u8], hit: &Range<usize>) -> (Vec<Range<usize>>, usize) {
    near(text, hit, is_strong)
}

/// Returns the tokens and keys after the word at `hit`, and where reading stopped.
pub(crate) fn key(text: &[u8], hit: &Range<usize>) -> (Vec<Range<usize>>, usize) {
    // Words such as `tokenizer` and `secretary` don't mean a key.
    let ending = text[hit.end..].iter().take(3).take_while(|b| b.is_ascii_alphabetic()).count();
    if ending > 2 && text[hit.start].is_ascii() {
        return (Vec::new(), hit.end);
    }
    // A key directly after the word may contain signs of base64.
    let gap = text[hit.end..].iter().take(4).take_while(|b| b" (`".contains(b)).count();
    let run = text[hit.end + gap..].iter().take(256).take_while(|b| b.is_ascii_graphic()).count();
    let next = trimmed(text, hit.end + gap..hit.end + gap + run);
    if gap > 0
        && run < 256
        && is_base64_key(&text[next.clone()])
        && !is_digest(&text[hit.start.saturating_sub(24)..next.start])
    {
        let end = next.end;
        return (vec![next], end);
    }
    let (mut found, end) = near(text, hit, is_key);
    found.retain(|found| {
        found.start > hit.end && !is_digest(&text[hit.start.saturating_sub(24)..found.start])
    });
    (found, end)
}

/// Returns whether `lead`, the text before a value, says that the value is a digest or a name, like `cache key`.
fn is_digest(lead: &[u8]) -> bool {
    let lead = lead.to_ascii_lowercase();
    [
        "hash",
        "sha",
        "md5",
        "digest",
        "checksum",
        "fingerprint",
        "commit",
        "revision",
        "version",
        "cache",
        "public",
    ]
    .iter()
    .any(|word| lead.windows(word.len()).any(|window| window == word.as_bytes()))
}

/// Returns the values near the word at `hit` for which `fits` returns true, and where reading stopped.
fn near(text: &[u8], hit: &Range<usize>, fits: impl Fn(&[u8]) -> bool) -> (Vec<Range<usize>>, usize) {
    // `pw` is in many runs of letters.
    let short = hit.len() < 4 && text[hit.start].is_ascii();
    let joined = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    if short && (hit.start > 0 && joined(hit.start - 1) || joined(hit.end)) {
        return (Vec::new(), hit.end);
    }
    let before = &text[hit.start.saturating_sub(REACH)..hit.start];
    let before = before.iter().rev().take_while(|b| **b != b'\n').count();
    let after = text[hit.end..].iter().take(REACH).take_while(|b| **b != b'\n').count();
    let window = hit.start - before..hit.end + after;
    let mut found = Vec::new();
    let mut at = window.start;
    while at < window.end {
        let run = text[at..].iter().take(LONGEST).take_while(|b| b.is_ascii_graphic()).count();
        // If a run begins before the window or is too long, the part of it that is read may belong to anything.
        let whole = at == 0 || !text[at - 1].is_ascii_graphic();
        if (8..LONGEST).contains(&run) && whole {
            let range = trimmed(text, at..at + run);
            let beside = text.get(range.end).copied().unwrap_or(b' ');
            if beside != b'(' && fits(&text[range.clone()]) {
                found.push(range);
            }
        }
        at += run.max(1);
    }
    // Neighbouring words of a sentence have nearly the same surroundings, so half of the distance is skipped.
    (found, hit.end + after / 2)
}

/// Returns `range` without quotes, brackets and punctuation around it, and without the sign of an added line.
fn trimmed(text: &[u8], mut range: Range<usize>) -> Range<usize> {
    // A colour of the terminal.
    if range.start > 0 && text[range.start - 1] == 0x1b {
        let length = text[range.clone()].iter().position(u8::is_ascii_alphabetic);
        range.start += length.map_or(0, |length| length + 1);
    }
    while range.start < range.end && b"\"'`*([{<+".contains(&text[range.start]) {
        range.start += 1;
    }
    // Text after the closing quote doesn't belong to the value.
    if range.start > 0 && b"\"'`".contains(&text[range.start - 1]) {
        let quote = text[range.start - 1];
        let inner = text[range.clone()].iter().position(|b| *b == quote);
        range.end = range.start + inner.unwrap_or(range.len());
    }
    while range.start < range.end && b"\"'`)]}>,.;:".contains(&text[range.end - 1]) {
        range.end -= 1;
    }
    range
}

/// Returns whether `value` has a shape that only a password has.
fn is_strong(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*?~+-_.".contains(b);
    if value.len() < 8 || makeup.digits == 0 || makeup.letters() < 3 || !value.iter().all(plain) {
        return false;
    }
    if value.starts_with(b"-")
        || is_designation(value)
        || is_monotonous(value)
        || is_hash(value)
        || is_code(value)
    {
        return false;
    }
    let fits = is_chosen(value) || is_worded(value) || is_drawn(value, makeup);
    fits && !is_stand_in(value)
}

/// Returns whether `value` is one or two words with a number and a sign, such as `Sommer2019!` and `maple#482`.
fn is_chosen(value: &[u8]) -> bool {
    let signs = value.iter().filter(|b| b"!#@*%?$&".contains(b)).count();
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let rest = value.iter().filter(|b| b.is_ascii_alphabetic() || **b == b'-').count();
    let begins = value[0].is_ascii_alphabetic();
    // A value such as `vitest@22` is a package with its version.
    let whole = (1..=4).contains(&signs) && (3..=7).contains(&digits);
    begins && whole && signs + digits + rest == value.len() && rest >= 3 || is_pair(value)
}

/// Returns whether `value` is two words with capitals and a number, such as `Maple-River482`.
fn is_pair(value: &[u8]) -> bool {
    let Some(dash) = value.iter().position(|b| *b == b'-') else { return false };
    let (first, second) = (&value[..dash], &value[dash + 1..]);
    let digits = second.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let word = |part: &[u8]| {
        part.len() >= 4 && part[0].is_ascii_uppercase() && part[1..].iter().all(u8::is_ascii_lowercase)
    };
    digits >= 3 && word(first) && word(&second[..second.len() - digits])
}

/// Returns whether `value` is a passphrase of at least three words joined by `-`, `_` or `.`, with a number at the end.
fn is_worded(value: &[u8]) -> bool {
    let Some(joint) = value.iter().find(|b| b"-_.".contains(b)) else { return false };
    let parts: Vec<&[u8]> = value.split(|b| b == joint).collect();
    let Some((number, words)) = parts.split_last() else { return false };
    let word = |part: &&[u8]| part.len() >= 3 && part.iter().all(u8::is_ascii_lowercase);
    words.len() >= 3
        && words.iter().all(word)
        && (1..=4).contains(&number.len())
        && number.iter().all(u8::is_ascii_digit)
}

/// Returns whether `value` looks as if it was made by a generator.
fn is_drawn(value: &[u8], makeup: Makeup) -> bool {
    let cased = makeup.upper > 0 && makeup.lower > 0;
    let dotted = value.windows(3).any(|w| w[0].is_ascii_digit() && w[1] == b'.' && w[2].is_ascii_digit());
    if !cased || dotted && makeup.symbols == 0 {
        return value.len() >= 24 && makeup.digits > 3 && makeup.joiners == 0 && looks_random(value, 24);
    }
    is_generated(value, 8) && (makeup.symbols > 0 || value.len() >= 12) && is_jumbled(value)
}

/// Returns whether `value` looks like a key or a token. Such a value is hexadecimal with a usual length, or long and
/// random. Forty hexadecimal digits don't count, because they are the id of a git commit.
fn is_key(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    let hex = value.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-';
    if hex {
        return [32, 48, 64].contains(&value.len()) && makeup.digits > 5 && !is_monotonous(value);
    }
    let revision = value.iter().all(u8::is_ascii_hexdigit);
    value.len() >= 30
        && !revision
        && value.iter().all(word)
        && makeup.digits > 2
        && makeup.joiners < 4
        && looks_random(value, 24)
        && !is_stand_in(value)
}

/// Returns whether `value` looks like a long key in base64 or in parts joined by `:`.
fn is_base64_key(value: &[u8]) -> bool {
    let sign = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-:".contains(b);
    let path = value.starts_with(b"/") || value.windows(2).any(|pair| pair == b"//" || pair == b"::");
    value.len() >= 40
        && value.iter().all(sign)
        && !path
        && looks_keyed(value)
        && looks_random(value, 40)
        && !value.iter().all(u8::is_ascii_hexdigit)
}
