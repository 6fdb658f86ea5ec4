//! Finds the lines of a source by their numbers.

use tiro_base::envelope;
use tiro_text::chunk::Chunk;

/// The maximum number of bytes that are shown of a line. If a line is longer, only the part that was found is shown.
/// Arbitrary.
const LONGEST: usize = 1000;

/// The positions at which the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines {
    starts: Vec<usize>,
    end: usize,
}

impl Lines {
    /// Returns the lines of `text`. A line feed at the end of the text begins no further line.
    pub(super) fn of(text: &str) -> Lines {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1).filter(|start| *start < text.len());
        Lines { starts: std::iter::once(0).chain(breaks).collect(), end: text.len() }
    }

    /// Returns how many lines there are.
    pub(super) fn count(&self) -> usize {
        if self.end == 0 { 0 } else { self.starts.len() }
    }

    /// Returns the number of the line that contains the byte `at`. Numbers begin with 1.
    pub(super) fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    /// Returns the range of the line with this number, including its line feed.
    pub(super) fn range(&self, number: usize) -> Chunk {
        Chunk { start: self.starts[number - 1], end: self.starts.get(number).copied().unwrap_or(self.end) }
    }

    /// Returns the line with this number as an answer shows it: the number, a tab and the line. If the line is long,
    /// only the beginning of its part within `shown` is shown. Also returns whether a part was left out.
    pub(super) fn numbered(&self, text: &str, number: usize, shown: Chunk) -> (String, bool) {
        let Chunk { start, end } = self.range(number);
        let (mut from, mut to) = (start, end);
        if end - start > LONGEST {
            (from, to) = (start.max(shown.start), end.min(shown.end).max(start.max(shown.start)));
            to = text.floor_char_boundary(to.min(from + LONGEST));
        }
        let line = text[from..to].trim_end_matches(['\n', '\r']);
        let (before, after) = (if from > start { "…" } else { "" }, if to < end { "…" } else { "" });
        (format!("{number}\t{before}{}{after}\n", envelope::escape(line)), from > start || to < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let text = "a\r\n\nb\n";
        let lines = Lines::of(text);
        assert_eq!(lines.count(), 3);
        assert_eq!([0, 1, 3, 4, 5].map(|at| lines.number(at)), [1, 1, 2, 3, 3]);
        let whole = Chunk { start: 0, end: text.len() };
        let shown: String = (1..=3).map(|number| lines.numbered(text, number, whole).0).collect();
        assert_eq!(shown, "1\ta\n2\t\n3\tb\n");
        assert_eq!((Lines::of("").count(), Lines::of("\n").count(), Lines::of("a\nb").count()), (0, 1, 2));
    }

    #[test]
    fn of_a_long_line_the_part_that_was_found_is_shown() {
        let text = "é".repeat(5000);
        let (line, is_part) = Lines::of(&text).numbered(&text, 1, Chunk { start: 400, end: 410 });
        assert_eq!((line.as_str(), is_part), ("1\t…ééééé…\n", true));
    }
}
