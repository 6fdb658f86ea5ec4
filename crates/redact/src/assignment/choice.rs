//! Finds a string that is one of several values of a name, that is passed to a method after the name, or that stands
//! alone on a line between two tags.

use super::extent::LONGER;

/// Returns the beginning of the string that is passed to a method after the closing bracket at `at`, as in
/// `By.ID, "password").send_keys("…")` and `getenv("PASSWORD") ?: "…"`.
pub(super) fn method(text: &[u8], at: usize) -> Option<usize> {
    let run = text[at..].iter().take(32).take_while(|b| !b"\"'`;,\r\n".contains(b)).count();
    let quote = matches!(text.get(at + run), Some(b'"' | b'\'' | b'`'));
    let sign = &text[at..at + run];
    (quote && CHOICES.iter().any(|choice| sign.ends_with(choice.as_bytes()))).then_some(at + run)
}

/// Returns where the string begins in a value that is a choice, as in `token = live ? load() : "…"` and
/// `token = load() || "…"`. The value begins at `at`.
pub(super) fn choice(text: &[u8], at: usize) -> Option<usize> {
    let run = text[at..].iter().take(80).take_while(|b| !b"\"'`;,{}\r\n&".contains(b)).count();
    let sign = &text[at..at + run];
    let quote = matches!(text.get(at + run), Some(b'"' | b'\'' | b'`'));
    (quote && sign.len() > 3 && CHOICES.iter().any(|choice| sign.ends_with(choice.as_bytes())))
        .then_some(at + run)
}

/// Returns where the text of an element begins. The opening tag ends before `at`. The text begins at `at` or, if one
/// word stands alone between the tags, on a line below.
pub(super) fn content(text: &[u8], at: usize) -> usize {
    let blank = |at: usize| text[at..].iter().take(80).take_while(|b| b.is_ascii_whitespace()).count();
    let start = at + blank(at);
    if !text[at..start].contains(&b'\n') {
        return at;
    }
    let word = text[start..].iter().take(LONGER).take_while(|b| b.is_ascii_graphic() && **b != b'<').count();
    let end = start + word;
    if word > 0 && text[end + blank(end)..].starts_with(b"</") { start } else { at }
}

/// Signs and words before a string that is one of several values, and calls that take such a string.
const CHOICES: &[&str] = &[
    " ? ",
    " : ",
    " ?: ",
    " ?? ",
    " || ",
    " or ",
    " else ",
    ".unwrap_or(",
    ".unwrap_or_else(|_| ",
    ".getOrElse(",
    ".orElse(",
    ".toBe(",
    ".toEqual(",
    ".equals(",
    ".send_keys(",
    ".sendKeys(",
    ".type(",
    ".fill(",
    ") { ",
];
