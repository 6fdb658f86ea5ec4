//! Differences between two versions of a text, as unified diffs.
//!
//! A diff is exact: if it is applied to the old version, the result is the new version, byte for byte. The result also
//! has the same line ends, and lacks a line feed at the end if the new version lacks one.

use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// The number of unchanged lines around each change. Three is the usual number, for people and for models.
const AROUND: usize = 3;

/// The maximum time for finding a short diff. After this time, a longer diff is used, which is exact too. Arbitrary.
const PATIENCE: Duration = Duration::from_millis(200);

/// The mark of a last line without a line feed, as in `diff` and in git.
const NO_LINE_FEED: &str = "\\ No newline at end of file";

/// Returns the unified diff from `old` to `new`, without the lines with the names of the files. The diff is empty if
/// the texts are equal. Only line feeds count as ends of lines.
pub fn changes(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    let mut diff = String::new();
    for hunk in group_diff_ops(ops, AROUND) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let before = first.old_range().start..last.old_range().end;
        let after = first.new_range().start..last.new_range().end;
        let _ = writeln!(diff, "@@ -{} +{} @@", range(before), range(after));
        for op in &hunk {
            if op.tag() == DiffTag::Equal {
                add(&mut diff, ' ', &old[op.old_range()]);
            } else {
                add(&mut diff, '-', &old[op.old_range()]);
                add(&mut diff, '+', &new[op.new_range()]);
            }
        }
    }
    diff
}

/// Returns a range of lines in the form of a hunk's header. An empty range is numbered by the line before it.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn add(diff: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push('\n');
            diff.push_str(NO_LINE_FEED);
            diff.push('\n');
        }
    }
}

#[cfg(test)]
/// Returns the text that results if a diff made by [`changes`] is applied to `old`; `None` if it doesn't apply.
pub fn apply(old: &str, diff: &str) -> Option<String> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut next = 0;
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(header) = lines.next() {
        let from = header.strip_prefix("@@ -")?.split(' ').next()?;
        let (start, count) = from.split_once(',').unwrap_or((from, "1"));
        let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
        // An empty range is numbered by the line before it.
        let start = if count == 0 { start } else { start.checked_sub(1)? };
        new.extend(old.get(next..start)?.iter().copied());
        next = start;
        while let Some(line) = lines.next_if(|line| !line.starts_with("@@ -")) {
            let is_last = lines.next_if(|line| line.trim_end_matches('\n') == NO_LINE_FEED).is_some();
            let (sign, rest) = line.split_at_checked(1)?;
            let rest = if is_last { rest.strip_suffix('\n')? } else { rest };
            match sign {
                " " | "-" => {
                    if *old.get(next)? != rest {
                        return None;
                    }
                    next += 1;
                    if sign == " " {
                        new.push_str(rest);
                    }
                }
                "+" => new.push_str(rest),
                _ => return None,
            }
        }
    }
    new.extend(old.get(next..)?.iter().copied());
    Some(new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_diff_is_read_as_by_git() {
        let old = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine";
        let new = "one\ntwo\nthree\nfour!\nfive\nsix\nseven\neight\nnine\nten\n";
        insta::assert_snapshot!(changes(old, new), @r"
        @@ -1,9 +1,10 @@
         one
         two
         three
        -four
        +four!
         five
         six
         seven
         eight
        -nine
        \ No newline at end of file
        +nine
        +ten
        ");
        assert_eq!(apply(old, &changes(old, new)).as_deref(), Some(new));
        assert_eq!(changes(old, old), "");
        assert_eq!(apply("other\n", &changes(old, new)), None);
    }

    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("a\n"),
            Just("b\r\n"),
            Just("\n"),
            Just("@@ -1 +1 @@\n"),
            Just("-x\n"),
            Just("\\ No newline at end of file\n"),
            Just("\r"),
            Just("é"),
            Just("c"),
        ];
        prop::collection::vec(line, 0..20).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn applying_a_diff_gives_the_new_text(old in text(), new in text()) {
            let diff = changes(&old, &new);
            prop_assert_eq!(apply(&old, &diff), Some(new), "{}", diff);
        }
    }
}
