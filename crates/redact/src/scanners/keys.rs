//! Finds private keys together with their bodies.
//!
//! If a key has its last line, the key extends from its first line to this line. Anything may be around and between the
//! lines of a key: timestamps of a log, line numbers, escapes, quotes, the signs of a diff, or a gap. If the last line
//! is missing, the key continues through lines that directly follow each other, and through lines with a prefix that
//! are as long as the first line. If the first line of a key is missing, the lines before its last line are found in a
//! similar way.
//!
//! A walk over the lines ends after [`GAP`] bytes without a line of a key, and at the beginning of the next block. So
//! the time of all walks over a text together is linear in its length.

use std::ops::Range;

use crate::edges::{is_word, starts_word};
use crate::form::looks_random;

/// The maximum number of bytes that may separate two lines of a key. The longest prefixes of lines seen so far are
/// those of logs in JSON.
const GAP: usize = 1024;

/// The number of bytes that a walk reads after an interruption to find the last line. The lines after the interruption
/// belong to the key only if the last line is found.
const REACH: usize = 16 * 1024;

/// The number of bytes of a line's prefix that are compared with the prefix of the previous line.
const PREFIX: usize = 240;

/// A run of base64 with at least this many characters counts as a line of a key, wherever it is. Words are seldom so
/// long.
const LONG: usize = 16;

/// If a line has at least this many characters, the lines after it that have the same prefix and length belong to
/// the key, too.
const LINE: usize = 40;

/// Returns the key whose first or last line begins at `start`. `floor` is the place where the previous key ends.
pub(crate) fn private_key(text: &[u8], start: usize, floor: usize) -> Option<Range<usize>> {
    let armour = armour(text, start)?;
    if !armour.private {
        return None;
    }
    if !armour.begins {
        return lines_before(text, start, floor).map(|first| first..armour.end);
    }
    let body = body(text, armour.end, GAP);
    body.end.map(|end| start..end)
}

/// Returns the key whose body begins at `start`. The first line of the key is missing. Increases `read_until` beyond
/// the first run of base64.
pub(crate) fn key_body(text: &[u8], start: usize, read_until: &mut usize) -> Option<Range<usize>> {
    if !starts_word(text, start) {
        return None;
    }
    let body = body(text, start, 0);
    *read_until = run(text, start).end;
    body.end.map(|end| start..end)
}

/// Returns the private lines of a PuTTY key. `at` is the place after `Private-Lines:`.
pub(crate) fn putty(text: &[u8], at: usize) -> Option<Range<usize>> {
    let digits = at + text[at..].iter().take(2).take_while(|b| **b == b' ').count();
    let start = digits + text[digits..].iter().take(4).take_while(|b| b.is_ascii_digit()).count();
    if start == digits {
        return None;
    }
    let body = body(text, start, GAP);
    body.end.map(|end| body.start..end)
}

/// The line `-----BEGIN … KEY-----` or `-----END … KEY-----`.
struct Armour {
    /// Whether the line is the first line of a block. Otherwise the line is the last line.
    begins: bool,
    /// Whether the block is a private key.
    private: bool,
    end: usize,
}

/// Returns the first or last line of a block, if the dashes of such a line begin at `start`.
fn armour(text: &[u8], start: usize) -> Option<Armour> {
    let line = &text[start..text.len().min(start + 120)];
    let mut at = line.iter().take_while(|b| **b == b'-').count();
    if at < 4 {
        return None;
    }
    at += separator(&line[at..]);
    let begins = line[at..].starts_with(b"BEGIN");
    if !begins && !line[at..].starts_with(b"END") {
        return None;
    }
    at += if begins { 5 } else { 3 };
    let mut words = [0u8; 48];
    let mut length = 0;
    while at < line.len() && length < words.len() {
        let space = separator(&line[at..]);
        let byte = if space > 0 { b' ' } else { line[at] };
        if !(byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ') {
            break;
        }
        words[length] = byte;
        length += 1;
        at += space.max(1);
    }
    let dashes = line[at..].iter().take(5).take_while(|b| **b == b'-').count();
    let private = words[..length].windows(11).any(|window| window == b"PRIVATE KEY");
    (dashes >= 4).then_some(Armour { begins, private, end: start + at + dashes })
}

