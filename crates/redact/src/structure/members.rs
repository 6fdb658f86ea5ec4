//! Reads the members of objects. This module reads lists of `{name, value}` pairs in any order and layout, attributes
//! of XML and HTML, and values one level below the name of a secret.

use std::ops::Range;

use super::is_secret;
use crate::edges::is_word;
use crate::shape::{bare, is_stated};

/// The maximum number of bytes that are read on either side of a name.
const REACH: usize = 400;

/// Names of the members that hold the name of a setting.
const LABELS: &[&[u8]] = &[
    b"name",
    b"key",
    b"variable",
    b"variablename",
    b"field",
    b"label",
    b"setting",
    b"property",
    b"option",
    b"parameterkey",
    b"optionname",
    b"envvar",
    b"k",
    b"id",
    b"attribute",
    b"param",
];

/// Names of the members that hold the value of a setting.
const VALUES: &[&[u8]] = &[
    b"value",
    b"val",
    b"v",
    b"default",
    b"defaultvalue",
    b"content",
    b"parametervalue",
    b"stringvalue",
    b"plaintext",
    b"secretvalue",
    b"current",
    b"initial",
    b"data",
    b"text",
];

/// Returns the value that belongs to the name at `name`. The value is the member `value` beside the name, or the value
/// below the name.
pub(super) fn member(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    if let Some(value) = next_argument(text, name) {
        return Some(value);
    }
    let quoted = |b: &u8| b"\"'\\`".contains(b);
    let open = name.start - text[..name.start].iter().rev().take(8).take_while(|b| quoted(b)).count();
    let sign = open - text[..open].iter().rev().take(12).take_while(|b| **b == b' ').count();
    let joined = sign > 0 && matches!(text[sign - 1], b':' | b'=');
    let region = if joined {
        let before = text[..sign - 1].iter().rev().take(12).take_while(|b| quoted(b) || **b == b' ').count();
        let end = sign - 1 - before;
        let label = text[..end].iter().rev().take(24).take_while(|b| is_word(**b)).count();
        let label = text[end - label..end].to_ascii_lowercase();
        let label: Vec<u8> = label.into_iter().filter(|b| *b != b'_').collect();
        if !LABELS.contains(&label.as_slice()) || !is_secret(&text[name.clone()]) {
            return None;
        }
        beside(text, name)
    } else {
        below(text, name)?
    };
    value(text, &region)
}

/// Returns the string after the string `name` among the arguments of a call or in a tuple, as in `("password", "…")`
/// and `("password".to_string(), "…")`.
fn next_argument(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    let quote = *text.get(name.end).filter(|b| b"\"'".contains(b))?;
    let first = name.start > 1
        && text[name.start - 1] == quote
        && text[..name.start - 1].trim_ascii_end().ends_with(b"(");
    if !first || !is_secret(&text[name.clone()]) {
        return None;
    }
    let mut at = name.end + 1;
    for wrap in [".to_string()", ".into()", ".to_owned()"] {
        at += if text[at..].starts_with(wrap.as_bytes()) { wrap.len() } else { 0 };
    }
    let signs = text[at..].iter().take(24).take_while(|b| b", \n\t\\".contains(b)).count();
    if !text[at..at + signs].contains(&b',') {
        return None;
    }
    at += signs;
    let open = *text.get(at).filter(|b| b"\"'`".contains(b))?;
    let run = text[at + 1..].iter().take(256).position(|b| *b == open || *b == b'\n')?;
    let range = at + 1..at + 1 + run;
    is_stated(&text[range.clone()]).then_some(range)
}

