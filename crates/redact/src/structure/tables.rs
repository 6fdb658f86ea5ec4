//! Reads tables in several formats: CSV and similar formats, the boxes of psql and mysql, Markdown, columns aligned by
//! spaces, and HTML.
//!
//! A cell of the header decides whether its column has secrets. The whole table is read at the first cell of its header
//! that names a secret, so the time stays linear.

use std::ops::Range;

use super::{is_secret, line, line_end};
use crate::shape::{bare, is_stated};

/// The maximum number of bytes that are read of a header before the found cell, and after it.
const HEADER: usize = 1200;

/// The maximum number of bytes of a row.
const ROW: usize = 8192;

/// A separator of the cells of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// A comma, a semicolon, a tab or a bar.
    Byte(u8),
    /// The line `│` of a drawn box.
    Box,
    /// Two or more spaces.
    Spaces,
}

/// The lines that separate the cells of a drawn box.
const BARS: [&str; 3] = ["│", "║", "┃"];

/// The number of bytes of each of [`BARS`].
const BAR: usize = "│".len();

/// Returns the values of the secret columns of the table whose header contains the word at `hit`, and the place where
/// the table ends.
pub(super) fn column(text: &[u8], hit: &Range<usize>) -> Option<(Vec<Range<usize>>, usize)> {
    let (cell, sign) = cell(text, hit)?;
    if !is_secret(&text[bare(text, cell.clone())]) {
        return None;
    }
    let Some(sign) = sign else {
        return html(text, &cell).or_else(|| single(text, &cell));
    };
    let header = line(text, hit.start, HEADER)?;
    let names = cells(text, header.clone(), sign);
    let is_name = |cell: &Range<usize>| {
        let name = &text[cell.clone()];
        let first = name.iter().find(|b| !b" \"'`*[".contains(b));
        name.len() <= 60
            && first.is_none_or(|b| {
                b.is_ascii_alphabetic() || b"_#".contains(b) && sign != Sign::Spaces || !b.is_ascii()
            })
            && !name.iter().any(|b| b"={}<>;!$\\".contains(b) || *b == b'(' && sign == Sign::Byte(b','))
    };
    let filled: Vec<_> = names.iter().filter(|name| !text[(*name).clone()].trim_ascii().is_empty()).collect();
    // In a table of two columns, the first cell is the name of the second cell.
    if let [first, second] = filled[..]
        && first.contains(&hit.start)
        && matches!(sign, Sign::Byte(b'|') | Sign::Box)
    {
        let value = bare(text, second.clone());
        if is_stated(&text[value.clone()]) {
            let end = value.end;
            return Some((vec![value], end));
        }
    }
    if filled.len() < 2 || !names.iter().all(is_name) {
        return None;
    }
    let secret: Vec<usize> =
        (0..names.len()).filter(|at| is_secret(&text[bare(text, names[*at].clone())])).collect();
    let (mut found, mut at, mut rows) = (Vec::new(), header.end, 0);
    while at < text.len() {
        let start = at + 1;
        let Some(end) = line_end(text, start.min(text.len()), ROW) else { break };
        let blank = rows == 0 && at == header.end && end == start;
        if blank || is_rule(&text[start.min(end)..end]) {
            at = end;
            continue;
        }
        let row = aligned(text, start.min(end)..end, sign, names.len());
        if row.len() != names.len() {
            break;
        }
        for column in &secret {
            let value = bare(text, row[*column].clone());
            if is_stated(&text[value.clone()]) {
                found.push(value);
            }
        }
        rows += 1;
        at = end;
    }
    (rows > 0).then_some((found, at))
}

/// Returns the cell that contains the word at `hit`, and the sign that separates the cell from its neighbours. The sign
/// is `None` if the cell is alone on its line or in an HTML element.
fn cell(text: &[u8], hit: &Range<usize>) -> Option<(Range<usize>, Option<Sign>)> {
    const REACH: usize = 40;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" _-./\"'`*[]:".contains(&b) || !b.is_ascii();
    let (mut start, mut left) = (hit.start, None);
    loop {
        if start == 0 || text[start - 1] == b'\n' {
            break;
        }
        left = sign_before(text, start);
        if left.is_some() || text[start - 1] == b'>' {
            break;
        }
        if hit.start - start > REACH || !plain(text[start - 1]) {
            return None;
        }
        start -= 1;
    }
    let (mut end, mut right) = (hit.end, None);
    while end < text.len() && !b"\r\n<".contains(&text[end]) {
        right = sign_at(text, end);
        if right.is_some() {
            break;
        }
        if end - hit.end > REACH || !plain(text[end]) {
            return None;
        }
        end += 1;
    }
    // Spaces pad the cells of other tables, too.
    let sign = match (left, right) {
        (Some(Sign::Spaces), other @ Some(_)) | (other, Some(Sign::Spaces)) if other.is_some() => {
            let far = text[end..].iter().position(|b| *b != b' ').and_then(|run| sign_at(text, end + run));
            let near = start - text[..start].iter().rev().take_while(|b| **b == b' ').count();
            let near = if near == 0 { None } else { sign_before(text, near) };
            [other, far, near].into_iter().flatten().find(|sign| *sign != Sign::Spaces).or(Some(Sign::Spaces))
        }
        (Some(left), Some(right)) if left != right => return None,
        (left, right) => left.or(right),
    };
    let sign = match sign {
        Some(Sign::Spaces) => {
            let line = line(text, hit.start, HEADER)?;
            let bars = |sign: u8| text[line.clone()].contains(&sign);
            if bars(b'|') { Some(Sign::Byte(b'|')) } else { Some(Sign::Spaces) }
        }
        sign => sign,
    };
    Some((start..end, sign))
}

