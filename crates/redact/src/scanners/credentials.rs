//! Finds credentials that are identified by the form around them: JWTs, URLs, authorisation headers, AWS pairs.

use std::ops::Range;

use crate::edges::{is_word, starts_word};
use crate::form::{is_monotonous, is_stand_in, is_template, looks_keyed, looks_random};

/// Returns the JSON Web Token that begins at `start`. Increases `read_until` beyond the bytes at which no other token
/// can begin.
pub(crate) fn jwt(text: &[u8], start: usize, read_until: &mut usize) -> Option<Range<usize>> {
    if !starts_word(text, start) {
        return None;
    }
    let part = |at: usize| text[at..].iter().take_while(|b| is_word(**b) || **b == b'-').count();
    let mut end = start + part(start);
    let first = end;
    // A token that begins later within this first part would share the other parts, so it is not searched.
    *read_until = first;
    if first - start < 12 || text.get(first) != Some(&b'.') {
        return None;
    }
    let payload = text[first + 1..].starts_with(b"eyJ");
    let mut parts = 1;
    while parts < 5 && text.get(end) == Some(&b'.') {
        let length = part(end + 1);
        if length == 0 && (parts > 1 || text.get(end + 1) != Some(&b'.')) {
            break;
        }
        end += 1 + length;
        parts += 1;
    }
    let whole = parts >= 3 || payload && end - first > 12;
    (whole && !is_monotonous(&text[start..first])).then_some(start..end)
}

/// Returns the password in the URL whose `://` is at `hit`. If the URL has a user but no password, returns the user
/// if it looks like a token.
pub(crate) fn url(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let at = hit.start;
    if text[at] != b':' {
        return thin(text, hit.end);
    }
    let scheme =
        text[..at].iter().rev().take(24).take_while(|b| b.is_ascii_alphanumeric() || b"+.-".contains(b));
    let scheme = &text[at - scheme.count()..at];
    if scheme.is_empty() {
        return None;
    }
    let start = at + 3;
    let (mut colon, mut sign, mut path) = (None, None, false);
    // A password may contain characters that should have been escaped. But only in the address of a database may it
    // extend beyond the first slash.
    let store = || {
        STORES.iter().any(|name| {
            scheme.len() >= name.len() && scheme[..name.len()].eq_ignore_ascii_case(name.as_bytes())
        })
    };
    for (place, &byte) in text.iter().enumerate().skip(start).take(300) {
        match byte {
            b':' if colon.is_none() && !path => colon = Some(place),
            b':' if text[place..].starts_with(b"://") => break,
            b'@' if !path
                || colon.is_some() && text.get(place + 1).is_some_and(|b| is_word(*b) || *b == b'[') =>
            {
                sign = Some(place);
            }
            b'#' if path && sign.is_some() => {}
            b'/' | b'?' | b'#' if sign.is_some() => break,
            b'/' | b'?' | b'#' if colon.is_some() && (path || store()) => path = true,
            b'/' | b'?' | b'#' => break,
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | 0 => break,
            _ => {}
        }
    }
    let sign = sign?;
    match colon.filter(|&colon| colon < sign) {
        Some(colon) => {
            let (user, password) = (&text[start..colon], &text[colon + 1..sign]);
            let word = password.len() < 4 && password.iter().all(u8::is_ascii_lowercase);
            let open = password.len() < 2
                || word
                || password.eq_ignore_ascii_case(user)
                || is_template(password)
                || is_filled_in(password)
                || password.starts_with(b"$")
                || password.iter().all(|b| b"*x.Xx-_".contains(b))
                || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
            (!open).then_some(colon + 1..sign)
        }
        None => {
            let user = &text[start..sign];
            (looks_random(user, 20) && !user.contains(&b'.')).then_some(start..sign)
        }
    }
}

/// Returns whether `password` is or contains a placeholder or a call, which is a name in brackets, or empty brackets.
fn is_filled_in(password: &[u8]) -> bool {
    let Some(open) = password.iter().position(|b| b"{([".contains(b)) else { return false };
    let close = match password[open] {
        b'{' => b'}',
        b'(' => b')',
        _ => b']',
    };
    let Some(length) = password[open..].iter().position(|b| *b == close) else { return false };
    let name = &password[open + 1..open + length];
    let plain = |b: &u8| is_word(*b) || b" .:-'\"*".contains(b);
    name.iter().all(plain) && (name.is_empty() || !name[0].is_ascii_digit()) && !looks_random(name, 8)
}

/// Returns the password in `jdbc:oracle:thin:user/password@`; `at` is where the user begins.
fn thin(text: &[u8], at: usize) -> Option<Range<usize>> {
    let kind = |b: u8| b.is_ascii_graphic() && !b"\"'`<>{}$@".contains(&b);
    let run = text[at..].iter().take(128).take_while(|b| kind(**b)).count();
    let slash = text[at..at + run].iter().position(|b| *b == b'/')?;
    let password = &text[at + slash + 1..at + run];
    let open = slash == 0 || password.len() < 4 || is_stand_in(password);
    (!open && text.get(at + run) == Some(&b'@')).then_some(at + slash + 1..at + run)
}

