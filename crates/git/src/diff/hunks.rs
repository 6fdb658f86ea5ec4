//! Finds the lines in which two texts differ.

use std::collections::HashMap;
use std::ops::Range;

use gix::bstr::ByteSlice;
use gix::diff::blob::{Algorithm, Diff, InternedInput, sources::byte_lines};

/// The maximum number of bytes of a line that are shown. Arbitrary: lines longer than this are data rather than text.
const LONGEST_LINE: usize = 240;

/// The maximum number of lines, old and new together, that are compared one by one. The common beginning and end don't
/// count. The time grows with the square of the number of lines. A megabyte of real text has about 30,000 lines, but a
/// megabyte of very short lines has half a million.
const LINE_LIMIT: u64 = 100_000;

/// A run of whole lines and the run that replaces it, as byte ranges. Either run may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The range in the old text.
    pub removed: Range<usize>,
    /// The range in the new text.
    pub added: Range<usize>,
}

/// Returns the hunks that turn `old` into `new`, from top to bottom.
///
/// The common beginning and end are cut off first, byte by byte, so the cost depends on the changed part only. Git
/// moves hunks up or down to places where they are easier to read. This module does not move hunks, because nobody
/// reads them: their lines are only counted, hashed and summarised. If more than 100,000 lines lie between the common
/// beginning and end, they become a single hunk.
pub(crate) fn hunks(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    let start = common_start(old, new);
    let end = common_end(&old[start..], &new[start..]);
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let is_empty = old.is_empty() || new.is_empty();
    if is_empty || count_lines(old) + count_lines(new) > LINE_LIMIT {
        let whole = Hunk { removed: start..start + old.len(), added: start..start + new.len() };
        return if old.is_empty() && new.is_empty() { Vec::new() } else { vec![whole] };
    }
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut removed = Cursor { at: start, line: 0 };
    let mut added = Cursor { at: start, line: 0 };
    Diff::compute(Algorithm::Histogram, &input)
        .hunks()
        .map(|hunk| Hunk {
            removed: removed.span(&hunk.before, |line| input.interner[input.before[line]].len()),
            added: added.span(&hunk.after, |line| input.interner[input.after[line]].len()),
        })
        .collect()
}

/// Returns the lines in which `new` differs from `old`, in about `most` bytes. A removed line begins with `-`, and an
/// added line begins with `+`. Long lines are cut, blank lines are left out, and `…` stands for lines that no longer
/// fit.
pub(crate) fn changed_lines(old: &str, new: &str, most: usize) -> String {
    let mut shown = String::new();
    for Hunk { removed, added } in hunks(old.as_bytes(), new.as_bytes()) {
        let signed = old[removed].lines().map(|line| ('-', line));
        for (sign, line) in signed.chain(new[added].lines().map(|line| ('+', line))) {
            let line = &line[..line.floor_char_boundary(LONGEST_LINE)];
            if line.trim().is_empty() {
                continue;
            }
            if shown.len() + line.len() + 2 > most {
                return shown + "…\n";
            }
            shown.push(sign);
            shown += line;
            shown.push('\n');
        }
    }
    shown
}

/// The minimum number of bytes, without white space, that a line must have to identify a change. Arbitrary: a line with
/// only a bracket doesn't identify a change.
const TELLING: usize = 6;

/// Returns a hash of an added or removed line. The hash ignores indentation and spacing. Returns `None` for a line of
/// fewer than six bytes (without white space), because such a line doesn't identify a change.
pub fn line_hash(is_added: bool, line: &str) -> Option<u32> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(if is_added { b"+" } else { b"-" });
    let mut letters = 0;
    for word in line.split_whitespace() {
        letters += word.len();
        hasher.update(word.as_bytes());
    }
    let hash = hasher.finalize();
    let bytes = hash.as_bytes().first_chunk().expect("a hash has four bytes");
    (letters >= TELLING).then(|| u32::from_le_bytes(*bytes))
}

/// Returns the hashes of the lines in which `new` differs from `old`. Each hash is mapped to the number of times that
/// the line occurs in `new` if it was added, or in `old` if it was removed.
pub(crate) fn changed_hashes(old: &[u8], new: &[u8]) -> HashMap<u32, usize> {
    let of = |is_added: bool, text: &[u8]| -> Vec<u32> {
        text.lines().filter_map(|line| line_hash(is_added, &line.to_str_lossy())).collect()
    };
    let mut hashes = HashMap::new();
    for Hunk { removed, added } in hunks(old, new) {
        let changed = of(false, &old[removed]).into_iter().chain(of(true, &new[added]));
        hashes.extend(changed.map(|hash| (hash, 0)));
    }
    if !hashes.is_empty() {
        for hash in of(false, old).into_iter().chain(of(true, new)) {
            hashes.entry(hash).and_modify(|times| *times += 1);
        }
    }
    hashes
}