/// Returns the range of the object, the tag or the item of a list that contains `name`.
fn beside(text: &[u8], name: &Range<usize>) -> Range<usize> {
    let bounds = |b: &u8| b"{}<".contains(b);
    let mut start =
        name.start - text[..name.start].iter().rev().take(REACH).take_while(|b| !bounds(b)).count();
    let end = name.end + text[name.end..].iter().take(REACH).take_while(|b| !b"{}".contains(b)).count();
    // In YAML, an item of a list begins at a dash, and a blank line ends it.
    let mut end = end;
    let begins = |at: usize| text[at..].iter().find(|b| **b != b' ').is_some_and(|b| *b == b'-');
    let mut at = name.start;
    while let Some(back) = text[start..at].iter().rposition(|b| *b == b'\n') {
        let line = start + back + 1;
        if begins(line) || text[line..at].trim_ascii().is_empty() && at < name.start {
            start = line;
            break;
        }
        at = start + back;
    }
    let mut at = name.end;
    while let Some(next) = text[at..end].iter().position(|b| *b == b'\n') {
        let line = at + next + 1;
        let rest = &text[line..end];
        let blank = rest.iter().take_while(|b| **b == b' ').count();
        if begins(line) || rest.get(blank) == Some(&b'\n') || rest.starts_with(b"</") {
            end = line;
            break;
        }
        at = line;
    }
    start..end
}

/// Returns the object or the indented block that belongs to `name`, as in `"password": {…}`, `variable "password" {…}`,
/// or `password:` with indented lines.
fn below(text: &[u8], name: &Range<usize>) -> Option<Range<usize>> {
    let run = text[name.end..].iter().take(12).take_while(|b| b"\"'\\ :=".contains(b)).count();
    let at = name.end + run;
    match text.get(at)? {
        b'{' if is_secret(&text[name.clone()]) => {
            let end = at + 1 + text[at + 1..].iter().take(REACH).take_while(|b| !b"{}".contains(b)).count();
            Some(at + 1..end)
        }
        b'\n' if text[name.end..at].ends_with(b":") && is_secret(&text[name.clone()]) => {
            let start =
                name.start - text[..name.start].iter().rev().take(40).position(|b| *b == b'\n').unwrap_or(0);
            let margin = text[start..name.start].iter().take_while(|b| b" -\"'".contains(b)).count();
            let mut end = at + 1;
            while end < text.len() && end - at < REACH {
                let indent = text[end..].iter().take(80).take_while(|b| **b == b' ').count();
                if indent <= margin {
                    break;
                }
                end += text[end..]
                    .iter()
                    .take(REACH)
                    .position(|b| *b == b'\n')
                    .map_or(text.len() - end, |line| line + 1);
            }
            let only = bare(text, at + 1..end.max(at + 1));
            let plain = !text[only.clone()].iter().any(|b| b.is_ascii_whitespace() || *b == b':');
            if plain && is_stated(&text[only.clone()]) {
                return Some(only);
            }
            Some(at + 1..end)
        }
        _ => None,
    }
}

/// Returns the value of a member with one of the names [`VALUES`] within `region`. If `region` contains no names,
/// returns `region`.
pub(super) fn value(text: &[u8], region: &Range<usize>) -> Option<Range<usize>> {
    if !text[region.clone()].iter().any(|b| b":=>".contains(b)) {
        return Some(region.clone()).filter(|range| is_stated(&text[range.clone()]));
    }
    let mut at = region.start;
    while at < region.end {
        if !text[at].is_ascii_alphabetic() {
            at += 1;
            continue;
        }
        let start = at;
        at += text[at..region.end].iter().take_while(|b| is_word(**b)).count().max(1);
        let word: Vec<u8> =
            text[start..at].iter().filter(|b| **b != b'_').map(u8::to_ascii_lowercase).collect();
        if !VALUES.contains(&word.as_slice()) {
            continue;
        }
        let signs = text[at..region.end].iter().take(24).take_while(|b| b"\"'\\:=> ".contains(b)).count();
        let sign = &text[at..at + signs];
        let element = start > 0 && text[start - 1] == b'<' && sign.contains(&b'>');
        if !element && !sign.iter().any(|b| b":=".contains(b)) {
            continue;
        }
        let from = at + signs;
        let quote = sign.iter().rev().find(|b| !b" \\".contains(b)).copied().filter(|b| b"\"'".contains(b));
        let ends = |b: &u8| match quote {
            Some(quote) => *b == quote || *b == b'\\' || *b == b'\n',
            None => b"\n\r,<>}\" ".contains(b),
        };
        let run = text[from..].iter().take(512).position(ends).unwrap_or(text.len().min(from + 512) - from);
        let range = from..from + run;
        if is_stated(&text[range.clone()]) {
            return Some(range);
        }
    }
    None
}
