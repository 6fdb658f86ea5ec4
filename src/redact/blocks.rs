//! Secrets of many lines: text marked as private, and private keys with their bodies.
//!
//! A key is found whole where it stands whole, and to the end of its base64 where its last line is missing. Around
//! its lines there may be what the text it stands in adds: indentation, escapes, quotes, the signs of a diff or of a
//! citation, line numbers.

use std::ops::Range;

use super::edges::{is_word, starts_word};

/// Returns the blocks `<private>` … `</private>` of which one of `tags` is the beginning of a tag.
///
/// Blocks nest. One that is not closed goes on to the end of the text.
pub(super) fn private(text: &[u8], tags: &[usize]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for &start in tags {
        let Some((closing, end)) = private_tag(text, start) else { continue };
        match (&mut open, closing) {
            (None, false) => open = Some((start, 1)),
            (None, true) => {}
            (Some((_, depth)), false) => *depth += 1,
            (Some((first, 1)), true) => {
                blocks.push(*first..end);
                open = None;
            }
            (Some((_, depth)), true) => *depth -= 1,
        }
    }
    blocks.extend(open.map(|(first, _)| first..text.len()));
    blocks
}

/// Returns what a private block holds, without its tags.
pub(super) fn private_content(block: &[u8]) -> &[u8] {
    let start = private_tag(block, 0).map_or(0, |(_, end)| end);
    let last = block.iter().rposition(|&b| b == b'<' || b == b'\\').filter(|&at| at >= start);
    let end =
        last.filter(|&at| private_tag(block, at).is_some_and(|(closing, _)| closing)).unwrap_or(block.len());
    &block[start..end]
}

/// Returns whether the tag at `start` closes, and where it ends; nothing when it is no private tag.
fn private_tag(text: &[u8], start: usize) -> Option<(bool, usize)> {
    let escaped = text[start] == b'\\';
    let mut at = start + if escaped { 6 } else { 1 };
    let closing = text.get(at) == Some(&b'/');
    at += usize::from(closing);
    let name = text.get(at..at + 7)?;
    if !name.eq_ignore_ascii_case(b"private") {
        return None;
    }
    at += 7;
    if text.get(at).is_some_and(u8::is_ascii_whitespace) {
        let length = text[at..].iter().take(200).position(|b| matches!(b, b'>' | b'<' | b'\\'))?;
        let attributes = &text[at..at + length];
        if !attributes.contains(&b'=') && !attributes.trim_ascii().is_empty() {
            return None;
        }
        at += length;
    }
    let end: &[u8] = if escaped { b"\\u003e" } else { b">" };
    let ends = text.get(at..at + end.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(end));
    ends.then_some((closing, at + end.len()))
}

/// Returns the key block whose first line begins at `start`.
pub(super) fn private_key(text: &[u8], start: usize) -> Option<Range<usize>> {
    let line = &text[start..text.len().min(start + 80)];
    let name = line.windows(11).position(|window| window == b"PRIVATE KEY")?;
    if line[..name]
        .iter()
        .skip(5)
        .any(|b| !(b.is_ascii_uppercase() || b.is_ascii_digit() || b" -".contains(b)))
    {
        return None;
    }
    let after = &line[name + 11..];
    let after = after.strip_prefix(b" BLOCK").unwrap_or(after);
    let dashes = after.iter().take_while(|b| **b == b'-').count();
    if dashes < 4 {
        return None;
    }
    let body = start + line.len() - after.len() + dashes;
    body_end(text, body).map(|end| start..end)
}

/// Returns the body of a key, without its first line, that begins at `start`.
pub(super) fn key_body(text: &[u8], start: usize) -> Option<Range<usize>> {
    if !starts_word(text, start) {
        return None;
    }
    body_end(text, start).map(|end| start..end)
}

/// Returns the private lines of a PuTTY key; `at` follows `Private-Lines:`.
pub(super) fn putty(text: &[u8], at: usize) -> Option<Range<usize>> {
    let digits = at + text[at..].iter().take(2).take_while(|b| **b == b' ').count();
    let start = digits + text[digits..].iter().take(4).take_while(|b| b.is_ascii_digit()).count();
    let end = body_end(text, start)?;
    let body = start + text[start..end].iter().position(|b| is_base64(*b))?;
    // After an escaped line end the `n` is not of the body.
    let body = body + usize::from(text[body - 1] == b'\\');
    (start > digits && body < end).then_some(body..end)
}

