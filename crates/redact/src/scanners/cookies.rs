//! Finds the secret values of cookies in headers, commands, scripts, files and recordings of browsers.
//!
//! The value of a cookie counts as a secret if it is long and looks random. If the cookie has the name of a session
//! cookie, a shorter value is enough. Cookies for statistics and settings are not replaced.

use std::ops::Range;

use crate::assignment::assigned;
use crate::edges::is_word;
use crate::form::{entropy, is_stand_in, looks_random};

/// The maximum number of bytes of a list of cookies that are read.
const REACH: usize = 16 * 1024;

/// Returns the secret values in the header, option or object that the word at `hit` names, and where reading
/// stopped.
pub(crate) fn cookies(text: &[u8], hit: &Range<usize>) -> (Vec<Range<usize>>, usize) {
    let mut found = Vec::new();
    let Some(start) = list_start(text, hit) else { return (found, hit.end) };
    let limit = text.len().min(start + REACH);
    let end = match text.get(start) {
        Some(b'{' | b'[') => object(text, start, limit, &mut found),
        _ => pairs(text, start, limit, &mut found),
    };
    (found, end)
}

/// Returns the beginning of the cookies that follow the word at `hit`.
fn list_start(text: &[u8], hit: &Range<usize>) -> Option<usize> {
    let mut at = hit.end;
    if text[hit.clone()].ends_with(b"-b ") {
        let line = &text[hit.start.saturating_sub(240)..hit.start];
        let line = &line[line.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
        if !line.windows(4).any(|word| word == b"curl") {
            return None;
        }
    } else {
        at += usize::from(matches!(text.get(at), Some(b's' | b'2' | b'S')));
        let set = text[at..].iter().take(24).take_while(|b| is_sign(**b)).count();
        let rest = &text[at + set..];
        // A call such as `cookies.set("name", "value")`.
        let call =
            text[at..at + set].ends_with(b".") && (rest.starts_with(b"set(") || rest.starts_with(b"add("));
        if call {
            at += set + 4;
        } else if text[at..at + set].iter().all(|b| matches!(b, b'.' | b'\\' | b')' | b']' | b' ' | b',')) {
            return None;
        } else {
            at += set;
        }
    }
    Some(
        at + text[at..]
            .iter()
            .take(8)
            .take_while(|b| matches!(b, b' ' | b'"' | b'\'' | b'\\' | b'$'))
            .count(),
    )
}

/// Returns whether `byte` may be between the word for cookies and the cookies themselves.
fn is_sign(byte: u8) -> bool {
    b"\"'`\\:=(,. )]\t".contains(&byte)
}

/// Finds the secret values in a list `name=value; name=value`. Returns where the list ends.
fn pairs(text: &[u8], start: usize, limit: usize, found: &mut Vec<Range<usize>>) -> usize {
    let mut at = start;
    loop {
        let name = text[at..limit].iter().take(256).take_while(|b| !ends_value(**b) && **b != b'=').count();
        let sign = at + name;
        // In a call, name and value are two strings: `cookies.set("name", "value")`, `setcookie('name', 'value')`.
        let listed = found.is_empty() && at == start && matches!(text.get(sign), Some(b'"' | b'\''));
        let value = if listed {
            sign + text[sign..limit].iter().take(8).take_while(|b| b"\"', \\".contains(b)).count()
        } else {
            sign + 1
        };
        if name == 0 || value >= limit || !listed && text[sign] != b'=' {
            return sign;
        }
        let length = text[value..limit].iter().take_while(|b| !ends_value(**b)).count();
        let end = value + length;
        if is_secret(&text[at..sign], &text[value..end]) {
            found.push(value..end);
        }
        if text.get(end) != Some(&b';') {
            return end;
        }
        at = end + 1;
        at += text[at..limit].iter().take(4).take_while(|b| **b == b' ').count();
    }
}

fn ends_value(byte: u8) -> bool {
    !(b'!'..=b'~').contains(&byte) || b";,\"'`\\<>(){}".contains(&byte)
}

/// Finds the secret values in `{"name": "value"}` or `[{"name": "name", "value": "value"}]`. Returns where the
/// object or array ends.
fn object(text: &[u8], start: usize, limit: usize, found: &mut Vec<Range<usize>>) -> usize {
    let close = if text[start] == b'{' { b'}' } else { b']' };
    let mut at = start + 1;
    let mut name = start..start;
    let mut key = start..start;
    while at < limit && text[at] != close {
        if !matches!(text[at], b'"' | b'\'') {
            at += 1;
            continue;
        }
        let length = text[at + 1..limit].iter().take_while(|b| !matches!(b, b'"' | b'\'' | b'\n')).count();
        let mut string = at + 1..at + 1 + length;
        at = string.end + 1;
        while string.end > string.start && text[string.end - 1] == b'\\' {
            string.end -= 1;
        }
        let sign = text[at.min(limit)..limit].iter().take(4).find(|b| **b != b' ');
        if sign == Some(&b':') {
            // This is not a list of cookies. It is a package with a name such as `cookie` in a lock file.
            if matches!(&text[string.clone()], b"version" | b"resolved" | b"integrity" | b"dependencies") {
                return at;
            }
            key = string;
            continue;
        }
        match &text[key.clone()] {
            b"name" => name = string,
            word => {
                let named = if word == b"value" { &text[name.clone()] } else { word };
                let attribute = matches!(word, b"domain" | b"path" | b"expires" | b"id" | b"storeId");
                if !attribute && is_secret(named, &text[string.clone()]) {
                    found.push(string);
                }
            }
        }
    }
    at
}

/// Returns whether the `value` of the cookie `name` is a secret.
fn is_secret(name: &[u8], value: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let begins = |names: &[&str]| names.iter().any(|start| name.starts_with(start.as_bytes()));
    let long = value.len() >= 16 && (looks_random(value, 16) || value.len() >= 40 && entropy(value) >= 4.0);
    let other = value.starts_with(b"http") || value.starts_with(b"sha");
    if other || begins(HARMLESS) || is_stand_in(value) && !long {
        return false;
    }
    let speaks = SPEAKING.iter().any(|word| name.windows(word.len()).any(|window| window == word.as_bytes()));
    long || speaks && value.len() >= 8 && looks_random(value, 8) && value.iter().any(u8::is_ascii_digit)
}

/// Beginnings of the names of cookies for statistics and settings.
const HARMLESS: &[&str] = &[
    "_ga",
    "_gid",
    "_gat",
    "_gcl",
    "_fbp",
    "__utm",
    "_hj",
    "_octo",
    "_pk_",
    "_uet",
    "_clck",
    "_clsk",
    "amp_",
    "ajs_",
    "mp_",
    "optanon",
    "cookieconsent",
    "euconsent",
    "intercom-device",
    "path",
    "domain",
    "expires",
    "max-age",
    "geo",
    "samesite",
    "version",
    "lang",
    "locale",
    "theme",
    "tz",
    "timezone",
    "color",
    "preferred",
];

/// Words that the names of secret cookies contain.
const SPEAKING: &[&str] = &[
    "sess",
    "sid",
    "auth",
    "token",
    "jwt",
    "login",
    "logged",
    "remember",
    "xsrf",
    "csrf",
    "secure",
    "host-",
    "identity",
    "sso",
    "ticket",
    "aspnet",
    "aspx",
    "user",
    "account",
    "credential",
    "secret",
    "key",
    "clearance",
    "li_at",
    "ct0",
];

/// Returns the value assigned to the name of a session cookie at `hit`.
pub(crate) fn named(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let rest = text[hit.end..].iter().take(80);
    let end = hit.end + rest.take_while(|b| is_word(**b) || b".-".contains(b)).count();
    let value =
        if text.get(end) == Some(&b'\t') { cell(text, end + 1) } else { assigned(text, hit.start, end)? };
    let secret = &text[value.clone()];
    let uuid = secret.len() == 36 && secret.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    (looks_random(secret, 20) && !uuid && !is_stand_in(secret)).then_some(value)
}

/// Returns the value in a line of a cookie file. Such a line has `TRUE`, `/`, `FALSE`, a time, a name and the value,
/// separated by tabs.
pub(crate) fn in_file(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let mut at = hit.end;
    let line = &text[at..text.len().min(at + 200)];
    let line = &line[..line.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(line.len())];
    let mut cells = line.split(|b| *b == b'\t');
    let (secure, time, name) = (cells.next()?, cells.next()?, cells.next()?);
    at += secure.len() + time.len() + name.len() + 3;
    let value = cell(text, at.min(text.len()));
    let known =
        matches!(secure, b"TRUE" | b"FALSE") && !time.is_empty() && time.iter().all(u8::is_ascii_digit);
    (known && is_secret(name, &text[value.clone()])).then_some(value)
}

/// Returns the cell that begins at `start` and ends at the next tab or line end.
fn cell(text: &[u8], start: usize) -> Range<usize> {
    let length = text[start..].iter().take(4096).take_while(|b| b.is_ascii_graphic()).count();
    start..start + length
}
