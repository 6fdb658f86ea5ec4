//! Recognises text that is used in place of a secret: templates, references, calls and the words of examples.
//!
//! A generated password may begin with `{`, contain `$(` or end with `>`. So a single character is not enough to
//! recognise a template; the whole form decides. A placeholder has an opening sign, a name and a closing sign; a call
//! has a path and matching brackets.

use super::edges::is_word;
use super::form::{Makeup, is_generated, is_jumbled, is_monotonous, is_wordy, looks_random};

/// Returns whether `text` is a placeholder for a secret, such as `${TOKEN}`, `<your key>` or `xxxx`.
pub(super) fn is_stand_in(text: &[u8]) -> bool {
    if is_monotonous(text) || is_filled(text) || is_alphabet(text) || is_template(text) {
        return true;
    }
    let makeup = Makeup::of(text);
    let escapes =
        text.windows(3).any(|w| w[0] == b'%' && w[1].is_ascii_hexdigit() && w[2].is_ascii_hexdigit());
    if makeup.symbols > 0 && makeup.digits > 0 && makeup.letters() > 0 && !escapes {
        return false;
    }
    if text.len() > 64 || text.len() >= 24 && looks_random(text, 24) || is_generated(text, 12) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    STAND_INS.iter().any(|word| holds(&lower, word.as_bytes()))
}

/// Returns whether almost all of `text` consists of runs of at least eight bytes that count up, as in an alphabet.
fn is_alphabet(text: &[u8]) -> bool {
    let runs = text.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let counting: usize = runs.map(<[u8]>::len).filter(|run| *run >= 8).sum();
    text.len() >= 24 && counting * 8 >= text.len() * 7
}

/// Returns whether `text` has a run of eight signs that stand for the characters of a secret, such as `ghp_xxxxxxxx`.
fn is_filled(text: &[u8]) -> bool {
    text.windows(8).any(|run| b"xX*.".contains(&run[0]) && run.iter().all(|b| *b == run[0]))
}

/// Returns whether `text` is a template that a shell, a template engine, a formatter or a vault would fill in.
pub(super) fn is_template(text: &[u8]) -> bool {
    let Some(&first) = text.first() else { return true };
    if is_framed(text) || holds_placeholder(text) {
        return true;
    }
    if first == b'$' && text.len() > 1 && text[1..].iter().all(|b| is_word(*b)) && !text[1].is_ascii_digit() {
        let name = &text[1..];
        let constant = name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase);
        return constant || !name.iter().any(u8::is_ascii_digit) || !is_jumbled(name);
    }
    REFERENCES.iter().any(|start| text.starts_with(start.as_bytes()))
        || JOINS.iter().any(|join| holds(text, join.as_bytes()))
        || is_pattern(text)
        || !is_generated(text, 12) && FORMATS.iter().any(|mark| holds(text, mark.as_bytes()))
}

/// Returns whether `text` contains `part`. The first bytes are compared first, which is faster for short texts.
pub(super) fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window[0] == part[0] && window == part)
}

/// Returns whether `text` looks like a regular expression, because it contains two of [`PATTERNS`].
fn is_pattern(text: &[u8]) -> bool {
    PATTERNS.iter().filter(|mark| holds(text, mark.as_bytes())).count() >= 2
}

/// Returns whether `text` is enclosed in brackets or percent signs and its content may be a name or words.
fn is_framed(text: &[u8]) -> bool {
    let (Some(&first), Some(&last)) = (text.first(), text.last()) else { return false };
    let framed =
        matches!((first, last), (b'<', b'>') | (b'{', b'}') | (b'[', b']') | (b'%', b'%') | (b'(', b')'));
    framed && text.len() > 1 && !is_generated(&text[1..text.len() - 1], 4)
}

/// Returns whether `text` contains a placeholder: an opening sign, a name or an expression, and a closing sign.
fn holds_placeholder(text: &[u8]) -> bool {
    // Many generated passwords happen to have brackets around one or two letters.
    let generated = is_generated(text, 12);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let found = PLACEHOLDERS.iter().find(|(open, _)| rest.starts_with(open.as_bytes()));
        let Some((open, close)) = found else {
            at += 1;
            continue;
        };
        let inner = &rest[open.len()..];
        let end = inner.iter().take(80).position(|b| *b == close.as_bytes()[0]).unwrap_or(inner.len());
        let closed = end < inner.len() && inner[end..].starts_with(close.as_bytes());
        let plain = !generated || open.len() > 1 && end > 2;
        if closed && plain && is_expression(&inner[..end]) {
            return true;
        }
        at += open.len();
    }
    false
}

