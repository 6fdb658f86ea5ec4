//! Finds the ends of strings, characters and regular expressions.

use super::language::Language;

/// The maximum number of characters between the quote and the bracket of a raw string in C++, as the standard requires.
const LONGEST_DELIMITER: usize = 16;

/// The maximum number of bytes of a regular expression. Arbitrary: without a limit, a long line of slashes would be
/// read many times.
const LONGEST_EXPRESSION: usize = 400;

/// Returns the end of the string, character or regular expression that begins at `at` of `text`, or `at` if none begins
/// there. `last` is the last character of the code before.
///
/// A string that is never closed ends at the end of its line, or at the end of the text if it may have several lines.
pub(super) fn end(text: &str, at: usize, language: Language, last: u8) -> usize {
    let rest = &text.as_bytes()[at..];
    let is_after_word = at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
    let length = match (rest[0], language) {
        (b'"', Language::Rust) => closed(rest, b'"', true),
        (b'"', Language::Java) if rest.starts_with(b"\"\"\"") => 3 + found(&rest[3..], b"\"\"\""),
        (b'"', _) => closed(rest, b'"', false),
        (b'\'', Language::Rust) => character(&text[at..]),
        // A digit separator of C++, such as in `1'000`.
        (b'\'', Language::Cpp) if is_after_word => 0,
        (b'\'', _) => closed(rest, b'\'', false),
        (b'`', Language::Go) => 1 + found(&rest[1..], b"`"),
        (b'`', Language::JavaScript | Language::TypeScript) => closed(rest, b'`', true),
        (b'r' | b'b', Language::Rust) if !is_after_word => raw_in_rust(rest),
        (b'R', Language::Cpp) if !is_after_word => raw_in_cpp(rest),
        (b'/', Language::JavaScript | Language::TypeScript) if b"(,=:[!&|?{};".contains(&last) => {
            regular_expression(rest)
        }
        _ => 0,
    };
    text.ceil_char_boundary((at + length).min(text.len()))
}

/// Returns the length of a text in quotes. A backslash escapes the next character.
fn closed(rest: &[u8], quote: u8, may_have_lines: bool) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !may_have_lines => return at,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Returns where the first occurrence of `end` in `rest` ends, or the length of `rest` if there is none.
fn found(rest: &[u8], end: &[u8]) -> usize {
    rest.windows(end.len()).position(|window| window == end).map_or(rest.len(), |at| at + end.len())
}

/// Returns the length of a character literal in Rust; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => closed(rest.as_bytes(), b'\'', false),
        (Some((_, c)), Some((at, '\''))) if c != '\'' => at + 1,
        _ => 0,
    }
}

fn raw_in_rust(rest: &[u8]) -> usize {
    let prefix = 1 + usize::from(rest.starts_with(b"br"));
    if rest[prefix - 1] != b'r' {
        return 0;
    }
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        return 0;
    }
    let start = prefix + hashes + 1;
    let mut at = start;
    while at < rest.len() {
        if rest[at] == b'"' {
            let closing = rest[at + 1..].iter().take(hashes).take_while(|byte| **byte == b'#').count();
            if closing == hashes {
                return at + 1 + hashes;
            }
            at += closing;
        }
        at += 1;
    }
    rest.len()
}

fn raw_in_cpp(rest: &[u8]) -> usize {
    if rest.get(1) != Some(&b'"') {
        return 0;
    }
    let delimiter = rest[2..].iter().take(LONGEST_DELIMITER + 1).position(|byte| *byte == b'(');
    let Some(delimiter) = delimiter.map(|length| &rest[2..2 + length]) else { return 0 };
    let end = [b")", delimiter, b"\""].concat();
    2 + found(&rest[2..], &end)
}

/// Returns the length of a regular expression; 0 if its line ends first, or if it is very long.
fn regular_expression(rest: &[u8]) -> usize {
    let (mut at, mut is_in_class) = (1, false);
    while let Some(&byte) = rest.get(at).filter(|_| at < LONGEST_EXPRESSION) {
        match byte {
            b'\\' => at += 1,
            b'\n' => return 0,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'/' if !is_in_class => return at + 1,
            _ => {}
        }
        at += 1;
    }
    0
}
