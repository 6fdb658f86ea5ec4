//! Finds the quotations in a text.

use std::collections::HashMap;
use std::ops::Range;

/// Marks at the beginning of a quotation, each with the marks that may end it.
const MARKS: [(char, &str); 7] =
    [('"', "\""), ('\'', "'"), ('“', "”"), ('„', "“”"), ('«', "»"), ('‹', "›"), ('「', "」")];

/// A mark in a text.
struct Mark {
    at: usize,
    mark: char,
    opens: bool,
    closes: bool,
    /// The number of its paragraph.
    paragraph: usize,
}

/// Returns the bytes of each quotation in `text`, with its marks, in order. A quotation within another has no range of
/// its own. An apostrophe within a word is no mark. A quotation in straight marks ends within its paragraph. A mark
/// without an end begins no quotation.
pub fn quotations(text: &str) -> Vec<Range<usize>> {
    let marks = marks(text);
    // The last mark that ends a quotation, by its kind, and for straight marks by its paragraph.
    let last = |mark: &Mark| {
        let ends = MARKS.iter().find(|(start, _)| *start == mark.mark)?.1;
        let (from, to) = match mark.mark.is_ascii() {
            true => (
                marks.partition_point(|other| other.paragraph < mark.paragraph),
                marks.partition_point(|other| other.paragraph <= mark.paragraph),
            ),
            false => (0, marks.len()),
        };
        let found = marks[from..to].iter().rposition(|end| end.closes && ends.contains(end.mark))?;
        Some(from + found)
    };
    let mut known: HashMap<(char, usize), Option<usize>> = HashMap::new();
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(mark) = marks.get(place) {
        place += 1;
        if !mark.opens {
            continue;
        }
        let key = (mark.mark, if mark.mark.is_ascii() { mark.paragraph } else { 0 });
        let Some(last) = known.entry(key).or_insert_with(|| last(mark)).filter(|last| *last >= place) else {
            continue;
        };
        let ends = MARKS.iter().find(|(start, _)| *start == mark.mark).map_or("", |(_, ends)| ends);
        let is_end =
            |end: &Mark| end.closes && ends.contains(end.mark) && end.at > mark.at + mark.mark.len_utf8();
        if let Some(end) = marks[place..=last].iter().position(is_end) {
            let end = place + end;
            found.push(mark.at..marks[end].at + marks[end].mark.len_utf8());
            place = end + 1;
        }
    }
    found
}

/// Returns the quotation marks of a text.
fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    let (mut before, mut paragraph, mut is_empty) = (' ', 0, false);
    for (at, mark) in text.char_indices() {
        match mark {
            '\n' if is_empty => paragraph += 1,
            '\n' => is_empty = true,
            mark if !mark.is_whitespace() => is_empty = false,
            _ => {}
        }
        let is_mark = MARKS.iter().any(|(start, ends)| *start == mark || ends.contains(mark));
        if is_mark {
            let next = text[at + mark.len_utf8()..].chars().next().unwrap_or(' ');
            let opens = MARKS.iter().any(|(start, _)| *start == mark)
                && !before.is_alphanumeric()
                && !next.is_whitespace();
            let closes = !before.is_whitespace() && !next.is_alphanumeric();
            marks.push(Mark { at, mark, opens, closes, paragraph });
        }
        before = mark;
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&str> {
        quotations(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn quotations_have_marks_around_them() {
        assert_eq!(of("He said \"no\" and 'not now'."), ["\"no\"", "'not now'"]);
        assert_eq!(of("It's the users' choice, isn't it?"), Vec::<&str>::new());
        assert_eq!(of("„Nein“, „nie”, «non», 「いいえ」"), ["„Nein“", "„nie”", "«non»", "「いいえ」"]);
        assert_eq!(of("“One.\n\nTwo.”"), ["“One.\n\nTwo.”"]);
        assert_eq!(of("\"One.\r\n\r\nTwo \"three\""), ["\"three\""]);
        assert_eq!(of("a 5\" disk, \"\" and \""), Vec::<&str>::new());
        assert_eq!(of("He wrote \"\" here.\n\nThe word \"no\""), ["\"no\""]);
        assert_eq!(of("Back in the '90s he wrote \"Never use tabs.\" Fine."), ["\"Never use tabs.\""]);
    }

    #[test]
    fn many_marks_take_no_longer_than_their_number() {
        for text in ["\"a ", "'a 'b", "“a ", "\"a\" ", "\"a \n\n", "\"a 'a “a „a «a ‹a 「a \n\n"] {
            quotations(&text.repeat(200_000));
        }
    }
}
