//! Finds the end of a value.
//!
//! In code and JSON, a value ends at a quote, which may be escaped. In a settings file, values may contain any
//! character, so a value ends at the end of the line. Elsewhere, a value ends at a space, a semicolon or an `&`. Only a
//! bounded number of bytes is read (see `LONGEST`).

use std::ops::Range;

use super::joint::Joint;
use crate::edges::is_word;
use crate::form::{is_generated, is_stand_in};
use crate::template::is_call;

/// The maximum number of bytes of an unquoted value. A quoted value may have four times as many.
const LONGEST: usize = 320;

/// The maximum number of bytes of a value that has only letters, digits and the signs of base64 and of tokens. Such a
/// value can't contain another name with a value, so each byte is read only a few times.
pub(super) const LONGER: usize = 8192;

/// For each of the 256 byte values, whether a run of bytes ends before such a byte. A table is used for speed, because
/// a run is read after each name of a secret.
pub(super) struct Ends([bool; 256]);

impl Ends {
    /// Returns the table in which a run ends at each of `signs` and at each byte that is not printable ASCII.
    pub(super) const fn at(signs: &[u8]) -> Ends {
        let mut ends = [true; 256];
        let mut byte = b'!';
        while byte <= b'~' {
            ends[byte as usize] = false;
            byte += 1;
        }
        let mut place = 0;
        while place < signs.len() {
            ends[signs[place] as usize] = true;
            place += 1;
        }
        Ends(ends)
    }

    /// Returns the length of the run at the beginning of `text`, or `most` if the run is longer.
    pub(super) fn run(&self, text: &[u8], most: usize) -> usize {
        text.iter().take(most).position(|b| self.0[usize::from(*b)]).unwrap_or(text.len().min(most))
    }
}

/// The table in which a run ends at each byte that is not printable ASCII.
pub(super) static BLANKS: Ends = Ends::at(b"");
static QUOTES: Ends = Ends::at(b"\"'`\\");
static PLAIN: Ends = Ends::at(b"\"'`,;&<>()[]{}|\\=");
static WORDS: Ends = Ends::at(b"\"'`\\<>(){}[]|");
static PAIRS: Ends = Ends::at(b"\"'`;<>\\");
static MARKUP: Ends = Ends::at(b"<");
static TOKENS: Ends = Ends::at(b"\"'`,;&<>()[]{}|\\=!#$%*:?@^");

/// Returns the value that begins at `at`, and whether it is quoted.
pub(super) fn opened(text: &[u8], at: usize, joint: Joint) -> Option<(Range<usize>, bool)> {
    let at = if text[at.min(text.len())..].starts_with(b"new ") { at + 4 } else { at };
    // The string literal may have a prefix, or be the argument of a call.
    let prefix =
        text[at.min(text.len())..].iter().take(2).take_while(|b| b"bBrRfFuULNsS@$&<".contains(b)).count();
    if let Some(range) = quoted(text, at + prefix).or_else(|| quoted(text, at)) {
        return Some((range, true));
    }
    let name = text[at..].iter().take(48).take_while(|b| is_word(**b) || b".:![]".contains(b)).count();
    if name > 0 && text[at + name - 1] != b'[' && matches!(text.get(at + name), Some(b'(' | b'{')) {
        let mut inner = at + name + 1;
        // The string may be wrapped, as in `[]byte("…")`, `byte[] {"…"}` and `String(b"…")`.
        inner += text[inner..].iter().take(2).take_while(|b| matches!(b, b'&' | b'b' | b'@')).count();
        if let Some(range) = quoted(text, inner) {
            return Some((range, true));
        }
        // A bracket without a quote after it may belong to a generated password.
        return (text[at + name] == b'(')
            .then(|| generated_run(text, at))
            .flatten()
            .map(|range| (range, false));
    }
    let entity: &[u8] = b"&quot;";
    let at = if text[at..].starts_with(entity) {
        let inner = at + entity.len();
        let closing = text[inner..].iter().take(LONGEST).take_while(|b| **b != b'\n' && **b != b'&').count();
        if text[inner + closing..].starts_with(entity) {
            return Some((inner..inner + closing, true));
        }
        inner
    } else if text[at..].starts_with(b"%22") {
        at + 3
    } else {
        at
    };
    if joint == Joint::Flag && text.get(at) == Some(&b'-') {
        return None;
    }
    Some((plain(text, at), false))
}