/// Walks through a text line by line and tracks the byte offset.
struct Cursor {
    at: usize,
    line: usize,
}

impl Cursor {
    fn span(&mut self, lines: &Range<u32>, length: impl Fn(usize) -> usize) -> Range<usize> {
        let start = self.forward(lines.start, &length);
        start..self.forward(lines.end, &length)
    }

    fn forward(&mut self, line: u32, length: &impl Fn(usize) -> usize) -> usize {
        while self.line < line as usize {
            self.at += length(self.line);
            self.line += 1;
        }
        self.at
    }
}

/// How many bytes are compared at a time.
const BLOCK: usize = 256;

/// Returns how many bytes of whole lines the texts have in common at their beginning.
fn common_start(old: &[u8], new: &[u8]) -> usize {
    // Whole blocks are compared first: this is faster than comparing byte by byte.
    let blocks =
        old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK)).take_while(|(old, new)| old == new).count()
            * BLOCK;
    let rest = old[blocks..].iter().zip(&new[blocks..]).take_while(|(old, new)| old == new).count();
    let same = blocks + rest;
    if same == old.len() && same == new.len() {
        return same;
    }
    old[..same].rfind_byte(b'\n').map_or(0, |newline| newline + 1)
}

/// Returns how many bytes of whole lines the texts have in common at their end.
fn common_end(old: &[u8], new: &[u8]) -> usize {
    let blocks =
        old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK)).take_while(|(old, new)| old == new).count()
            * BLOCK;
    let (old_rest, new_rest) = (&old[..old.len() - blocks], &new[..new.len() - blocks]);
    let rest = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let same = blocks + rest;
    let tail = &old[old.len() - same..];
    let at_line_start = |text: &[u8]| text.len() == same || text[text.len() - same - 1] == b'\n';
    if at_line_start(old) && at_line_start(new) {
        return same;
    }
    tail.find_byte(b'\n').map_or(0, |newline| same - newline - 1)
}

/// Returns the number of lines. A last line without a line break counts too.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let unfinished = !text.is_empty() && !text.ends_with(b"\n");
    text.iter().filter(|&&byte| byte == b'\n').count() as u64 + u64::from(unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_changed_lines_are_in_the_hunks() {
        let old = b"a\nb\nc\nd\ne\n";
        let new = b"a\nB\nc\nd\nd2\ne\n";
        let found: Vec<(&str, &str)> = hunks(old, new)
            .iter()
            .map(|hunk| {
                (old[hunk.removed.clone()].to_str().unwrap(), new[hunk.added.clone()].to_str().unwrap())
            })
            .collect();
        assert_eq!(found, [("b\n", "B\n"), ("", "d2\n")]);
        assert_eq!(hunks(b"same", b"same"), []);
        assert_eq!(hunks(b"x\n", b"x"), [Hunk { removed: 0..2, added: 0..1 }]);
    }

    #[test]
    fn changed_lines_are_whole_and_bounded() {
        let (old, new) = ("a\nb\nc\n", "a\nB\n\nc\nd\n");
        assert_eq!(changed_lines(old, new, 100), "-b\n+B\n+d\n");
        assert_eq!(changed_lines(old, new, 7), "-b\n+B\n…\n");
        assert_eq!(changed_lines("", &"ü".repeat(500), 1000).len(), LONGEST_LINE + 2);
    }

    proptest! {
        /// Replacing the removed parts with the added ones gives the new text, and every hunk consists of whole lines.
        #[test]
        fn hunks_rebuild_the_new_text(old in "([ab]?\n|ab){0,12}", new in "([ab]?\n|ab){0,12}") {
            let (old, new) = (old.as_bytes(), new.as_bytes());
            let mut rebuilt = Vec::new();
            let mut at = 0;
            for hunk in hunks(old, new) {
                prop_assert!(hunk.removed.start == 0 || old[hunk.removed.start - 1] == b'\n');
                prop_assert!(!hunk.removed.is_empty() || !hunk.added.is_empty());
                rebuilt.extend_from_slice(&old[at..hunk.removed.start]);
                rebuilt.extend_from_slice(&new[hunk.added.clone()]);
                at = hunk.removed.end;
            }
            rebuilt.extend_from_slice(&old[at..]);
            prop_assert_eq!(rebuilt, new);
        }
    }
}
