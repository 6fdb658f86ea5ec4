//! Finds secrets by the structure of the text. The structures are columns of tables, members of objects, output of
//! commands, lines of logins, and words of sentences.
//!
//! The structure only says where a secret may be. The shape of the value (`shape`) decides whether it is a secret. So
//! documentation with placeholders, types and words stays unchanged.

mod calls;
mod dialogue;
mod members;
mod nearby;
mod output;
mod sentence;
mod statement;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::assignment::is_secret;
use super::shape::is_named;

pub(super) use calls::{argument, given};
pub(super) use dialogue::login;
pub(super) use nearby::{key, password};
pub(super) use output::printed;
pub(super) use sentence::{address, spoken};

/// Returns the values that belong to the name with the word at `hit`, and the place where reading stopped. The name may
/// be the name of a column, a field or a member.
pub(super) fn named(text: &[u8], hit: &Range<usize>) -> (Vec<Range<usize>>, usize) {
    let column = tables::column(text, hit).or_else(|| statement::column(text, hit));
    if let Some((found, end)) = column {
        return (found, end);
    }
    (members::member(text, &name(text, hit)).into_iter().collect(), hit.end)
}

/// Returns the range of the name that contains the word at `hit`.
fn name(text: &[u8], hit: &Range<usize>) -> Range<usize> {
    let before = text[..hit.start].iter().rev().take(48).take_while(|b| is_named(**b)).count();
    let after = text[hit.end..].iter().take(48).take_while(|b| is_named(**b)).count();
    hit.start - before..hit.end + after
}

/// Returns the line that contains the byte at `at`, or `None` if the line has more than `most` bytes on one side of
/// `at`.
fn line(text: &[u8], at: usize, most: usize) -> Option<Range<usize>> {
    let before = text[..at].iter().rev().take(most).position(|b| *b == b'\n').or((at < most).then_some(at))?;
    Some(at - before..line_end(text, at, most)?)
}

/// Returns the end of the line that contains `at`, or `None` if it is more than `most` bytes away.
fn line_end(text: &[u8], at: usize, most: usize) -> Option<usize> {
    let rest = &text[at..];
    let end =
        rest.iter().take(most).position(|b| *b == b'\n').or((rest.len() < most).then_some(rest.len()))?;
    Some(at + end)
}