/// Returns the text within the quotes that open at `at`. The quotes may be escaped.
///
/// The quotes of a nested string have one, three or seven backslashes, depending on the depth of nesting.
fn quoted(text: &[u8], at: usize) -> Option<Range<usize>> {
    let escapes = text.get(at..)?.iter().take(8).take_while(|b| **b == b'\\').count();
    let quote = *text.get(at + escapes).filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
    let mut start = at + escapes + 1;
    let triple = text[start..].starts_with(&[quote, quote]);
    if triple {
        start += 2;
    }
    let (mut slashes, mut escaped) = (0, None);
    let mut bytes = text.iter().enumerate().skip(start).take(4 * LONGEST).peekable();
    while let Some((place, &byte)) = bytes.next() {
        if byte == quote {
            let doubled = escapes == 0 && !triple && quote != b'`' && place > start;
            if doubled && slashes == 0 && is_doubled(text, place, quote) {
                bytes.next();
            } else if slashes < escapes {
                return Some(start..place - slashes.min(place - start));
            } else if slashes % (2 * (escapes + 1)) == escapes {
                return Some(start..place - escapes.min(place - start));
            } else {
                escaped = Some(place);
            }
        }
        if byte == b'\n' {
            break;
        }
        slashes = if byte == b'\\' { slashes + 1 } else { 0 };
    }
    // In some languages a backslash escapes nothing; there, the last quote of the line ends the value.
    let ends = |place: &usize| text.get(place + 1).is_none_or(|b| b"\n\r,;)}] ".contains(b));
    if let Some(place) = escaped.filter(ends)
        && escapes == 0
    {
        return Some(start..place);
    }
    let run = plain(text, start);
    (!run.is_empty()).then_some(run)
}

/// Returns whether the quote at `place` is escaped by being doubled.
fn is_doubled(text: &[u8], place: usize, quote: u8) -> bool {
    let rest = &text[place + 1..];
    rest.first() == Some(&quote)
        && rest.get(1).is_some_and(|b| b.is_ascii_graphic() && !b",;:)}]+.".contains(b))
        && rest[1..].iter().take(128).take_while(|b| **b != b'\n').any(|b| *b == quote)
}

/// Returns the run of printable characters at `at`, including brackets, if it looks like a generated password.
///
/// A closing bracket at the end of the run is left out if the run has no opening bracket of its kind.
pub(super) fn generated_run(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let run = QUOTES.run(rest, 129);
    if !(10..=128).contains(&run) {
        return None;
    }
    // In text that is escaped for HTML or a URL, the value ends at an escape such as `&quot;` or `%26`.
    let code = |place: &usize| {
        b"&%".contains(&rest[*place])
            && ESCAPES.iter().any(|code| rest[*place..].starts_with(code.as_bytes()))
    };
    let mut end = at + (0..run).find(code).unwrap_or(run);
    while end > at && b",;:.&|".contains(&text[end - 1]) {
        end -= 1;
    }
    let whole = &text[at..end];
    let closers = [(b'(', b')'), (b'[', b']'), (b'{', b'}'), (b'<', b'>')];
    let surplus = closers.iter().find(|(open, close)| whole.last() == Some(close) && !whole.contains(open));
    end -= usize::from(surplus.is_some());
    let value = &text[at..end];
    // If the run contains code or a second pair of name and value, it extends beyond the value.
    let pairs = [&b"&&"[..], b"||", b"->", b"::", b"=>", b"==", b"</", b"${", b"$("];
    let code = pairs.iter().any(|pair| value.windows(2).any(|window| window == *pair))
        || value
            .windows(2)
            .any(|pair| b"&;,".contains(&pair[0]) && pair[1].is_ascii_alphabetic() && next_pair(value));
    (is_generated(value, 10) && !code && !is_call(value)).then_some(at..end)
}