/// Returns the length of the plain or encoded space at the beginning of `text`; 0 if there is none.
fn separator(text: &[u8]) -> usize {
    let spaces: [&[u8]; 6] = [b" ", b"+", b"%20", b"&nbsp;", b"&#32;", b"\\u0020"];
    spaces.iter().find(|space| text.starts_with(space)).map_or(0, |space| space.len())
}

/// The result of a walk over the lines of a key.
struct Body {
    /// Where the first line begins.
    start: usize,
    /// Where the key ends, including its last line if it has one; `None` if there is no key.
    end: Option<usize>,
}

/// Walks over the lines of a key, beginning at `start`. At most `gap` other bytes may come before the first line of
/// base64.
fn body(text: &[u8], start: usize, gap: usize) -> Body {
    let mut at = start;
    // In case the last line of the key is missing, `end` is the end of the key so far, and `letters` is its number of
    // letters. In case the last line follows, these are `last` and `likely`.
    let (mut end, mut letters) = (start, 0);
    let (mut last, mut likely) = (start, 0);
    // The beginning of the first line, and the length of the line before `at`.
    let (mut first, mut length) = (None, 0);
    let mut previous = start..start;
    // Whether there is only decoration between `end` and `at`.
    let mut adjacent = true;
    let mut whole = None;
    let near = |at, last: usize, end, letters, adjacent| {
        let reach = if letters < LINE { gap } else { REACH };
        at - last.max(end) <= GAP && (adjacent || at - end <= reach)
    };
    while at < text.len() && near(at, last, end, letters, adjacent) {
        let run = run(text, at);
        if run.letters == 0 {
            if text[at] == b'-' && text[at..].starts_with(b"----") {
                match armour(text, at) {
                    Some(armour) if armour.begins => break,
                    Some(armour) => {
                        whole = armour.private.then_some(armour.end);
                        break;
                    }
                    None => at += text[at..].iter().take_while(|b| **b == b'-').count(),
                }
                continue;
            }
            let set = decoration(&text[at..]);
            adjacent &= set.is_some();
            at += set.unwrap_or(1);
            continue;
        }
        let word = &text[at..run.end];
        if word == b"Private" && [&b"-MAC"[..], b"-Hash"].iter().any(|name| text[run.end..].starts_with(name))
        {
            whole = Some(last.max(end));
            break;
        }
        let long = run.letters >= LONG && !is_other(word);
        let random = is_line(word);
        let as_long = first.is_none() || run.letters >= LINE && run.letters == length;
        if random {
            last = run.end;
            length = run.letters;
            likely += run.letters;
        }
        if long && adjacent || random && as_long {
            first.get_or_insert(at);
            length = run.letters;
            letters += run.letters;
            previous = at..run.end;
            end = run.end;
            adjacent = true;
        } else if let Some(header) = header(text, at, letters).filter(|_| adjacent) {
            at = header;
            continue;
        } else if adjacent && (line_number(text, at, run.end - at) || word.iter().all(|b| b"+/=".contains(b)))
        {
            // The run belongs to the decoration, or to a last line that begins with `=`.
        } else if letters > 0
            && (adjacent && closes_line(text, run.end) && follows_line(text, end, at)
                || continues(text, &previous, &(at..run.end)))
        {
            letters += run.letters;
            end = run.end;
            adjacent = true;
        } else {
            adjacent = false;
        }
        at = run.end;
    }
    let found = letters.max(likely) >= 2 * LONG;
    let end = if letters >= 2 * LONG { Some(end) } else { None };
    Body { start: first.unwrap_or(start), end: whole.filter(|_| found).or(end) }
}

