//! Found secrets, and the marks that replace them.

use std::ops::Range;

use super::rules::{Rule, rules};

/// A secret that was found: its range and its rule.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// The rule that found it.
    pub rule: &'static Rule,
}

/// The beginning of a mark.
pub(super) const MARK: &str = "[REDACTED:";

/// The number of hexadecimal digits of a mark. The documentation of [`super`] says why a mark has so few digits.
pub(super) const DIGITS: usize = 3;

/// The number of hexadecimal digits of a mark of an earlier version.
const FORMER_DIGITS: usize = 8;

/// Returns the range of the mark that begins with [`MARK`] at `start`. Returns `None` if [`MARK`] is not followed by
/// the id of a rule, a colon, the digits of a mark and `]`.
pub(super) fn mark_at(text: &[u8], start: usize) -> Option<Range<usize>> {
    let id = start + MARK.len();
    let colon = id + text[id..].iter().take(48).position(|&b| b == b':')?;
    let digits = text[colon + 1..].iter().take(FORMER_DIGITS + 1).position(|&b| b == b']')?;
    let are_digits = matches!(digits, DIGITS | FORMER_DIGITS)
        && text[colon + 1..][..digits].iter().all(u8::is_ascii_hexdigit);
    let is_known = || rules().any(|rule| rule.id.as_bytes() == &text[id..colon]);
    (are_digits && is_known()).then_some(start..colon + 1 + digits + 1)
}

/// Returns `text` with each mark of a secret reduced to its rule: `[REDACTED:github-token]`.
pub(super) fn naming_rules(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(MARK) {
        let (before, mark) = rest.split_at(start + MARK.len());
        kept += before;
        let rule = mark.find([':', ']']).unwrap_or(mark.len());
        kept += &mark[..rule];
        rest = &mark[rule..];
        if let Some(end) = rest.find(']').filter(|_| rest.starts_with(':')) {
            rest = &rest[end..];
        }
    }
    kept + rest
}