/// Returns whether `text` may be the content of a placeholder: a name, a path, a command, a filter, or nothing.
fn is_expression(text: &[u8]) -> bool {
    let kind = |b: u8| is_word(b) || b" .:-/|'\"[](),?$@*".contains(&b);
    let begins = text.iter().find(|b| **b != b' ').is_none_or(|b| is_word(*b) || b"-./$@'\"".contains(b));
    let named = text.is_empty() || text.iter().any(|b| is_word(*b));
    begins && named && text.iter().all(|b| kind(*b)) && !is_generated(text, 4)
}

/// Returns whether `text` is a path with a call or an index at its end, such as `os.environ["X"]` or
/// `next_token()`, or several calls.
pub(super) fn is_call(text: &[u8]) -> bool {
    let text = text.strip_suffix(b";").or(text.strip_suffix(b",")).unwrap_or(text);
    let text = text.strip_suffix(b"?").unwrap_or(text);
    // Minified code has several calls in a row.
    let count = |sign: u8| text.iter().filter(|b| **b == sign).count();
    if count(b'(') >= 2 && count(b')') >= 2 && count(b',') >= 3 {
        return true;
    }
    let path = text.iter().take_while(|b| is_word(**b) || b".:$!@&*->".contains(b)).count();
    let Some(&open) = text.get(path) else { return false };
    let named = path > 0 && is_word(text[path - 1]) || text[..path].ends_with(b"!");
    if !named || !b"([{<".contains(&open) {
        return false;
    }
    // In a call, a name precedes the bracket, and the brackets match. Generated passwords are different.
    let mut open_brackets = Vec::new();
    for &byte in &text[path..] {
        match byte {
            b'(' | b'[' | b'{' => open_brackets.push(byte),
            b')' | b']' | b'}' => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if open_brackets.pop() != Some(opener) {
                    return false;
                }
            }
            _ => {}
        }
    }
    // The call may be cut off, because the judged value ends at a space or a quote.
    let closed = open_brackets.is_empty() && b")]}>".contains(&text[text.len() - 1]);
    let cut = !open_brackets.is_empty() && (text.len() - path < 24 || is_wordy(&text[..path]));
    (closed || cut) && !is_generated(&text[..path], 6)
}

/// The opening and closing signs of placeholders. If an opening sign begins with another one, the longer one is listed
/// first.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("${{", "}}"),
    ("{{", "}}"),
    ("${", "}"),
    ("#{", "}"),
    ("%{", "}"),
    ("<%", "%>"),
    ("$(", ")"),
    ("%(", ")"),
    ("@{", "}"),
    ("%7B", "%7D"),
    ("{", "}"),
    ("<", ">"),
    ("$[", "]"),
    ("((", "))"),
    ("__", "__"),
];

/// Placeholders of formatters, and ellipses.
const FORMATS: &[&str] = &["%s", "%d", "%v", "%q", "...", "…"];

/// Signs of a concatenation with a variable. If a value contains such signs, the quotes around the value belong to two
/// different strings.
const JOINS: &[&str] = &["\" + ", "' + ", "` + ", "\" . ", "' . ", " + \"", " + '", " . '"];

/// Parts of regular expressions.
const PATTERNS: &[&str] =
    &["(?", ".*", ".+", "\\d", "\\w", "\\s", "\\S", "a-z", "A-Z", "0-9", "[^", "]+", "]*", "$/"];

/// Beginnings of references to a value that is kept elsewhere.
const REFERENCES: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "getenv",
    "env.",
    "env:",
    "ENV[",
    "secrets.",
    "vars.",
    "var.",
    "local.",
    "module.",
    "vault:",
    "ref+",
    "arn:",
    "file:",
    "http:",
    "http%",
    "https%",
    "https:",
    "op://",
    "data:",
    "urn:",
    "ssm:",
    "self.",
    "this.",
    "config.",
    "settings.",
    "projects/",
    "@Microsoft.KeyVault",
];

/// Words that examples and labels use in place of secrets.
const STAND_INS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "changeme",
    "change-me",
    "change_me",
    "example",
    "sample",
    "dummy",
    "placeholder",
    "redacted",
    "your",
    "xxxx",
    "todo",
    "foobar",
    "default",
    "insert",
    "replace",
    "none",
    "null",
    "undefined",
    "test",
    "mock",
    "fake",
    "string",
    "secret",
    "token",
    "localhost",
    "abc123",
    "123456",
    "invalid",
    "username",
    "sha256",
    "sha512",
    "argon2",
    "base64",
    "utf8",
    "utf-8",
];
