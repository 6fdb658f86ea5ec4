//! Finds secrets that are identified by the document around them, such as a Kubernetes `Secret` or a key in JSON (JWK).

use std::ops::Range;

use crate::form::{is_stand_in, is_template};

/// The maximum number of bytes of a document that are read in each direction from the word that names its kind.
const REACH: usize = 64 * 1024;

/// The maximum number of columns by which a field of a manifest may be indented.
const COLUMN: usize = 200;

/// Returns the values of `data` and `stringData` in the manifest whose `kind: Secret` is at `hit`, and where
/// reading stopped.
///
/// The manifest begins no earlier than `floor`.
pub(crate) fn manifest(text: &[u8], hit: &Range<usize>, floor: usize) -> (Vec<Range<usize>>, usize) {
    let mut found = Vec::new();
    if text.get(hit.end).is_some_and(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b)) {
        return (found, hit.end);
    }
    let floor = floor.max(hit.start.saturating_sub(REACH));
    let limit = text.len().min(hit.end + REACH);
    let end = if text[hit.clone()].starts_with(b"kind:") {
        in_yaml(text, hit.start, floor, limit, &mut found)
    } else {
        in_json(text, hit, floor, limit, &mut found)
    };
    (found, end)
}

/// A line of YAML.
#[derive(Clone)]
struct Line {
    range: Range<usize>,
    /// The column of the first byte after the indentation. If the line begins an item of a list, the column of the
    /// first byte after the dash.
    column: usize,
    /// Whether the line begins an item of a list.
    item: bool,
}

fn line(text: &[u8], start: usize, limit: usize) -> Line {
    let length = text[start..limit].iter().position(|b| *b == b'\n').unwrap_or(limit - start);
    let line = &text[start..start + length];
    let spaces = line.iter().take_while(|b| **b == b' ').count();
    let item = line[spaces..].starts_with(b"- ");
    let column =
        spaces + if item { 1 + line[spaces + 1..].iter().take_while(|b| **b == b' ').count() } else { 0 };
    Line { range: start..start + length, column, item }
}

fn in_yaml(text: &[u8], kind: usize, floor: usize, limit: usize, found: &mut Vec<Range<usize>>) -> usize {
    let before = &text[kind.saturating_sub(COLUMN)..kind];
    let start = before.iter().rposition(|b| *b == b'\n').map(|at| kind - before.len() + at + 1);
    let Some(start) = start.or((kind < COLUMN).then_some(0)).filter(|start| *start >= floor) else {
        return kind + 1;
    };
    let own = line(text, start, limit);
    if start + own.column != kind {
        return kind + 1;
    }
    let same = |other: &Line| other.column == own.column;
    let content =
        |line: &Line| text[line.range.start + line.column.min(line.range.len())..line.range.end].trim_ascii();
    // `kubectl get` writes the fields in alphabetical order, so `data` comes before `kind`.
    let mut first = start;
    let mut whole = own.item;
    while first > floor && !whole {
        let before = first - 1;
        let begin = before - text[floor..before].iter().rev().take_while(|b| **b != b'\n').count();
        let other = line(text, begin, before);
        let empty = content(&other).is_empty();
        if content(&other).starts_with(b"---")
            || !empty && other.column < own.column
            || same(&other) && content(&other).starts_with(b"kind:")
        {
            break;
        }
        first = begin;
        whole = same(&other) && other.item && !empty;
    }
    let mut at = first;
    let mut block = false;
    while at < limit {
        let this = line(text, at, limit);
        at = this.range.end + 1;
        let content = content(&this);
        if content.is_empty() || content.starts_with(b"#") {
            continue;
        }
        if this.range.start > start
            && (content.starts_with(b"---")
                || this.column < own.column
                || same(&this) && (this.item || content.starts_with(b"kind:")))
        {
            return this.range.start;
        }
        if this.column <= own.column {
            block = same(&this) && (content == b"data:" || content == b"stringData:");
        } else if block {
            at = entry(text, &this, limit, found);
        }
    }
    at.min(limit)
}

/// Finds the value of the map entry that begins on the line `first`. Returns the beginning of the line after the entry.
fn entry(text: &[u8], first: &Line, limit: usize, found: &mut Vec<Range<usize>>) -> usize {
    let next = first.range.end + 1;
    let entry = &text[first.range.clone()];
    let Some(colon) = entry
        .windows(2)
        .position(|pair| pair == b": ")
        .or(entry.trim_ascii_end().strip_suffix(b":").map(<[u8]>::len))
    else {
        return next;
    };
    let value = entry[colon + 1..].trim_ascii();
    let start = first.range.end - entry[colon + 1..].trim_ascii_start().len();
    if !value.is_empty() && !matches!(value[0], b'|' | b'>') {
        let quoted = value.len() > 1 && matches!(value[0], b'"' | b'\'') && value.last() == value.first();
        let inner = usize::from(quoted);
        push(text, start + inner..start + value.len() - inner, found);
        return next;
    }
    // The value is a block of lines, each indented further than the entry.
    let (mut begin, mut end, mut at) = (None, next, next);
    while at < limit {
        let line = line(text, at, limit);
        let content = text[line.range.clone()].trim_ascii();
        if !content.is_empty() {
            let spaces = text[line.range.clone()].iter().take_while(|b| **b == b' ').count();
            if spaces <= first.column {
                break;
            }
            begin.get_or_insert(line.range.start + spaces);
            end = line.range.start + text[line.range.clone()].trim_ascii_end().len();
        }
        at = line.range.end + 1;
    }
    if let Some(begin) = begin {
        push(text, begin..end, found);
    }
    at.min(limit)
}

