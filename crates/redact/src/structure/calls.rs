//! Finds secrets among the arguments of calls and commands that take a secret, such as `basic_auth(user, …)`,
//! `typeText(…)` beside the name of a password, `gh secret set`, and `cryptsetup` with piped text.

use std::ops::Range;

use super::{is_secret, line, line_end};
use crate::edges::is_word;
use crate::shape::{bare, is_hash, is_shaped, is_spoken, is_stated};

/// The maximum number of bytes of the arguments of a call.
const ARGUMENTS: usize = 320;

/// Calls whose string is a secret only if the same line names one.
const TYPING: &[&[u8]] = &[
    b"typeText(",
    b"TextInput(",
    b".type(",
    b".fill(",
    b"fill_in ",
    b"fillField(",
    b"send_keys(",
    b"sendKeys(",
    b"setValue(",
    b"addValue(",
    b"assertEquals(",
    b"assertEqual(",
    b"assert_equal ",
    b"by lazy {",
    b"SetDefault(",
    b"assertSame(",
    b"setText(",
    b"enterText(",
    b"XCTAssertEqual(",
    b"should eq ",
    b"Equal(t, ",
    b".to eq(",
    b".to eq ",
    b"send_keys ",
    b"Field(default=",
    b"assert_eq!(",
    b"StringLiteral(",
];

/// Returns the secret among the arguments of the call at `hit`.
pub(crate) fn argument(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let strings = strings(text, hit.end);
    let call = &text[hit.clone()];
    if TYPING.contains(&call) {
        let mut line = line(text, hit.start, 400)?;
        line.start += text[line.start..hit.start].iter().rposition(|b| *b == b';').unwrap_or(0);
        let named = names_secret(text, &line, &strings);
        return strings.into_iter().find(|range| named && is_stated(trimmed(&text[range.clone()])));
    }
    // A pair of a user and a password in one string.
    if call.ends_with(b"USERPWD") {
        let range = strings.into_iter().next()?;
        let colon = text[range.clone()].iter().position(|b| *b == b':')?;
        let range = range.start + colon + 1..range.end;
        return is_stated(&text[range.clone()]).then_some(range);
    }
    let password = strings
        .iter()
        .skip(1)
        .rev()
        .find(|range| is_stated(&text[(*range).clone()]) && !is_address(&text[(*range).clone()]));
    // The user may be a variable.
    let only = || {
        strings
            .first()
            .filter(|range| text[hit.end..range.start].contains(&b',') && is_spoken(&text[(*range).clone()]))
    };
    password.or_else(only).cloned()
}

/// Returns whether a word of `line` outside `strings` or a string before the last one names a secret.
fn names_secret(text: &[u8], line: &Range<usize>, strings: &[Range<usize>]) -> bool {
    let valued = strings.iter().find(|range| is_stated(trimmed(&text[(*range).clone()])));
    let outside = |place: usize| valued.is_none_or(|range| !range.contains(&place));
    let mut at = line.start;
    while at < line.end {
        let run = text[at..line.end].iter().take_while(|b| is_word(**b) || **b == b'-').count();
        let name = &text[at..at + run];
        let name = name.strip_prefix(b"get").or(name.strip_prefix(b"Get")).unwrap_or(name);
        if run > 1 && outside(at) && is_secret(name) {
            return true;
        }
        at += run.max(1);
    }
    false
}

/// Returns `value` without the key that a test types after it, as in `…{enter}`.
fn trimmed(value: &[u8]) -> &[u8] {
    value.strip_suffix(b"{enter}").unwrap_or(value)
}

/// Returns whether `value` is an address: of a mail, a host or a database.
fn is_address(value: &[u8]) -> bool {
    let at = value.iter().position(|b| *b == b'@');
    value.contains(&b'=') && value.contains(&b':')
        || at.is_some_and(|at| {
            value[at..].contains(&b'.') && value[at + 1..].iter().all(|b| is_word(*b) || b".-".contains(b))
        })
}

/// Returns the strings among the arguments of a call. The arguments begin at `at`, and end at the closing bracket, a
/// semicolon, or the end of the line.
fn strings(text: &[u8], at: usize) -> Vec<Range<usize>> {
    let limit = text.len().min(at + ARGUMENTS);
    let (mut found, mut depth, mut at) = (Vec::new(), 1, at);
    while at < limit && found.len() < 8 {
        match text[at] {
            quote @ (b'"' | b'\'' | b'`') => {
                let Some(length) = text[at + 1..limit].iter().position(|b| *b == quote || *b == b'\n') else {
                    break;
                };
                found.push(at + 1..at + 1 + length);
                at += length + 1;
            }
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth -= 1,
            b';' | b'\n' => break,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        at += 1;
    }
    found
}

/// Returns the secret that is passed to the command at `hit`. The secret is a word of the command's line or of the
/// piped text, and is recognised by its shape.
pub(crate) fn given(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let start =
        text[..hit.start].iter().rev().take(240).position(|b| *b == b'\n').map(|length| hit.start - length);
    let start = start.or((hit.start < 240).then_some(0))?;
    let end = line_end(text, hit.end, 400)?;
    let rest = hit.end
        ..hit.end + text[hit.end..end].iter().position(|b| b"|;&".contains(b)).unwrap_or(end - hit.end);
    let lead = &text[start..hit.start];
    let piped = lead.iter().rposition(|b| *b == b'|').and_then(|pipe| {
        let from = ["echo ", "printf ", "<<< "]
            .iter()
            .find_map(|word| lead[..pipe].windows(word.len()).rposition(|it| it == word.as_bytes()))?;
        Some(start + from..start + pipe)
    });
    let shaped = |range: &Range<usize>| {
        let value = &text[range.clone()];
        let file = value.windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_lowercase());
        !file && is_spoken(value)
            || is_shaped(value) && !value.contains(&b'/')
            || is_hash(value) && value.len() >= 24 && !value.contains(&b'-')
    };
    // The piped text is searched first. The line is searched only if no secret is found in the piped text.
    let regions = [piped, Some(rest)];
    regions.into_iter().flatten().find_map(|region| words(text, region).into_iter().find(shaped))
}

/// Returns the words of a command, without quotes, and without an option or a name that is joined to a value.
fn words(text: &[u8], region: Range<usize>) -> Vec<Range<usize>> {
    let (mut words, mut at) = (Vec::new(), region.start);
    while at < region.end {
        let run = text[at..region.end].iter().take_while(|b| b.is_ascii_graphic()).count();
        let word = &text[at..at + run];
        let name = word.iter().take_while(|b| is_word(**b) || b"-./".contains(b)).count();
        let glued = match () {
            () if word.get(name) == Some(&b'=') && name > 0 && name + 2 < run => name + 1,
            () if word.starts_with(b"-b") && !word.starts_with(b"--") && run > 8 => 2,
            () => 0,
        };
        if run > glued {
            let value = bare(text, at + glued..at + run);
            let cut = text[value.clone()].windows(2).position(|pair| pair == b"\\n" || pair == b"\\r");
            words.push(value.start..cut.map_or(value.end, |cut| value.start + cut));
        }
        at += run.max(1);
    }
    words
}
