//! Breaks lines at the width of the terminal. A line is broken between words, or within a word that is longer than the
//! line.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use super::{Line, Style};

/// The minimum number of columns of the text, even on a narrow terminal with a deep indentation.
const LEAST: usize = 10;

/// The minimum indentation, in columns, of the second and later rows of a line. Without indentation, the rest of a long
/// heading would look like the next heading.
const HANGING: usize = 2;

/// A row: its indent and its parts.
pub type Row<'a> = (usize, Vec<(Style, Cow<'a, str>)>);

/// Returns the rows into which `line` is broken. If `width` is `None`, the result is a single row.
///
/// The indentation takes at most half the width.
pub fn wrap(line: &Line, width: Option<usize>) -> Vec<Row<'_>> {
    let whole = || line.spans.iter().map(|span| (span.style, Cow::from(&span.text))).collect();
    let Some(width) = width else { return vec![(line.indent, whole())] };
    let characters: Vec<(char, Style)> =
        line.spans.iter().flat_map(|span| span.text.chars().map(|c| (c, span.style))).collect();
    let mut indent = line.indent.min(width / 2);
    let mut rows = Vec::new();
    let mut start = 0;
    loop {
        let (end, next) = row(&characters[start..], width.saturating_sub(indent).max(LEAST));
        rows.push((indent, joined(&characters[start..start + end])));
        start += next;
        indent = indent.max(HANGING);
        if start >= characters.len() {
            return rows;
        }
    }
}

/// Returns where the first row of `characters` ends, and where the next row begins.
fn row(characters: &[(char, Style)], room: usize) -> (usize, usize) {
    let mut taken = 0;
    let too_many = characters.iter().position(|(c, _)| {
        taken += c.width().unwrap_or(0);
        taken > room
    });
    let Some(end) = too_many else { return (characters.len(), characters.len()) };
    // Don't break at leading spaces.
    let first = characters.iter().position(|(c, _)| *c != ' ').unwrap_or(characters.len());
    let space = (first..=end).rev().find(|place| characters[*place].0 == ' ');
    let Some(space) = space else { return (end.max(1), end.max(1)) };
    let is_word = |place: &usize| characters[*place].0 != ' ';
    let end = (first..space).rev().find(is_word).map_or(space, |last| last + 1);
    let next = (space..characters.len()).find(is_word).unwrap_or(characters.len());
    (end, next)
}

fn joined(characters: &[(char, Style)]) -> Vec<(Style, Cow<'static, str>)> {
    let mut parts: Vec<(Style, String)> = Vec::new();
    for (character, style) in characters {
        match parts.last_mut().filter(|(last, _)| last == style) {
            Some((_, text)) => text.push(*character),
            None => parts.push((*style, character.to_string())),
        }
    }
    parts.into_iter().map(|(style, text)| (style, Cow::from(text))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    use super::super::Span;
    use super::*;

    fn rows(text: &str, indent: usize, width: usize) -> Vec<String> {
        let line = Line { indent, spans: vec![Span::new(Style::Plain, text)] };
        wrap(&line, Some(width))
            .into_iter()
            .map(|(indent, row)| {
                let row: String = row.into_iter().map(|(_, text)| text.into_owned()).collect();
                if row.is_empty() { row } else { " ".repeat(indent) + &row }
            })
            .collect()
    }

    #[test]
    fn lines_break_between_words() {
        let text = "the cache is flushed twice a day";
        assert_eq!(rows(text, 0, 14), ["the cache is", "  flushed", "  twice a day"]);
        assert_eq!(rows("the cache", 4, 14), ["    the cache"]);
        assert_eq!(rows("0123456789abcdef x", 2, 12), ["  0123456789", "  abcdef x"]);
        assert_eq!(rows("日本語日本語日本語", 2, 12), ["  日本語日本", "  語日本語"]);
        assert_eq!(rows("", 3, 10), [""]);
    }

    /// The name of a speaker may be so long that its rest looks like the heading of another hit.
    #[test]
    fn wrapped_rows_of_a_long_name_stay_indented() {
        let rows = rows("1. Eve 2. commit 4330358a64 by Ada", 0, 12);
        assert_eq!(rows[0], "1. Eve 2.");
        assert!(rows[1..].iter().all(|row| row.starts_with("  ")), "{rows:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_long(text in "([a-z]{0,12}|日本| |é){0,30}", width in 12..60_usize) {
            let rows = rows(&text, 2, width);
            let words = |text: &str| text.replace(' ', "");
            prop_assert_eq!(words(&rows.concat()), words(&text));
            prop_assert!(rows.iter().all(|row| row.width() <= width), "{:?}", rows);
        }
    }
}