/// Quotes, separators and spaces in the forms in which HTML and URLs escape them.
const ESCAPES: &[&str] = &["&quot;", "&#39;", "&#34;", "&apos;", "%26", "%22", "%20", "%2C", "%0A", "%27"];

/// Returns whether `value` contains `&name=`, `;name=` or `,name:`.
fn next_pair(value: &[u8]) -> bool {
    value.split(|b| b"&;,".contains(b)).skip(1).any(|part| {
        let name = part.iter().take_while(|b| is_word(**b) || **b == b'-').count();
        name > 0 && matches!(part.get(name), Some(b'=' | b':'))
    })
}

/// Returns the unquoted value that begins at `start`.
pub(super) fn plain(text: &[u8], start: usize) -> Range<usize> {
    let most = PLAIN.run(&text[start..], LONGEST + 1);
    if most > LONGEST {
        return long(text, start).unwrap_or(start..start + most);
    }
    let code = |place: &usize| {
        let rest = &text[start + place..];
        rest[0] == b'%'
            && ["%26", "%22", "%20", "%2C", "%0A"].iter().any(|code| rest.starts_with(code.as_bytes()))
    };
    let mut end = start + (0..most).find(code).unwrap_or(most);
    let padding = text[end..].iter().take(2).take_while(|b| **b == b'=').count();
    if end > start && !text.get(end + padding).is_some_and(|b| is_word(*b) || *b == b'=') {
        end += padding;
    }
    while end > start
        && b".:!?*".contains(&text[end - 1])
        && text.get(end).is_none_or(|b| b" \n\r*".contains(b))
        && !is_part(text, start..end)
    {
        end -= 1;
    }
    start..end
}

/// Returns the value of more than [`LONGEST`] bytes that begins at `start`, with its padding.
fn long(text: &[u8], start: usize) -> Option<Range<usize>> {
    let end = start + TOKENS.run(&text[start..], LONGER + 1);
    let padding = text[end..].iter().take(2).take_while(|b| **b == b'=').count();
    let range = start..end + padding;
    ((LONGEST + 1..=LONGER).contains(&(end - start)) && is_whole(text, &range)).then_some(range)
}

/// Returns whether the unquoted value at `range` is complete, that is, not just the beginning of a longer value.
pub(super) fn is_whole(text: &[u8], range: &Range<usize>) -> bool {
    range.len() <= LONGEST
        || text.get(range.end).is_none_or(|b| PLAIN.0[usize::from(*b)] && *b != b'=')
            && TOKENS.run(&text[range.start..range.end], LONGER + 1) + 2 >= range.len()
}

/// Returns the end of a value in prose or after a flag. The value ends before the next space or before the
/// punctuation of the sentence.
pub(super) fn word_end(text: &[u8], range: &Range<usize>) -> usize {
    let mut end = range.end + WORDS.run(&text[range.end..], 128);
    while end > range.end && b".,;:!?".contains(&text[end - 1]) && !is_part(text, range.start..end) {
        end -= 1;
    }
    end
}

/// Returns whether the `!` at the end of `range` belongs to the value: the sentence goes on after the `!`, as in `…
/// Xk92! and`, or the line ends after it.
fn is_part(text: &[u8], range: Range<usize>) -> bool {
    let value = &text[range.start..range.end - 1];
    let goes_on = match text.get(range.end) {
        Some(b' ') => text.get(range.end + 1).is_some_and(u8::is_ascii_lowercase),
        Some(byte) => value.len() >= 8 && b"\r\n\"'`*".contains(byte),
        None => value.len() >= 8,
    };
    text[range.end - 1] == b'!' && goes_on && value.iter().any(u8::is_ascii_digit) && !is_stand_in(value)
}

