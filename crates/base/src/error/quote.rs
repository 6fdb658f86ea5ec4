//! Redacts, escapes and shortens errors and the values in them.

use std::fmt::Display;
use std::fmt::Write;
use std::sync::OnceLock;

use crate::envelope;

/// How many characters of a value are shown. Arbitrary: most paths are shorter.
const LONGEST_VALUE: usize = 200;

/// The minimum number of characters that a run of letters and digits must have to look like a key.
const LONG_RUN: usize = 20;

/// For each character that is shown, this many characters are searched for secrets, because a secret is recognised by
/// the text around it.
const LOOKED_AT: usize = 8;

/// The function that removes secrets from a text.
static REDACT: OnceLock<fn(&str) -> String> = OnceLock::new();

/// Sets the function that removes secrets from errors and logs, for the whole process. The program calls this function
/// before anything else. Only the first call has an effect. Without a call, only runs that look like a key are removed,
/// because this crate has no rules of redaction.
pub fn redact_by(redact: fn(&str) -> String) {
    let _ = REDACT.set(redact);
}

/// Returns `value` for use within backticks: redacted, escaped, on one line, at most 200 characters, without
/// backticks.
pub fn quoted(value: impl Display) -> String {
    let mut text = Bounded { text: String::new(), left: LONGEST_VALUE * LOOKED_AT };
    // `write!` stops when the buffer is full; `clean` adds the ellipsis.
    let _ = write!(text, "{value}");
    let text = clean(&text.text, LONGEST_VALUE);
    if text.contains('`') { text.replace('`', "'") } else { text }
}

/// Returns a line for the log or for a usage message: redacted, escaped, on one line, at most 4,000 characters.
pub fn cleaned(line: &str) -> String {
    clean(line, 4000)
}

/// Returns `text` redacted, escaped, on one line and at most `most` characters long.
///
/// Runs that look like a key are removed too: a long mixture of lower-case letters, capitals and digits is
/// usually a token in a wrong argument.
pub(super) fn clean(text: &str, most: usize) -> String {
    let start = text.char_indices().nth(most * LOOKED_AT).map_or(text, |(end, _)| &text[..end]);
    let redacted = REDACT.get().map(|redact| redact(start));
    let text = without_keys(redacted.as_deref().unwrap_or(start));
    let text = envelope::one_line(&text);
    match text.char_indices().nth(most) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Returns `text` with an ellipsis in place of each run that looks like a key.
fn without_keys(text: &str) -> String {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '=');
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_key) {
        let (before, run) = rest.split_at(start);
        let (run, after) = run.split_at(run.find(|c| !is_of_key(c)).unwrap_or(run.len()));
        kept += before;
        kept += if looks_random(run) { "…" } else { run };
        rest = after;
    }
    kept + rest
}

/// Tells whether lower-case letters, capitals and digits alternate as in random text. In random text, about three of
/// five pairs of neighbours differ in class; in joined words such as `ReadTheConfigFile2`, at most two of five do.
fn looks_random(run: &str) -> bool {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let classes: Vec<u8> = run.bytes().map(class).collect();
    let changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    run.len() >= LONG_RUN && (0..3).all(|class| classes.contains(&class)) && changes * 20 >= run.len() * 9
}

/// A buffer that keeps only the beginning of what is written to it, because a value may be megabytes long.
struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let start: String = text.chars().take(self.left).collect();
        self.left -= start.chars().count();
        self.text += &start;
        if self.left == 0 { Err(std::fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_shows_no_secret_and_ends_where_its_backticks_do() {
        redact_by(tiro_redact::without_secrets);
        assert_eq!(quoted("auth-refactor"), "auth-refactor");
        assert_eq!(quoted("41799f8d-5af3-46fb-8473-94dff3a77ff6"), "41799f8d-5af3-46fb-8473-94dff3a77ff6");
        for plain in ["Session-2026-03-01-Refactor-Auth", "src/ReadTheWholeConfigurationFile2Test.java"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("a` hint: run `rm\n[data 0]\u{1b}"), "a' hint: run 'rm [data 0]\\u{1b}");
        assert_eq!(quoted("é".repeat(4000)), format!("{}…", "é".repeat(LONGEST_VALUE)));
        for secret in [
            format!("ghp_{}", "Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w"),
            format!("x{}", "Zz9q".repeat(8)),
            format!("see AKIA{} there", "ABCDEFGH2345WXYZ"),
        ] {
            let shown = quoted(&secret);
            assert!(
                !shown.contains("Zq8Lk2") && !shown.contains("Zz9q") && !shown.contains("ABCDEFGH"),
                "{shown}"
            );
            assert!(!shown.contains(":00"), "a hash: {shown}");
        }
        let key =
            format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "MIIE".repeat(500));
        assert!(!quoted(&key).contains("MIIEMIIE"));
    }

    #[test]
    fn without_rules_what_looks_like_a_key_is_removed() {
        assert_eq!(without_keys("a Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w b"), "a … b");
    }

    #[test]
    fn cleaning_again_changes_nothing() {
        redact_by(tiro_redact::without_secrets);
        let token = format!("ghp_{}", "Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w");
        for text in ["plain", &format!("password={token} {token}"), &format!("`{}`", "x\n".repeat(3000))] {
            let once = clean(text, 200);
            assert!(clean(&once, 201) == once, "{once}");
        }
    }
}
