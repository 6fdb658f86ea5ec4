//! Finds lines that a commit moved within a file, reflowed, or was told to be passed over, in the version before.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::Span;
use super::lines::{Hunk, Text};

/// The least number of letters and digits of lines that count as moved, as in `git blame -M`.
const LEAST_LETTERS: usize = 20;

/// How many places of a line are compared. Arbitrary: a line that is in more places says little.
const PLACES: usize = 64;

/// How many lines are looked at to divide one run of changed lines. Arbitrary: this bounds the cost of a hostile
/// file.
const COMPARED: usize = 1 << 20;

/// A part of some lines, and where it is in the version before.
pub(super) type Found = (Span, usize);

/// Divides `spans` of `new` into those that are in `old`, at any place, and the rest. Only runs of lines with at least
/// 20 letters and digits are found. The longest run is taken first.
pub(super) fn moved(old: &Text, new: &Text, spans: Vec<Span>) -> (Vec<Found>, Vec<Span>) {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let wanted: HashSet<&[u8]> = spans.iter().flat_map(Span::sources).map(|line| new.line(line)).collect();
    for line in (0..old.count()).filter(|line| wanted.contains(old.line(*line))) {
        let places = places.entry(old.line(line)).or_default();
        if places.len() < PLACES {
            places.push(line);
        }
    }
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for span in spans {
        let runs = Runs::of(new, &span, &places);
        let mut open = vec![span];
        let mut left = COMPARED;
        while let Some(span) = open.pop() {
            left = left.saturating_sub(span.len);
            match runs.best(&span).filter(|_| left > 0) {
                None => rest.push(span),
                Some((run, at)) => {
                    let (before, own, after) = span.split(run);
                    found.push((own, at));
                    open.extend([before, after].into_iter().flatten());
                }
            }
        }
    }
    (found, rest)
}

/// The longest runs of lines of a span that are also in the version before.
struct Runs {
    first: usize,
    /// For each line, how many lines from it on are also in the version before, one after the other, and where.
    longest: Vec<(usize, usize)>,
    /// The number of letters and digits before each line.
    letters: Vec<usize>,
}

impl Runs {
    fn of(new: &Text, span: &Span, places: &HashMap<&[u8], Vec<usize>>) -> Runs {
        let mut longest = vec![(0, 0); span.len];
        // The lengths of the runs that begin with the next line, by their place in the version before.
        let mut after: HashMap<usize, usize> = HashMap::new();
        for line in span.sources().rev() {
            let mut own = HashMap::new();
            for &at in places.get(new.line(line)).into_iter().flatten() {
                let len = after.get(&(at + 1)).map_or(1, |len| len + 1);
                own.insert(at, len);
                let best = &mut longest[line - span.source];
                if len > best.0 {
                    *best = (len, at);
                }
            }
            after = own;
        }
        let mut count = 0;
        let mut letters = vec![0];
        for line in span.sources() {
            count += new.line(line).iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
            letters.push(count);
        }
        Runs { first: span.source, longest, letters }
    }

    /// Returns the run within `span` that has the most letters and digits, and its place in the version before. Of
    /// equal ones, returns the first.
    fn best(&self, span: &Span) -> Option<(Range<usize>, usize)> {
        let end = span.source + span.len;
        let scored = span.sources().filter_map(|line| {
            let (len, at) = self.longest[line - self.first];
            let run = line..(line + len).min(end);
            let letters = self.letters[run.end - self.first] - self.letters[run.start - self.first];
            (letters > LEAST_LETTERS).then_some((letters, std::cmp::Reverse(line), run, at))
        });
        scored.max_by_key(|(letters, first, ..)| (*letters, *first)).map(|(.., run, at)| (run, at))
    }
}

/// Divides `spans` of `new` into those that are in a hunk that only reflows lines, and the rest. Such a hunk has the
/// same text before and after, if white space doesn't count, nor commas where the number of lines changes. If `is_ignored`, the lines of the other hunks are
/// found, too, if a line before resembles them.
pub(super) fn reflowed(
    old: &Text,
    new: &Text,
    hunks: &[Hunk],
    is_ignored: bool,
    spans: Vec<Span>,
) -> (Vec<Found>, Vec<Span>) {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for span in spans {
        let end = span.source + span.len;
        let first = hunks.partition_point(|hunk| hunk.new.end <= span.source);
        let mut span = Some(span);
        for hunk in hunks[first..].iter().take_while(|hunk| hunk.new.start < end) {
            let Some(whole) = span.take() else { break };
            let own = hunk.new.start.max(whole.source)..hunk.new.end.min(end);
            if own.is_empty() || hunk.old.is_empty() {
                span = Some(whole);
                continue;
            }
            // In as many lines, a comma is a change of the text.
            let drops_commas = hunk.old.len() != hunk.new.len();
            let [old_text, new_text] = [(old, &hunk.old), (new, &hunk.new)]
                .map(|(text, lines)| Joined::of(text, lines, drops_commas));
            let is_formatting = old_text.bytes == new_text.bytes;
            let (before, own, after) = whole.split(own);
            rest.extend(before);
            for line in own.lines() {
                let at = match is_formatting {
                    true => Some(old_text.line_at(new_text.begin(line.source))),
                    false if is_ignored => like(old, new.line(line.source), hunk, line.source),
                    false => None,
                };
                match at {
                    Some(at) => found.push((line, at)),
                    None => rest.push(line),
                }
            }
            span = after;
        }
        rest.extend(span);
    }
    (found, rest)
}