/// Returns the end of a value that may extend beyond `range`. The value may extend to the end of a line of settings, to
/// the next semicolon, or to the next tag. Also returns whether the value is the rest of a line of settings.
pub(super) fn loose_end(text: &[u8], range: &Range<usize>) -> (usize, bool) {
    let next = text.get(range.end).copied().unwrap_or(b'\n');
    if b"\"'`\\ \t".contains(&next) {
        return (range.end, false);
    }
    let run = |ends: &Ends| range.end + ends.run(&text[range.end..], 128);
    let lead = Lead::of(text, range.start);
    let pairs = lead.tight && {
        let end =
            text[range.end..].iter().take(64).position(|b| *b == b';' || !b.is_ascii_graphic()).unwrap_or(64);
        let rest = text.get(range.end + end..).unwrap_or_default();
        let key = rest.iter().skip(1).take(30).take_while(|b| b.is_ascii_alphabetic() || **b == b' ').count();
        lead.line.trim_ascii_end().ends_with(b";")
            || rest.first() == Some(&b';') && key > 2 && rest.get(1 + key) == Some(&b'=')
    };
    if pairs {
        return (run(&PAIRS), false);
    }
    if range.start > 0 && text[range.start - 1] == b'>' {
        let end = run(&MARKUP);
        return (if text[end..].starts_with(b"</") { end } else { range.end }, false);
    }
    if lead.sets {
        let end = run(&QUOTES);
        let value = &text[range.start..end];
        let code =
            value.iter().any(|b| b"(){}[]<>".contains(b)) || value.ends_with(b",") || value.ends_with(b";");
        if !code && text.get(end).is_none_or(|b| matches!(b, b'\n' | b'\r')) {
            return (end, true);
        }
    }
    (range.end, false)
}

/// Returns the rest of a line of settings from `start` on, if it looks like a generated password. The password may
/// have any printable characters.
pub(super) fn setting(text: &[u8], start: usize) -> Option<Range<usize>> {
    let run = BLANKS.run(&text[start..], 257);
    let value = &text[start..start + run];
    if !(8..=256).contains(&run) || matches!(value[0], b'"' | b'\'' | b'`') || !Lead::of(text, start).sets {
        return None;
    }
    // A string with a prefix, such as `b"…"` or `@"…"`, is not such a password.
    if value.iter().take(3).any(|b| matches!(b, b'"' | b'\''))
        && value[0].is_ascii_alphabetic() | b"@<".contains(&value[0])
    {
        return None;
    }
    let rest = &text[start + run..];
    let spaces = rest.iter().take(8).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let ends = rest.get(spaces).is_none_or(|b| matches!(b, b'\n' | b'\r') || *b == b'#' && spaces > 0);
    (ends && is_generated(value, 8) && !is_call(value)).then_some(start..start + run)
}

/// The part of a line before an assigned value.
struct Lead<'t> {
    /// The text before the name.
    line: &'t [u8],
    /// Whether the sign between name and value has no space beside it.
    tight: bool,
    /// Whether the name begins the line, or only one of [`LINES`] comes before it.
    sets: bool,
}

impl Lead<'_> {
    /// Returns the part of the line that precedes the value at `start`. Reads at most 96 bytes.
    fn of(text: &[u8], start: usize) -> Lead<'_> {
        let before = &text[start.saturating_sub(96)..start];
        let line = &before[before.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
        let starts = line.len() < before.len() || start < 96;
        let sign = line.iter().rposition(|b| !b" =:\t".contains(b)).map_or(0, |place| place + 1);
        let name = line[..sign]
            .iter()
            .rposition(|b| !is_word(*b) && !b"-.".contains(b) && b.is_ascii())
            .map_or(0, |place| place + 1);
        let lead = &line[..name.min(sign)];
        let signed = lead.trim_ascii_start();
        let signed = signed.strip_prefix(b"+").or(signed.strip_prefix(b"-")).unwrap_or(signed).trim_ascii();
        let sets = starts && LINES.iter().any(|begin| signed == begin.as_bytes());
        Lead { line: lead, tight: sign + 1 == line.len(), sets }
    }
}

/// Words and signs that may begin a line of settings.
const LINES: &[&str] =
    &["", "export", "ENV", "ARG", "set", "-", "-e", "#", "//", "$env", "setenv", "Environment"];