/// Returns the beginning of the body of a key. The first line of the key is missing, and its last line begins at
/// `end`.
fn lines_before(text: &[u8], end: usize, floor: usize) -> Option<usize> {
    let mut at = end;
    let mut first = None;
    let mut length = None;
    let mut gap = 0;
    while at > floor && gap <= GAP / 4 {
        if !is_base64(text[at - 1]) {
            // Another block ends here.
            if text[..at].ends_with(b"----") && gap > 4 {
                break;
            }
            at -= 1;
            gap += 1;
            continue;
        }
        let count = text[floor..at].iter().rev().take_while(|b| is_base64(**b)).count();
        let start = at - count;
        // The `n` of an escaped line end doesn't belong to the line.
        let escape = usize::from(start > 0 && text[start - 1] == b'\\' && b"nrt".contains(&text[start]));
        let word = &text[start + escape..at];
        if is_line(word) && word.len() >= LINE && length.is_none_or(|length| length == word.len()) {
            // The last line may be shorter than the others.
            if first.is_some() {
                length = Some(word.len());
            }
            first = Some(start + escape);
            gap = 0;
        } else if first.is_none() && is_line(word) {
            first = Some(start + escape);
            gap = 0;
        } else {
            gap += count;
        }
        at = start;
    }
    first.filter(|first| end - first >= LINE)
}

/// A run of base64.
struct Run {
    end: usize,
    /// The number of base64 characters in the run. This number is smaller than the number of bytes if some characters
    /// are escaped, such as `+` as `%2B`.
    letters: usize,
}

/// Returns the run of base64 that begins at `at`.
fn run(text: &[u8], at: usize) -> Run {
    let mut run = Run { end: at, letters: 0 };
    while let Some(&byte) = text.get(run.end) {
        let length = if is_base64(byte) { 1 } else { encoded(&text[run.end..]) };
        if length == 0 {
            break;
        }
        run.end += length;
        run.letters += 1;
    }
    run
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// Returns the length of the `+`, `/` or `=` at the beginning of `text` that is encoded as in JSON, a URL or HTML;
/// 0 if there is none.
fn encoded(text: &[u8]) -> usize {
    const FORMS: [&[u8]; 13] = [
        b"\\/", b"%2B", b"%2b", b"%2F", b"%2f", b"%3D", b"%3d", b"&#43;", b"&#47;", b"&#61;", b"&#x2B;",
        b"&#x2F;", b"&#x3D;",
    ];
    if !matches!(text[0], b'\\' | b'%' | b'&') {
        return 0;
    }
    FORMS.iter().find(|form| text.starts_with(form)).map_or(0, |form| form.len())
}

/// Returns whether `word` is a long word, a lower-case path or a hash.
fn is_other(word: &[u8]) -> bool {
    let word_or_path = |b: &u8| b.is_ascii_lowercase() || *b == b'/';
    word.len() <= 20 && word.iter().all(u8::is_ascii_alphabetic)
        || word.iter().all(word_or_path)
        || word.iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether `word` looks like a line of a key and not like a path, a name or a hash.
fn is_line(word: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| usize::from(word.iter().any(kind));
    let kinds = has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_digit)
        + usize::from(word.iter().any(|b| b"+/".contains(b)));
    kinds >= 3 && word.len() >= LONG && looks_random(word, LONG) && !word.iter().all(u8::is_ascii_hexdigit)
}

/// Returns the length of the decoration at the beginning of `text`, such as a quote or a line end; `None` if there
/// is none.
fn decoration(text: &[u8]) -> Option<usize> {
    const TAGS: [&[u8]; 12] = [
        b"%0A", b"%0a", b"%0D", b"%0d", b"<br>", b"<br/>", b"<br />", b"&#10;", b"&#13;", b"&#xA;", b"&#xD;",
        b"&quot;",
    ];
    match text[0] {
        b'\\' => Some(if matches!(text.get(1), Some(b'n' | b'r' | b't')) { 2 } else { 1 }),
        b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b',' | b'>' | b'#' | b'*' | b'|' | b'-'
        | b':' | b'.' | b';' | b'[' | b']' | b'$' | b'(' | b')' => Some(1),
        b'%' | b'<' | b'&' => TAGS.iter().find(|tag| text.starts_with(tag)).map(|tag| tag.len()),
        0x1b => {
            let parameters =
                text.iter().skip(2).take(24).take_while(|b| b.is_ascii_digit() || **b == b';').count();
            Some(if text.get(1) == Some(&b'[') { text.len().min(3 + parameters) } else { 1 })
        }
        // Some tools print an arrow or a bar after line numbers.
        _ if text.starts_with("→".as_bytes()) || text.starts_with("│".as_bytes()) => Some(3),
        _ => None,
    }
}

/// Returns the end of the header line that begins at `at`. Returns `None` if no header line begins there, or if the
/// body has already begun.
fn header(text: &[u8], at: usize, letters: usize) -> Option<usize> {
    const NAMES: [&[u8]; 6] = [b"Proc-Type", b"DEK-Info", b"Version", b"Comment", b"Hash", b"Charset"];
    let name = NAMES.iter().find(|name| letters == 0 && text[at..].starts_with(name))?;
    let line = &text[at..text.len().min(at + 200)];
    let colon = line.get(name.len()) == Some(&b':');
    let end = line.iter().position(|b| matches!(b, b'\n' | b'\\' | b'"'))?;
    colon.then_some(at + end)
}

/// Returns whether the bytes at `at` are a line number of `run` digits.
fn line_number(text: &[u8], at: usize, run: usize) -> bool {
    let next = &text[at + run..];
    let set_off = matches!(next.first(), Some(b'\t' | b':' | b'|')) || next.starts_with("→".as_bytes());
    run <= 6 && set_off && text[at..at + run].iter().all(u8::is_ascii_digit)
}

/// Returns whether a line, or the string that holds it, ends at `at`.
fn closes_line(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\' | b'-') => true,
        Some(b' ' | b'\t') => {
            text[at..].iter().find(|b| !matches!(b, b' ' | b'\t')).is_none_or(|b| *b == b'\n')
        }
        _ => false,
    }
}

