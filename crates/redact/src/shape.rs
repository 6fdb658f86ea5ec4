//! Judges whether a string has the shape of a secret. Shapes are judged where little or nothing beside the string says
//! what it is.

use super::edges::is_word;
use super::form::{
    Makeup, is_generated, is_long_token, is_monotonous, is_stand_in, is_template, is_wordy, looks_random,
};
use super::template::{holds, is_call};

/// Returns whether `value` has a secret's shape: it looks generated or random, it is a passphrase, or it mixes letters
/// with digits and signs and is not a path.
pub(super) fn is_shaped(value: &[u8]) -> bool {
    if value.len() > 256 {
        return is_long_token(value) && !is_other(value);
    }
    if value.len() < 8 {
        return false;
    }
    let makeup = Makeup::of(value);
    let path = value.iter().any(|b| b"/.,:(){}[]<>\\'\"".contains(b));
    let shaped = is_generated(value, 8)
        || makeup.digits > 0 && looks_random(value, 10)
        || looks_random(value, 20)
        || is_passphrase(value)
        || !path
            && makeup.other == 0
            && makeup.symbols > 0
            && makeup.letters() > 2
            && (makeup.digits > 1 || makeup.digits > 0 && makeup.upper > 0 && makeup.lower > 2);
    shaped && !is_other(value)
}

/// Returns whether `value` has a secret's shape, or is a name joined with a number, such as `maplefern482`. Used for
/// values that follow a word for a password in a sentence.
pub(super) fn is_spoken(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    let numbered = || {
        let digits = value.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        (2..=4).contains(&digits) && value.len() >= 9 && makeup.letters() + digits == value.len()
    };
    let shaped = || is_shaped(value) && !is_hash(value) && (is_passphrase(value) || !is_identifier(value));
    !is_code(value) && !is_designation(value) && (shaped() || numbered() && !is_other(value))
}

/// Returns whether `value` is a short designation of a standard, a product with its version, an error, a ticket or a type,
/// such as `SHA-256`, `AUTH_E4013`, `grafana-10.4.1` and `Uint8Array`.
pub(super) fn is_designation(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    let dotted = value.windows(3).any(|w| w[0].is_ascii_digit() && w[1] == b'.' && w[2].is_ascii_digit());
    let upper = makeup.lower == 0 && (makeup.joiners > 0 || value.len() < 16) && value.len() < 24;
    let ends_in_letters = value.last().is_some_and(u8::is_ascii_alphabetic);
    let named = value.windows(2).any(|w| w[0] == b'.' && w[1].is_ascii_uppercase()) || makeup.digits < 3;
    value.starts_with(b"0x")
        || makeup.symbols == 0 && (upper || dotted || ends_in_letters && named && is_wordy(value))
        || makeup.lower == 0 && makeup.digits < 3 && value.len() < 16
}

/// Returns whether `value` may be a secret. The function is used where the structure of the text shows the place of a
/// secret, for example in a column of passwords or after a command that prints a secret. Words, numbers, paths, types
/// and placeholders are not secrets.
pub(super) fn is_stated(value: &[u8]) -> bool {
    if !(5..=512).contains(&value.len()) {
        return false;
    }
    let makeup = Makeup::of(value);
    if makeup.other > 0 || is_other(value) {
        return false;
    }
    if is_passphrase(value) {
        return true;
    }
    if is_identifier(value) {
        return false;
    }
    if is_generated(value, 8) && !is_code(value) || looks_random(value, 16) {
        return true;
    }
    let code = value.iter().any(|b| b"(){}[]<>,'\"`\\".contains(b));
    let path = value.contains(&b'/')
        || value.windows(2).any(|pair| b".:".contains(&pair[0]) && pair[1].is_ascii_alphabetic());
    let kind = makeup.upper == 0 && makeup.symbols == 0 && value.len() < 8 && makeup.digits < 3;
    !code
        && !path
        && makeup.letters() > 2
        && (makeup.digits > 0 && !kind && !is_version(value)
            || makeup.symbols > 0
                && makeup.upper > 0
                && makeup.lower >= 5
                && !value.ends_with(b"?")
                && !value.ends_with(b"*"))
}