fn push(text: &[u8], range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let value = &text[range.clone()];
    let open = value.len() < 4
        || is_template(value)
        || value.contains(&b'<')
        || value.len() < 40 && is_stand_in(value);
    // A value that begins with a mark was replaced before.
    if !open && !value.starts_with(crate::mark::MARK.as_bytes()) {
        found.push(range);
    }
}

fn in_json(
    text: &[u8],
    hit: &Range<usize>,
    floor: usize,
    limit: usize,
    found: &mut Vec<Range<usize>>,
) -> usize {
    const NAMES: [&[u8]; 2] = [b"data", b"stringData"];
    // Looks at the members of the object that has `kind` as a member.
    let open = outward(text, hit.start, floor);
    let mut at = open;
    let mut depth = 0;
    while at < limit {
        match text[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = string_end(text, at, limit);
                let mut name = &text[at + 1..end];
                while let Some(rest) = name.strip_suffix(b"\\") {
                    name = rest;
                }
                at = end;
                if depth == 1
                    && NAMES.contains(&name)
                    && follows(text, end + 1, limit, b"\\ \t\r\n:") == Some(b'{')
                {
                    at = strings(text, end + 1, limit, found);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Returns the beginning of the innermost object that contains `at`.
fn outward(text: &[u8], at: usize, floor: usize) -> usize {
    let mut depth = 0;
    for place in (floor..at).rev() {
        match text[place] {
            b'}' => depth += 1,
            b'{' if depth == 0 => return place,
            b'{' => depth -= 1,
            _ => {}
        }
    }
    floor
}

/// Finds the values of the flat object that begins after `at`. Returns where the object ends.
fn strings(text: &[u8], at: usize, limit: usize, found: &mut Vec<Range<usize>>) -> usize {
    let mut at = at;
    let mut value = false;
    while at < limit && text[at] != b'}' {
        match text[at] {
            b':' => value = true,
            b',' | b'{' => value = false,
            b'"' => {
                let end = string_end(text, at, limit);
                let mut string = at + 1..end;
                while string.end > string.start && text[string.end - 1] == b'\\' {
                    string.end -= 1;
                }
                if value {
                    push(text, string, found);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    (at + 1).min(limit)
}

/// Returns the end of the string whose opening quote is at `quote`. The quotes may be escaped.
fn string_end(text: &[u8], quote: usize, limit: usize) -> usize {
    let escapes = text[..quote].iter().rev().take(8).take_while(|b| **b == b'\\').count();
    let mut slashes = 0;
    for (place, byte) in text.iter().enumerate().take(limit).skip(quote + 1) {
        match byte {
            b'"' if slashes <= escapes => return place,
            b'\\' => slashes += 1,
            _ => slashes = 0,
        }
    }
    limit
}

/// Returns the first byte from `at` on that is not in `skipped`.
fn follows(text: &[u8], at: usize, limit: usize, skipped: &[u8]) -> Option<u8> {
    text[at.min(limit)..limit].iter().take(40).copied().find(|b| !skipped.contains(b))
}

/// Returns the private members of the JSON Web Key whose `kty` is at `hit`, and where reading stopped.
pub(crate) fn jwk(text: &[u8], hit: &Range<usize>, floor: usize) -> (Vec<Range<usize>>, usize) {
    const PRIVATE: [&[u8]; 9] = [b"d", b"k", b"p", b"q", b"dp", b"dq", b"qi", b"r", b"t"];
    const KEY: usize = 8 * 1024;
    let mut found = Vec::new();
    let floor = floor.max(hit.start.saturating_sub(KEY));
    let limit = text.len().min(hit.end + KEY);
    let mut at =
        (floor..hit.start).rev().find(|at| matches!(text[*at], b'{' | b'}')).map_or(floor, |at| at + 1);
    while at < limit && text[at] != b'}' {
        if !(text[at].is_ascii_alphanumeric() || b"_-".contains(&text[at])) {
            at += 1;
            continue;
        }
        let name =
            text[at..limit].iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b)).count();
        let end = at + name;
        let signs = text[end..limit].iter().take(12).take_while(|b| b"\\\"' :=>".contains(b)).count();
        let value = end + signs;
        let joined =
            text[end..value].iter().any(|b| matches!(b, b':' | b'=')) && !text[end..value].ends_with(b":");
        if joined && PRIVATE.contains(&&text[at..end]) {
            let length = text[value..limit]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || b"_-+/=".contains(b))
                .count();
            if length >= 16 && !is_stand_in(&text[value..value + length]) {
                found.push(value..value + length);
            }
            at = value + length;
        } else {
            at = end;
        }
    }
    (found, at)
}
