//! Reads SQL statements that name their columns: `INSERT INTO t (…) VALUES (…)`, `COPY t (…) FROM stdin`.

use std::ops::Range;

use super::is_secret;
use crate::shape::{bare, is_stated};

/// The maximum number of bytes that are read of a list of columns before the found column, and after it.
const COLUMNS: usize = 1200;

/// The maximum number of bytes of the rows of a statement.
const ROWS: usize = 256 * 1024;

/// Returns the values of the secret columns in the list of columns that contains the word at `hit`, and the place where
/// reading stopped.
pub(super) fn column(text: &[u8], hit: &Range<usize>) -> Option<(Vec<Range<usize>>, usize)> {
    // Most names are not in a list of columns, which is checked first.
    let inner = |b: &u8| b.is_ascii_alphanumeric() || b"_`\"[] \n".contains(b);
    let before = text[..hit.start].iter().rev().take(48).find(|b| !inner(b));
    let after = text[hit.end..].iter().take(48).find(|b| !inner(b));
    if !before.is_some_and(|b| b",(".contains(b)) || !after.is_some_and(|b| b",)]".contains(b)) {
        return None;
    }
    let listed = |b: &u8| b.is_ascii_alphanumeric() || b"_,`\"[] \r\n\t.".contains(b);
    let left = text[..hit.start].iter().rev().take(COLUMNS).take_while(|b| listed(b)).count();
    let open = (hit.start - left).checked_sub(1).filter(|at| text[*at] == b'(')?;
    let close = hit.end + text[hit.end..].iter().take(COLUMNS).take_while(|b| listed(b)).count();
    if text.get(close) != Some(&b')') {
        return None;
    }
    let lead = text[open.saturating_sub(100)..open].to_ascii_lowercase();
    let says = |word: &str| lead.windows(word.len()).any(|window| window == word.as_bytes());
    let names: Vec<Range<usize>> = split(text, open + 1..close);
    let secret: Vec<usize> =
        (0..names.len()).filter(|at| is_secret(&text[bare(text, names[*at].clone())])).collect();
    let rest = text[close + 1..].trim_ascii_start();
    let after = text.len() - rest.len();
    if secret.is_empty() {
        None
    } else if says("copy ") && rest.len() > 4 && rest[..4].eq_ignore_ascii_case(b"from") {
        Some(copied(text, after, names.len(), &secret))
    } else if (says("insert ") || says("replace ") || says("into ")) && rest.len() > 6 {
        let word = rest.iter().take(80).position(|b| *b == b'(')?;
        rest[..word].to_ascii_lowercase().windows(6).any(|it| it == b"values").then_some(())?;
        Some(inserted(text, after + word, names.len(), &secret))
    } else {
        None
    }
}

/// Returns the secrets among the rows in brackets from `at` on.
fn inserted(text: &[u8], mut at: usize, count: usize, secret: &[usize]) -> (Vec<Range<usize>>, usize) {
    let limit = text.len().min(at + ROWS);
    let mut found = Vec::new();
    while text.get(at) == Some(&b'(') && at < limit {
        let end = closing(text, at, limit);
        let row = split(text, at + 1..end);
        if row.len() == count {
            let values = secret.iter().map(|column| bare(text, row[*column].clone()));
            found.extend(values.filter(|value| is_stated(&text[value.clone()])));
        }
        at = end + 1;
        at += text[at.min(limit)..limit]
            .iter()
            .take(80)
            .take_while(|b| b.is_ascii_whitespace() || **b == b',')
            .count();
    }
    (found, at.min(limit))
}

/// Returns the secrets among the lines after `at`, up to the line `\.`. Tabs separate the columns.
fn copied(text: &[u8], at: usize, count: usize, secret: &[usize]) -> (Vec<Range<usize>>, usize) {
    let limit = text.len().min(at + ROWS);
    let mut found = Vec::new();
    let mut at = at;
    while let Some(next) = text[at..limit].iter().position(|b| *b == b'\n') {
        let start = at + next + 1;
        let end = start + text[start..limit].iter().position(|b| *b == b'\n').unwrap_or(limit - start);
        let (mut cells, mut from) = (Vec::new(), start);
        for cell in text[start..end].split(|b| *b == b'\t') {
            cells.push(from..from + cell.len());
            from += cell.len() + 1;
        }
        if cells.len() != count {
            return (found, start);
        }
        let values = secret.iter().map(|column| bare(text, cells[*column].clone()));
        found.extend(values.filter(|value| is_stated(&text[value.clone()])));
        at = end;
    }
    (found, limit)
}

/// Returns the place of the bracket that closes the bracket at `open`. Brackets within quotes don't count.
fn closing(text: &[u8], open: usize, limit: usize) -> usize {
    let (mut depth, mut quote) = (0, None);
    for (place, &byte) in text.iter().enumerate().take(limit).skip(open) {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth == 1 => return place,
            (None, b')') => depth -= 1,
            _ => {}
        }
    }
    limit
}

/// Splits `range` at its commas, except commas within quotes or brackets.
fn split(text: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut quote, mut depth) = (Vec::new(), range.start, None, 0);
    for place in range.clone() {
        match (quote, text[place]) {
            (Some(open), byte) if byte == open => quote = None,
            (None, byte @ (b'\'' | b'"')) => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth -= 1,
            (None, b',') if depth == 0 => {
                parts.push(start..place);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(start..range.end);
    parts
}