/// Returns whether the bytes between `end` and `at` are only decoration with exactly one line end.
fn follows_line(text: &[u8], end: usize, at: usize) -> bool {
    let between = &text[end..at];
    let lines = between.iter().filter(|b| **b == b'\n').count();
    let escaped = between.windows(2).filter(|pair| pair == b"\\n").count();
    lines + escaped == 1
        && !between.iter().any(|b| is_word(*b) && !b.is_ascii_digit() && *b != b'n' && *b != b'r')
}

/// Returns whether `line` continues a key after the line `previous`: it is not longer and has the same prefix and
/// suffix.
fn continues(text: &[u8], previous: &Range<usize>, line: &Range<usize>) -> bool {
    if line.start - previous.end > 2 * PREFIX || line.len() > previous.len() || line.len() < 4 {
        return false;
    }
    let before = &text[..previous.start];
    let before = &before[before.len().saturating_sub(PREFIX)..];
    let before = &before[before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)..];
    let between = &text[previous.end..line.start];
    let Some(end) = between.iter().position(|b| *b == b'\n') else { return false };
    let (suffix, prefix) = (&between[..end], &between[end + 1..]);
    let after = text[line.end..].iter().take(PREFIX).take_while(|b| **b != b'\n').count();
    // In prefixes, digits and letters change from line to line, but other characters don't.
    let alike = |one: &[u8], other: &[u8]| {
        let signs =
            |text: &[u8]| text.iter().copied().filter(|b| !b.is_ascii_alphanumeric()).collect::<Vec<_>>();
        signs(one) == signs(other)
    };
    prefix.len().abs_diff(before.len()) <= 8
        && prefix.len() + suffix.len() > 0
        && alike(prefix, before)
        && alike(suffix, &text[line.end..line.end + after])
}