/// The text of some lines without white space.
struct Joined {
    first: usize,
    bytes: Vec<u8>,
    /// Where each line begins.
    begins: Vec<usize>,
}

impl Joined {
    fn of(text: &Text, range: &Range<usize>, drops_commas: bool) -> Joined {
        let mut own = Joined { first: range.start, bytes: Vec::new(), begins: Vec::new() };
        for line in range.clone() {
            own.begins.push(own.bytes.len());
            own.bytes.extend(text.line(line).iter().filter(|byte| !drops_commas || **byte != b','));
        }
        own
    }

    fn begin(&self, line: usize) -> usize {
        self.begins[line - self.first]
    }

    /// Returns the line that contains the byte `at`.
    fn line_at(&self, at: usize) -> usize {
        self.first + self.begins.partition_point(|begin| *begin <= at).saturating_sub(1)
    }
}

/// Returns the line of the old part of a hunk that resembles `line` most: it shares the most pairs of characters. Of
/// equal ones, returns the one at the most similar place. Returns `None` if no line shares half of the pairs, of
/// whichever line is the shorter.
fn like(old: &Text, line: &[u8], hunk: &Hunk, number: usize) -> Option<usize> {
    let Hunk { old: before, new: after } = hunk;
    let pairs = |line: &[u8]| -> HashSet<[u8; 2]> {
        line.windows(2).map(|pair| [pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase()]).collect()
    };
    let own = pairs(line);
    let place = (number - after.start) * before.len() / after.len().max(1);
    let scored = before.clone().take(COMPARED / (after.len() * 64 + 1) + 1).filter_map(|candidate| {
        let other = pairs(old.line(candidate));
        let shared = own.intersection(&other).count();
        let is_like = 2 * shared >= own.len().min(other.len()) && (shared > 0 || line == old.line(candidate));
        is_like.then_some((shared, std::cmp::Reverse((candidate - before.start).abs_diff(place)), candidate))
    });
    scored.max().map(|(.., candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(ranges: &[(usize, usize)]) -> Vec<Span> {
        ranges.iter().map(|(start, end)| Span { start: *start, source: *start, len: end - start }).collect()
    }

    #[test]
    fn a_moved_run_is_found_and_a_bracket_is_not() {
        let old = Text::of(
            b"fn first() { one_two_three_four_five(); }\nfn second() {\n  four_five_six_seven();\n}\n",
        );
        let new = Text::of(
            b"fn second() {\n    four_five_six_seven();\n}\nnew line\nfn first() { one_two_three_four_five(); }\n}\n",
        );
        let (mut found, mut rest) = moved(&old, &new, spans(&[(0, 6)]));
        found.sort_by_key(|(span, _)| span.source);
        rest.sort_by_key(|span| span.source);
        let found: Vec<_> = found.iter().map(|(span, at)| (span.source, span.len, *at)).collect();
        assert_eq!(found, [(0, 3, 1), (4, 1, 0)]);
        assert_eq!(rest, [Span { start: 3, source: 3, len: 1 }, Span { start: 5, source: 5, len: 1 }]);
    }

    #[test]
    fn many_equal_lines_take_no_longer_than_their_number() {
        let text = Text::of("fn the_same_line_again_and_again();\n".repeat(20_000).as_bytes());
        let (found, rest) = moved(&text, &text, spans(&[(0, 20_000)]));
        assert_eq!(
            found.iter().map(|(span, _)| span.len).chain(rest.iter().map(|span| span.len)).sum::<usize>(),
            20_000
        );
    }

    #[test]
    fn reflowed_lines_lead_to_the_lines_that_they_were() {
        let old = Text::of(b"call(first_argument, second_argument)\nkeep\nx = 1\n");
        let new = Text::of(b"call(\n    first_argument,\n    second_argument,\n)\nkeep\nx = 2\n");
        let hunks = super::super::lines::hunks(&old, &new);
        let (found, rest) = reflowed(&old, &new, &hunks, false, spans(&[(0, 4), (5, 6)]));
        assert_eq!(
            found.iter().map(|(span, at)| (span.source, *at)).collect::<Vec<_>>(),
            [(0, 0), (1, 0), (2, 0), (3, 0)]
        );
        assert_eq!(rest.iter().map(|span| span.source).collect::<Vec<_>>(), [5]);
        let (found, _) = reflowed(&old, &new, &hunks, true, spans(&[(5, 6)]));
        assert_eq!(found.iter().map(|(span, at)| (span.source, *at)).collect::<Vec<_>>(), [(5, 2)]);
    }
}