/// Returns whether `value` is a passphrase, which consists of words and a number, joined by `-` or `_`, such as
/// `fern-river-58`.
pub(super) fn is_passphrase(value: &[u8]) -> bool {
    if !(8..=80).contains(&value.len())
        || !value.iter().all(|b| b.is_ascii_alphanumeric() || b"-_!#".contains(b))
    {
        return false;
    }
    let value = value.strip_suffix(b"!").or(value.strip_suffix(b"#")).unwrap_or(value);
    let (mut words, mut capitals, mut numbers, mut digits) = (0, 0, 0, 0);
    for part in value.split(|b| b"-_".contains(b)) {
        if part.len() >= 3
            && part.iter().all(u8::is_ascii_alphabetic)
            && !part[1..].iter().any(u8::is_ascii_uppercase)
        {
            words += 1;
            capitals += usize::from(part[0].is_ascii_uppercase());
        } else if !part.is_empty() && part.len() <= 4 && part.iter().all(u8::is_ascii_digit) {
            numbers += 1;
            digits += part.len();
        } else {
            return false;
        }
    }
    // A number in the middle, as in `aes-256-cbc`, is not that of a passphrase.
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
    if !ends(value.last()) && !ends(value.first()) {
        return false;
    }
    let dated = value.len() > 4 && value[..4].iter().all(u8::is_ascii_digit);
    numbers == 1
        && !dated
        && (words >= 3 || words == 2 && (capitals == 2 || digits > 1) || capitals == 1 && digits > 2)
}

/// Returns whether `value` is a template, a reference, a call, an address, or a word that is used in examples.
fn is_other(value: &[u8]) -> bool {
    if value.starts_with(b"^") && value.ends_with(b"$") || is_assignment(value) {
        return true;
    }
    if value.starts_with(b"/") && value[1..].contains(&b'/') && is_wordy(value) {
        return true;
    }
    let address =
        [&b"://"[..], b"www."].iter().any(|sign| value.windows(sign.len()).any(|window| window == *sign));
    let named = value.starts_with(b"--") || value.starts_with(b"./") || value.starts_with(b"~/");
    address || named || is_monotonous(value) || is_template(value) || is_stand_in(value) || is_call(value)
}

/// Returns whether `value` assigns something to a variable of the environment, such as `NODE_OPTIONS=--no-warnings`.
fn is_assignment(value: &[u8]) -> bool {
    let Some(sign) = value.iter().position(|b| *b == b'=') else { return false };
    let name = &value[..sign];
    let constant = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    name.len() > 3 && name.contains(&b'_') && name[0].is_ascii_uppercase() && name.iter().all(constant)
}

/// Returns whether `value` is an identifier or an option: words of one case and numbers, joined by `_` or `-`, such as
/// `SASL_NTLM_TYPE2` and `SHA-256`. A passphrase can look like an identifier too, so callers check [`is_passphrase`]
/// first.
fn is_identifier(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    let cased = makeup.upper == 0 || makeup.lower == 0;
    let constant = value.contains(&b'_') && makeup.lower == 0 && makeup.digits < 4;
    let joined = value.iter().all(|b| is_word(*b) || *b == b'-') && makeup.joiners > 0;
    joined && cased && (constant || makeup.digits < 3 && is_wordy(value))
}

/// Returns whether `value` has signs of code: a path, a call, an assignment, a comparison.
pub(super) fn is_code(value: &[u8]) -> bool {
    let signs = [
        &b"::"[..],
        b"->",
        b"()",
        b"==",
        b"&&",
        b"](",
        b").",
        b"]=",
        b"{{",
        b"}}",
        b"</",
        b"\\f",
        b"\\n",
        b"','",
        b"\",\"",
    ];
    signs.iter().any(|sign| holds(value, sign))
}

/// Returns whether `value` is a version or a date: digits joined by dots, colons or dashes, with at most a letter or
/// two.
fn is_version(value: &[u8]) -> bool {
    let makeup = Makeup::of(value);
    makeup.letters() <= 2
        || value.contains(&b'.') && makeup.symbols == 0 && makeup.digits * 2 > makeup.letters()
}

/// Returns whether `value` looks like a hash, a UUID or a revision. Such a value is hexadecimal and has a usual length,
/// or begins like a hash in a lock file.
pub(super) fn is_hash(value: &[u8]) -> bool {
    if value.starts_with(b"h1:") || value.starts_with(b"sha256-") || value.starts_with(b"sha512-") {
        return true;
    }
    let digits = value.iter().filter(|b| b.is_ascii_hexdigit()).count();
    let dashes = value.iter().filter(|b| **b == b'-').count();
    digits + dashes == value.len() && (dashes == 4 && digits == 32 || dashes == 0 && digits >= 7)
}

/// Returns `range` of `text` without quotes, marks of emphasis and the punctuation of a sentence around it.
pub(super) fn bare(text: &[u8], mut range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    while range.start < range.end && b"\"'`*([{ \t".contains(&text[range.start]) {
        range.start += 1;
    }
    while range.start < range.end && b"\"'`*)]},.;: \t\r".contains(&text[range.end - 1]) {
        // A closing bracket belongs to the value if the value contains the opening bracket.
        let open = match text[range.end - 1] {
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => 0,
        };
        if open > 0 && text[range.clone()].contains(&open) {
            break;
        }
        range.end -= 1;
    }
    range
}

/// Returns whether `byte` may be in a name.
pub(super) fn is_named(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'.'
}
