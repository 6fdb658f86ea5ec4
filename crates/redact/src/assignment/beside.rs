//! Finds values that have no name of their own: after a command, before a pipe, or beside a mark such as
//! `sensitive: true`.
//!
//! No name says that such a value is a secret, so the value must have the shape of a secret.

use std::ops::Range;

use super::command::{echoed, here};
use super::extent::{generated_run, opened, word_end};
use super::joint::Joint;
use crate::edges::is_word;
use crate::shape::is_shaped;

/// Returns the value at `at` if it has a secret's shape.
fn shaped(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (mut range, quoted) = opened(text, at, Joint::Flag)?;
    if !quoted {
        range.end = word_end(text, &range);
        if let Some(run) = generated_run(text, range.start).filter(|run| run.end > range.end) {
            range = run;
        }
        // A shell shows `%` after output that doesn't end its line.
        if text[range.clone()].ends_with(b"%") && text.get(range.end).is_none_or(|b| b"\r\n".contains(b)) {
            range.end -= 1;
        }
    }
    is_shaped(&text[range.clone()]).then_some(range)
}

/// Returns the text that is piped into the command at `hit`, or given to it after `<<<`, if it has a secret's shape.
pub(crate) fn piped(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let here = || {
        let line = text[hit.end..].iter().take(120).take_while(|b| **b != b'\n').count();
        let sign = text[hit.end..hit.end + line].windows(3).position(|signs| signs == b"<<<")?;
        here(text, hit.end + sign)
    };
    let mut range = echoed(text, (hit.start + 1).min(text.len())).or_else(here)?;
    // In `printf 'X\nX\n' | passwd`, the password occurs twice.
    let twice = text[range.clone()].windows(2).position(|signs| signs == b"\\n");
    let whole = twice
        .is_some_and(|half| text[range.start..range.start + half] == text[range.start + half + 2..range.end]);
    if let Some(half) = twice.filter(|_| !whole) {
        range.end = range.start + half;
    }
    let judged = twice.map_or(range.clone(), |half| range.start..range.start + half);
    is_shaped(&text[judged]).then_some(range)
}

/// Returns the value of the object, block or command that has the mark at `hit`, such as `sensitive: true`.
pub(crate) fn marked(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    // A state of Terraform has the value in a nested object.
    let nested = [&b"\"random_password\""[..], b"\"bcrypt_hash\""]
        .iter()
        .any(|sign| text[hit.clone()].ends_with(sign));
    let bounds: &[u8] = if nested { b"" } else { b"{}" };
    let before = text[..hit.start].iter().rev().take(REACH).take_while(|b| !bounds.contains(b)).count();
    let before = if nested { 0 } else { before };
    let after = text[hit.end..]
        .iter()
        .take(if nested { 4 * REACH } else { 2 * REACH })
        .take_while(|b| !bounds.contains(b))
        .count();
    let region = hit.start - before..hit.end + after;
    let labels: &[&str] =
        if nested { &["result"] } else { &["value", "Value", "default", "result", "content", "plaintext"] };
    labels.iter().find_map(|label| labelled(text, &region, label))
}

/// The maximum number of bytes between a mark and its value.
const REACH: usize = 240;

/// Returns the value that `label` has within `region`, if it has a secret's shape.
fn labelled(text: &[u8], region: &Range<usize>, label: &str) -> Option<Range<usize>> {
    let places = text[region.clone()].windows(label.len()).enumerate();
    for (place, _) in places.filter(|(_, window)| *window == label.as_bytes()) {
        let start = region.start + place;
        let mut at = start + label.len();
        if start > 0 && is_word(text[start - 1]) || text.get(at).is_some_and(|b| is_word(*b)) {
            continue;
        }
        let signs = text[at..].iter().take(24).take_while(|b| b"\"'\\:= ".contains(b)).count();
        let flag = text[..start].ends_with(b"--");
        let assigned = flag || text[at..at + signs].iter().any(|b| b":=".contains(b));
        // The quote that opens the value belongs to the value.
        at += signs - text[at..at + signs].iter().rev().take_while(|b| b"\"'\\".contains(b)).count();
        if assigned && let Some(range) = shaped(text, at) {
            return Some(range);
        }
    }
    None
}