/// Returns the sign that begins at `at`.
fn sign_at(text: &[u8], at: usize) -> Option<Sign> {
    match text[at] {
        byte @ (b',' | b';' | b'\t' | b'|') => Some(Sign::Byte(byte)),
        0xe2 if BARS.iter().any(|bar| text[at..].starts_with(bar.as_bytes())) => Some(Sign::Box),
        b' ' if text.get(at + 1) == Some(&b' ') => Some(Sign::Spaces),
        _ => None,
    }
}

/// Returns the sign that ends at `end`.
fn sign_before(text: &[u8], end: usize) -> Option<Sign> {
    match text[end - 1] {
        byte @ (b',' | b';' | b'\t' | b'|') => Some(Sign::Byte(byte)),
        0x82 | 0x83 | 0x91 if BARS.iter().any(|bar| text[..end].ends_with(bar.as_bytes())) => Some(Sign::Box),
        b' ' if end > 1 && text[end - 2] == b' ' => Some(Sign::Spaces),
        _ => None,
    }
}

/// Returns the cells of the row `line`. Separators within quotes are ignored.
fn cells(text: &[u8], line: Range<usize>, sign: Sign) -> Vec<Range<usize>> {
    let line = line.start..line.start + text[line.clone()].trim_ascii_end().len();
    let (mut cells, mut start, mut at, mut quoted) = (Vec::new(), line.start, line.start, false);
    while at < line.end {
        let begins = text[start..at].iter().all(|b| *b == b' ');
        if text[at] == b'"' && (begins || quoted) && matches!(sign, Sign::Byte(b',' | b';' | b'\t')) {
            quoted = !quoted;
        }
        match sign_at(text, at).filter(|found| *found == sign && !quoted) {
            Some(sign) => {
                cells.push(start..at);
                at += match sign {
                    Sign::Byte(_) => 1,
                    Sign::Box => BAR,
                    Sign::Spaces => text[at..line.end].iter().take_while(|b| **b == b' ').count(),
                };
                start = at;
            }
            None => at += 1,
        }
    }
    cells.push(start..line.end);
    cells
}

/// Returns the cells of a row that should have `count` cells. If single spaces separate the columns of an aligned
/// table, its words are its cells.
fn aligned(text: &[u8], line: Range<usize>, sign: Sign, count: usize) -> Vec<Range<usize>> {
    let row = cells(text, line.clone(), sign);
    if sign != Sign::Spaces || row.len() == count {
        return row;
    }
    let (mut words, mut at) = (Vec::new(), line.start);
    while at < line.end {
        let run = text[at..line.end].iter().take_while(|b| !b.is_ascii_whitespace()).count();
        if run > 0 {
            words.push(at..at + run);
        }
        at += run.max(1);
    }
    words
}

/// Returns whether `line` only draws a part of a table: dashes, signs and spaces.
fn is_rule(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let drawn = |b: &u8| b"-+|=: ".contains(b) || (0x80..0xc0).contains(b) || *b == 0xe2;
    line.len() > 2 && line.iter().all(drawn) && line.iter().any(|b| !b"| ".contains(b))
}

/// Returns the value below a header of one column, in the format of psql.
fn single(text: &[u8], cell: &Range<usize>) -> Option<(Vec<Range<usize>>, usize)> {
    let rule = line_end(text, cell.end, 8)? + 1;
    let end = line_end(text, rule.min(text.len()), 200)?;
    let line = text.get(rule..end)?.trim_ascii();
    if line.len() < 4 || !line.iter().all(|b| *b == b'-') {
        return None;
    }
    let last = line_end(text, (end + 1).min(text.len()), ROW)?;
    let value = bare(text, (end + 1).min(last)..last);
    is_stated(&text[value.clone()]).then(|| (vec![value], last))
}

/// Returns the values of the column of an HTML table whose header is at `cell`.
fn html(text: &[u8], cell: &Range<usize>) -> Option<(Vec<Range<usize>>, usize)> {
    let open = text[..cell.start].iter().rev().take(60).position(|b| *b == b'<')?;
    if !text[cell.start - open..].starts_with(b"th") {
        return None;
    }
    let before = &text[cell.start.saturating_sub(HEADER)..cell.start];
    let row = before.windows(3).rposition(|tag| tag.eq_ignore_ascii_case(b"<tr"))?;
    let column = before[row..].windows(3).filter(|tag| tag.eq_ignore_ascii_case(b"<th")).count() - 1;
    let limit = text.len().min(cell.end + 8 * ROW);
    let (mut found, mut at, mut number) = (Vec::new(), cell.end, None);
    while at < limit {
        let Some(next) = text[at..limit].iter().position(|b| *b == b'<') else { break };
        at += next + 1;
        let tag = &text[at..limit];
        if tag.starts_with(b"/table") {
            break;
        } else if tag.starts_with(b"tr") {
            number = Some(0);
        } else if tag.starts_with(b"td")
            && let Some(place) = number
        {
            number = Some(place + 1);
            let start = at + tag.iter().position(|b| *b == b'>')? + 1;
            let end = start + text[start..limit].iter().position(|b| *b == b'<')?;
            let value = bare(text, start..end);
            if place == column && is_stated(&text[value.clone()]) {
                found.push(value);
            }
        }
    }
    Some((found, cell.end))
}
