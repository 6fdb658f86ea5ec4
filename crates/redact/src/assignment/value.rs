//! Finds the value that is assigned to a name.
//!
//! Code, settings, shells, markup, prose and logs join name and value in different ways. In all these formats, the
//! value follows the name after a few bytes, so the text is read forward from the name.

use std::ops::Range;

use super::extent::{generated_run, is_whole, loose_end, opened, plain, setting, word_end};
use super::joining::{joint, name_start};
use super::joint::Joint;

/// The value assigned to a name, and how the value is joined to the name.
#[derive(Debug)]
pub(super) struct Value {
    pub range: Range<usize>,
    /// Whether the value is quoted.
    pub quoted: bool,
    /// Whether the value follows a flag, or is joined to its name without a space, as in a shell, an address or a
    /// settings file.
    pub tight: bool,
    /// Whether the value is the rest of a line that begins with the name.
    pub line: bool,
    /// Whether a comma joins the value to the name, as in a list of names.
    pub listed: bool,
    /// Whether a possessive precedes the name, as in `my password is …`.
    pub owned: bool,
    /// Whether the sign between name and value assigns the value rather than compares it.
    pub set: bool,
    /// Whether a colon joins the value to the name.
    pub colon: bool,
    /// Whether a word such as `is` joins the value to the name.
    pub prose: bool,
    /// Whether the value is wrapped in a call, as in `String("…")`.
    pub wrapped: bool,
}

/// Returns the value assigned to the name that contains the byte at `word` and ends at `end`.
pub(super) fn value_of(text: &[u8], word: usize, end: usize) -> Option<Value> {
    let (joint, at) = joint(text, word, end)?;
    value_at(text, word, end, joint, at)
}

/// Returns the value that begins at `at` and is joined by `joint` to a name. The name contains the byte at `word`
/// and ends at `end`.
pub(super) fn value_at(text: &[u8], word: usize, end: usize, joint: Joint, at: usize) -> Option<Value> {
    // The value is on a line of its own between two tags.
    let apart = text.get(end) == Some(&b'>') && text[end..at].contains(&b'\n');
    let tight = joint == Joint::Flag
        || apart
        || joint == Joint::Sign && !text[end..at].contains(&b' ') && text[at - 1] != b':';
    let name = &text[..name_start(text, word)];
    let owned = OWNERS.iter().any(|owner| name.ends_with(owner.as_bytes()));
    let listed = joint == Joint::List;
    let compared =
        [&b"=="[..], b"!="].iter().any(|sign| text[end..at].windows(2).any(|window| window == *sign));
    let set = matches!(joint, Joint::Sign | Joint::Default | Joint::Quoted) && !compared;
    let colon = joint == Joint::Sign && text[end..at].iter().rev().find(|b| **b != b' ') == Some(&b':');
    let prose = joint == Joint::Prose;
    let wrapped = false;
    let value =
        Value { range: at..at, quoted: false, tight, line: false, listed, owned, set, colon, prose, wrapped };
    if joint == Joint::Sign
        && let Some(range) = text.get(at).and_then(|_| setting(text, at))
    {
        return Some(Value { range, line: true, ..value });
    }
    let (mut range, quoted) = opened(text, at, joint)?;
    if quoted || joint == Joint::Sign {
        let scheme = scheme(&text[range.clone()]);
        if scheme > 0 {
            range.start += scheme;
        } else if !quoted {
            let rest = &text[range.end..];
            if SCHEMES.iter().any(|name| text[range.clone()].eq_ignore_ascii_case(name.as_bytes()))
                && rest.first() == Some(&b' ')
            {
                range = plain(text, range.end + 1);
            }
        }
    }
    if !quoted
        && !matches!(joint, Joint::Call | Joint::List)
        && let Some(generated) = generated_run(text, range.start)
        && generated.end > range.end
    {
        return Some(Value { range: generated, ..value });
    }
    if matches!(joint, Joint::Call | Joint::List | Joint::Quoted) && !quoted
        || range.is_empty()
        || !quoted && !is_whole(text, &range)
    {
        return None;
    }
    let mut line = false;
    if !quoted {
        if joint == Joint::Sign {
            (range.end, line) = loose_end(text, &range);
            line &= !apart;
        } else {
            range.end = word_end(text, &range);
        }
        // A word that continues as a call, an index, a path or a template is code.
        let next =
            text.get(range.end).copied().filter(|_| !text[range.end..].starts_with(b"</")).unwrap_or(b'\n');
        let number = text[range.clone()].starts_with(b"0x") && range.len() < 40;
        if number
            || b"([{<".contains(&next)
            || text[range.clone()].windows(2).any(|pair| pair == b"::" || pair == b"->")
        {
            return None;
        }
    }
    let wrapped = quoted && range.start > at + 8;
    Some(Value { range, quoted, line, wrapped, ..value })
}

/// Possessives that may precede a name in prose.
const OWNERS: &[&str] = &["my ", "My ", "our ", "Our "];

/// Names of schemes, which precede the credentials in a header.
const SCHEMES: &[&str] =
    &["bearer", "token", "apikey", "api-key", "key", "bot", "ssws", "geniekey", "splunk", "digest"];

/// Returns the length of the scheme at the beginning of `value`, including the space after it; 0 if there is none.
fn scheme(value: &[u8]) -> usize {
    let Some(space) = value.iter().take(12).position(|b| *b == b' ') else { return 0 };
    let known = SCHEMES.iter().any(|name| value[..space].eq_ignore_ascii_case(name.as_bytes()));
    if known { space + 1 } else { 0 }
}