/// Schemes of databases, or beginnings of such schemes. The paths of their URLs have no `@`.
const STORES: &[&str] = &[
    "postgres",
    "mysql",
    "mariadb",
    "mongodb",
    "redis",
    "valkey",
    "amqp",
    "mssql",
    "sqlserver",
    "clickhouse",
    "cockroach",
    "oracle",
    "cassandra",
    "couchbase",
    "nats",
    "kafka",
    "mqtt",
    "smtp",
    "imap",
    "ftp",
    "sftp",
    "ldap",
    "snowflake",
    "db2",
    "neo4j",
    "bolt",
    "influx",
    "jdbc",
];

/// Words that documentation uses in URLs in place of a password.
pub(crate) const WORDS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "pwd",
    "pw",
    "secret",
    "user",
    "username",
    "postgres",
    "root",
    "admin",
    "guest",
    "test",
    "example",
    "changeme",
    "token",
    "your-password",
    "yourpassword",
    "your_password",
    "mypassword",
    "xyz",
    "db_password",
    "mysql",
    "redis",
    "redacted",
    "hidden",
    "placeholder",
    "dummy",
    "testpass",
    "x-oauth-basic",
    "api_key",
    "apikey",
    "key",
    "access_token",
    "auth",
    "passw0rd",
    "my_password",
    "my-password",
];

/// Returns the credentials after the word `Bearer` at `hit`.
pub(crate) fn bearer(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let start = after_scheme(text, hit)?;
    let run = text[start..].iter().take(4096).take_while(|b| is_word(**b) || b"-.~+/=".contains(b)).count();
    let mut end = start + run;
    while end > start && text[end - 1] == b'.' {
        end -= 1;
    }
    let token = &text[start..end];
    (looks_random(token, 16) && !is_stand_in(token)).then_some(start..end)
}

/// Returns the credentials after the word `Basic` at `hit`: the base64 of `user:password`.
pub(crate) fn basic(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let start = after_scheme(text, hit)?;
    let run = text[start..]
        .iter()
        .take(1024)
        .take_while(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b))
        .count();
    let decoded = base64(&text[start..start + run])?;
    let colon = decoded.iter().position(|b| *b == b':')?;
    let plain = decoded.iter().all(|b| (b' '..=b'~').contains(b));
    let named = WORDS.iter().any(|word| decoded[colon + 1..].eq_ignore_ascii_case(word.as_bytes()));
    (run >= 8 && plain && !named).then_some(start..start + run)
}

/// Returns the credentials in the header whose name is at `hit`. The credentials follow the name of a scheme. The
/// schemes Bearer and Basic have separate rules.
pub(crate) fn authorization(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let signs = text[hit.end..].iter().take(16).take_while(|b| b"\"'`\\ \t:=,".contains(b)).count();
    let scheme = hit.end + signs;
    let joined = text[hit.end..scheme].iter().any(|b| matches!(b, b':' | b'=' | b','));
    let length = text[scheme..].iter().take(33).take_while(|b| is_word(**b) || b"-.".contains(b)).count();
    let space = scheme + length;
    if !joined
        || !(2..=32).contains(&length)
        || !text[scheme].is_ascii_alphabetic()
        || text.get(space) != Some(&b' ')
    {
        return None;
    }
    let start = space + text[space..].iter().take(8).take_while(|b| **b == b' ').count();
    let run = text[start..]
        .iter()
        .take(4096)
        .take_while(|b| b.is_ascii_graphic() && !b"\"'`,;<>(){}\\".contains(b));
    let end = start + run.count();
    let secret = &text[start..end];
    // Schemes with named parameters are left out, such as `Digest username=…`.
    let named =
        secret.iter().position(|b| *b == b'=').is_some_and(|at| secret[at..].iter().any(|b| *b != b'='));
    (!named && looks_random(secret, 16) && !is_stand_in(secret)).then_some(start..end)
}

/// Returns the beginning of the credentials that follow the scheme at `hit`.
fn after_scheme(text: &[u8], hit: &Range<usize>) -> Option<usize> {
    if !starts_word(text, hit.start) {
        return None;
    }
    let rest = &text[hit.end..];
    if rest.starts_with(b"%20") {
        return Some(hit.end + 3);
    }
    let space = rest.iter().take(8).take_while(|b| matches!(b, b' ' | b'\t' | b'+' | b':')).count();
    (space > 0).then_some(hit.end + space)
}

/// Decodes standard base64, with or without padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

/// Returns the secret access key that follows the AWS access key id at `start`, within a line or two.
pub(crate) fn aws_pair(text: &[u8], start: usize) -> Option<Range<usize>> {
    let id = text.get(start..start + 20)?;
    let whole = id.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()) && starts_word(text, start);
    if !whole || text.get(start + 20).is_some_and(|b| is_word(*b)) {
        return None;
    }
    let kind = |b: u8| b.is_ascii_alphanumeric() || b == b'/' || b == b'+';
    let mut at = start + 20;
    let limit = text.len().min(at + 160);
    while at < limit {
        if !kind(text[at]) {
            at += 1;
            continue;
        }
        let run = text[at..].iter().take(41).take_while(|b| kind(**b)).count();
        let key = &text[at..at + run];
        if run == 40 && looks_keyed(key) {
            return Some(at..at + run);
        }
        at += run;
    }
    None
}
