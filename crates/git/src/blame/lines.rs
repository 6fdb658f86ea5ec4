//! A version of a file as lines, and the lines that two versions have in common.

use std::ops::Range;

use gix::bstr::ByteSlice;
use gix::diff::blob::{Algorithm, Diff, IndentHeuristic, IndentLevel, InternedInput, Interner};

/// The width of a tab, as git counts it to choose where a hunk begins.
const TAB: u8 = 8;

/// A version of a file. Its lines are compared without their white space, as `git blame -w` does, so a change of the
/// indentation is no change.
pub(super) struct Text {
    /// The lines without white space, one after the other.
    bytes: Vec<u8>,
    /// Where each line ends in `bytes`.
    ends: Vec<usize>,
    indents: Vec<IndentLevel>,
    /// Whether the beginning has a NUL. This is git's test for a binary file.
    pub is_binary: bool,
}

/// A run of lines that differ, as ranges of lines in the old and in the new version. One of them may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

impl Text {
    /// Divides `content` into lines.
    pub fn of(content: &[u8]) -> Text {
        let is_binary = content[..content.len().min(8000)].contains(&0);
        let bytes = Vec::with_capacity(content.len());
        let mut text = Text { bytes, ends: Vec::new(), indents: Vec::new(), is_binary };
        for line in content.lines() {
            text.indents.push(IndentLevel::for_ascii_line(line.iter().copied(), TAB));
            text.bytes.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
            text.ends.push(text.bytes.len());
        }
        text
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns a line without its white space.
    pub fn line(&self, number: usize) -> &[u8] {
        self.joined(number..number + 1)
    }

    /// Returns the lines in `range`, joined, without white space.
    pub fn joined(&self, range: Range<usize>) -> &[u8] {
        let end = |lines: usize| lines.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.bytes[end(range.start)..end(range.end)]
    }
}

/// Returns the hunks that turn `old` into `new`, from top to bottom. They are those of git, whose algorithm and
/// heuristic are used.
pub(super) fn hunks(old: &Text, new: &Text) -> Vec<Hunk> {
    let capacity = old.count() + new.count();
    let mut input: InternedInput<&[u8]> =
        InternedInput { before: Vec::new(), after: Vec::new(), interner: Interner::new(capacity) };
    input.update_before((0..old.count()).map(|number| old.line(number)));
    input.update_after((0..new.count()).map(|number| new.line(number)));
    let mut indents = vec![None; input.interner.num_tokens() as usize];
    for (token, indent) in input.before.iter().zip(&old.indents).chain(input.after.iter().zip(&new.indents)) {
        indents[token.0 as usize].get_or_insert(*indent);
    }
    let blank = IndentLevel::for_ascii_line([], TAB);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_with_heuristic(
        &input,
        IndentHeuristic::new(|token: gix::diff::blob::Token| indents[token.0 as usize].unwrap_or(blank)),
    );
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { old: range(hunk.before), new: range(hunk.after) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_no_difference() {
        let old = Text::of(b"a\n  b c\nd\n");
        assert_eq!(hunks(&old, &Text::of(b"a\n\tb  c\r\nd")), []);
        let new = Text::of(b"a\nx\n\ny\nd\n");
        assert_eq!(hunks(&old, &new), [Hunk { old: 1..2, new: 1..4 }]);
        assert_eq!((old.count(), old.line(1), old.joined(0..3)), (3, &b"bc"[..], &b"abcd"[..]));
        assert_eq!(hunks(&Text::of(b""), &Text::of(b"a\n")), [Hunk { old: 0..0, new: 0..1 }]);
    }
}
