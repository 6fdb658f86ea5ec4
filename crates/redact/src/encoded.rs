//! Finds text that is encoded once, in base64 or hexadecimal.
//!
//! One byte in every [`LEAST`] is examined. Examining so few bytes still finds every run, because a run has at least
//! [`LEAST`] bytes. A run is decoded only if its beginning decodes to text, which is hardly ever so for random bytes.

use std::ops::Range;

/// The minimum number of bytes of a run.
const LEAST: usize = 24;

/// Base64 may continue on the next line only if the line has at least this many bytes.
const LINE: usize = 60;

/// Finds each run in `text` whose beginning decodes to text, and calls `look` with the range of the run and its
/// decoded bytes.
pub(super) fn runs(text: &[u8], mut look: impl FnMut(Range<usize>, &[u8])) {
    let mut at = LEAST - 1;
    let mut floor = 0;
    while at < text.len() {
        if VALUES[usize::from(text[at])] == NONE {
            at += LEAST;
            continue;
        }
        let before = text[floor..at].iter().rev().take_while(|b| VALUES[usize::from(**b)] != NONE).count();
        let start = at - before;
        let mut end = run_end(text, at);
        if end - start >= LEAST {
            if let Some((from, bytes)) = hex(text, start, end) {
                look(from..from + 2 * bytes.len(), &bytes);
            } else if let Some(from) = (start..start + 4).find(|from| begins_as_text(&text[*from..end])) {
                let mut bytes = Vec::with_capacity((end - from) / 4 * 3);
                end = decode(text, from, &mut bytes);
                look(from..end, &bytes);
            }
        }
        floor = end;
        at = end + LEAST;
    }
}

fn run_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|b| VALUES[usize::from(**b)] != NONE).count()
}

/// Returns whether the first sixteen characters of base64 decode to printable characters.
fn begins_as_text(run: &[u8]) -> bool {
    run.len() >= 16 && run.chunks_exact(4).take(4).all(|four| quad(four).iter().all(|b| is_text(*b)))
}

fn quad(four: &[u8]) -> [u8; 3] {
    let value = |at: usize| u32::from(VALUES[usize::from(four[at])]);
    let bits = value(0) << 18 | value(1) << 12 | value(2) << 6 | value(3);
    [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8]
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// Decodes the base64 that begins at `start`, appends the result to `bytes`, and returns the end of the base64.
/// If a line is long, the base64 may continue on the next line.
fn decode(text: &[u8], start: usize, bytes: &mut Vec<u8>) -> usize {
    let (mut bits, mut held) = (0u32, 0);
    let mut line = start;
    loop {
        let end = run_end(text, line);
        for byte in &text[line..end] {
            bits = bits << 6 | u32::from(VALUES[usize::from(*byte)]);
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        let padding = text[end..].iter().take(2).take_while(|b| **b == b'=').count();
        let next = margin(text, end);
        if padding > 0 || end - line < LINE || next == end || run_end(text, next) == next {
            return end + padding;
        }
        line = next;
    }
}

/// Returns where the text of the next line begins, after its indentation, or `end` if no line ends there.
fn margin(text: &[u8], end: usize) -> usize {
    let rest = &text[end..];
    let forms: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    let Some(form) = forms.iter().find(|form| rest.starts_with(form)) else { return end };
    end + form.len() + rest[form.len()..].iter().take(40).take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// Returns where the hexadecimal in a run begins, and its decoded bytes. Returns `None` if the run isn't
/// hexadecimal or its beginning doesn't decode to text.
fn hex(text: &[u8], start: usize, end: usize) -> Option<(usize, Vec<u8>)> {
    // The hexadecimal may follow `0x` or an escaped line end.
    let prefix = text[start..end].iter().take(2).rposition(|b| !b.is_ascii_hexdigit());
    let start = start + prefix.map_or(0, |place| place + 1);
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    let pairs = text[start..end].chunks_exact(2);
    if pairs.len() < LEAST / 2 || !pairs.clone().take(LEAST / 2).all(|pair| byte(pair).is_some_and(is_text)) {
        return None;
    }
    Some((start, pairs.map_while(byte).collect()))
}

const NONE: u8 = 64;

/// The value of each byte in the standard and the URL-safe alphabet of base64.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 26 {
        values[b'A' as usize + value] = value as u8;
        values[b'a' as usize + value] = value as u8 + 26;
        value += 1;
    }
    let mut digit = 0;
    while digit < 10 {
        values[b'0' as usize + digit] = digit as u8 + 52;
        digit += 1;
    }
    values[b'+' as usize] = 62;
    values[b'-' as usize] = 62;
    values[b'/' as usize] = 63;
    values[b'_' as usize] = 63;
    values
};
