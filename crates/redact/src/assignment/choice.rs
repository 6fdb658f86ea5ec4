//! Finds a string that is one of several values of a name, or that a method gets after the name.

/// Returns where the string begins that a method gets after the closing bracket at `at`, as in
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