/// Returns where the body of a key that begins at `at` ends, with its last line when it has one.
fn body_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut end = start;
    let mut letters = 0;
    while let Some(&byte) = text.get(at) {
        if is_base64(byte) {
            let run = text[at..].iter().take_while(|b| is_base64(**b)).count();
            let word = &text[at..at + run];
            if run >= LONG && !(word.len() <= 20 && word.iter().all(|b| b.is_ascii_alphabetic())) {
                letters += run;
                end = at + run;
            } else if let Some(header) = header(text, at, letters) {
                at = header;
                continue;
            } else if line_number(text, at, run) || word.iter().all(|b| b"+/=".contains(b)) {
                // Part of what stands around the lines, or of a last line that began with `=`.
            } else if letters > 0 && closes_line(text, at + run) && follows_line(text, end, at) {
                letters += run;
                end = at + run;
            } else {
                break;
            }
            at += run;
        } else if text[at..].starts_with(b"----") {
            let line = &text[at..text.len().min(at + 80)];
            let dashes = line.iter().take_while(|b| **b == b'-').count();
            if !line[dashes..].trim_ascii_start().starts_with(b"END ") {
                break;
            }
            let name = line[dashes..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b' ').count();
            let last = at + dashes + name;
            end = last + text[last..].iter().take(5).take_while(|b| **b == b'-').count();
            break;
        } else if let Some(length) = decoration(&text[at..]) {
            at += length;
        } else {
            break;
        }
    }
    (letters >= 2 * LONG).then_some(end)
}

/// A run of base64 this long is a line of a key wherever it stands; a word is seldom so long.
const LONG: usize = 16;

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// Returns the length of what may stand around the lines of a key, at the beginning of `text`.
fn decoration(text: &[u8]) -> Option<usize> {
    match text[0] {
        b'\\' => Some(if matches!(text.get(1), Some(b'n' | b'r' | b't')) { 2 } else { 1 }),
        b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b',' | b'>' | b'#' | b'*' | b'|' | b'-'
        | b':' => Some(1),
        // The arrow and the bar with which tools set off line numbers.
        _ if text.starts_with("→".as_bytes()) || text.starts_with("│".as_bytes()) => Some(3),
        _ => None,
    }
}

/// Returns where the header line that begins at `at` ends, if one does before the body.
fn header(text: &[u8], at: usize, letters: usize) -> Option<usize> {
    const NAMES: [&[u8]; 6] = [b"Proc-Type", b"DEK-Info", b"Version", b"Comment", b"Hash", b"Charset"];
    let name = NAMES.iter().find(|name| letters == 0 && text[at..].starts_with(name))?;
    let line = &text[at..text.len().min(at + 200)];
    let colon = line.get(name.len()) == Some(&b':');
    let end = line.iter().position(|b| matches!(b, b'\n' | b'\\' | b'"'))?;
    colon.then_some(at + end)
}

/// Whether the `run` bytes at `at` number a line.
fn line_number(text: &[u8], at: usize, run: usize) -> bool {
    let next = &text[at + run..];
    let set_off = matches!(next.first(), Some(b'\t' | b':' | b'|')) || next.starts_with("→".as_bytes());
    run <= 6 && set_off && text[at..at + run].iter().all(u8::is_ascii_digit)
}

/// Whether a line, or the string it stands in, ends at `at`.
fn closes_line(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\' | b'-') => true,
        Some(b' ' | b'\t') => {
            text[at..].iter().find(|b| !matches!(b, b' ' | b'\t')).is_none_or(|b| *b == b'\n')
        }
        _ => false,
    }
}

/// Whether what stands between `end` and `at` is one line end and what is set around lines, no blank line.
fn follows_line(text: &[u8], end: usize, at: usize) -> bool {
    let between = &text[end..at];
    let lines = between.iter().filter(|b| **b == b'\n').count();
    let escaped = between.windows(2).filter(|pair| pair == b"\\n").count();
    lines + escaped == 1
        && !between.iter().any(|b| is_word(*b) && !b.is_ascii_digit() && *b != b'n' && *b != b'r')
}
