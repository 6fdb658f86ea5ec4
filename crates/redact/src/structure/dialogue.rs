//! Finds passwords in the lines that a client sends to log in to a server. The protocols are Redis, SMTP, IMAP, POP3,
//! FTP, IRC, XMPP and STOMP. Also finds passwords in `net use` of Windows.

use std::ops::Range;

use super::line_end;
use crate::edges::is_word;
use crate::form::{is_stand_in, is_template};
use crate::shape::{bare, is_spoken, is_stated};

/// Returns the password after the command at `hit`.
pub(crate) fn login(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let upper = !text[hit.clone()].iter().any(u8::is_ascii_lowercase);
    let word = text[hit.clone()].to_ascii_uppercase();
    let end = line_end(text, hit.end, 600)?;
    let rest = hit.end..end;
    match word.as_slice() {
        b"334 UGFZC3DVCMQ6" => return encoded(text, end),
        b"MECHANISM='PLAIN'" | b"MECHANISM=\"PLAIN\"" => {
            let start = hit.end + text[rest.clone()].iter().position(|b| *b == b'>')? + 1;
            return base64(text, start);
        }
        b"NET USE " | b"NET USER " => return windows(text, rest, word.starts_with(b"NET USER")),
        b"REQUIREPASS " | b"MASTERAUTH " => {
            return last(text, rest).filter(|range| is_given(&text[range.clone()]));
        }
        b"\"AUTH\" " => return last(text, rest).filter(|range| is_given(&text[range.clone()])),
        b"FTP> USER " => {
            let words = words(text, rest);
            let password = words.get(1).filter(|_| words.len() == 2)?.clone();
            return is_given(&text[password.clone()]).then_some(password);
        }
        b"SETUSER " => return acl(text, rest),
        b"IDENTIFY " => {
            let said = text[hit.start.saturating_sub(40)..hit.start].to_ascii_lowercase();
            let served = said.windows(8).any(|it| it == b"nickserv");
            return last(text, rest).filter(|range| served && is_stated(&text[range.clone()]));
        }
        _ => {}
    }
    let lead = lead(text, hit.start);
    let shown = match lead {
        Lead::Other => return None,
        Lead::Nothing => upper,
        Lead::Prompt | Lead::Tag => true,
    };
    let words = words(text, rest.clone());
    let password = match (word.as_slice(), words.as_slice()) {
        (b"AUTH\r\n", _) => return counted(text, hit.end),
        (b"AUTH " | b"AUTHENTICATE ", [method, token]) if is_method(&text[method.clone()]) => {
            return base64(text, token.start);
        }
        (b"AUTH ", [password]) | (b"AUTH ", [_, password]) => password,
        (b"LOGIN ", [_, password]) => password,
        (b"PASS ", [password]) => password,
        _ => return None,
    };
    let password = bare(text, password.clone());
    let value = &text[password.clone()];
    // After `USER`, only a password can follow.
    let asked = || {
        let before = text[hit.start.saturating_sub(240)..hit.start].to_ascii_uppercase();
        before.windows(5).any(|it| it == b"USER ")
    };
    let sure = lead == Lead::Tag || lead == Lead::Prompt || word == b"PASS " && asked();
    let path = value.contains(&b'/') && value.contains(&b'.');
    if is_method(value) {
        return None;
    }
    let found = shown && !path && if sure { is_given(value) } else { is_stated(value) };
    found.then_some(password)
}

/// The text on a line before a command of a protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// Nothing.
    Nothing,
    /// A prompt such as `127.0.0.1:6379>`, or the sign of one side, such as `C:`.
    Prompt,
    /// The tag of an IMAP command, such as `a1`.
    Tag,
    /// Anything else.
    Other,
}

/// Returns the kind of text on the line before the command at `at`.
fn lead(text: &[u8], at: usize) -> Lead {
    let before = &text[at.saturating_sub(80)..at];
    let line = &before[before.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
    let line = line.trim_ascii();
    let hello = line.len() > 6 && line[..6].eq_ignore_ascii_case(b"hello ");
    let word = line.rsplit(|b| *b == b' ').next().unwrap_or(line);
    let tag = word == b"."
        || word.len() <= 8
            && word.iter().any(u8::is_ascii_digit)
            && word.iter().all(u8::is_ascii_alphanumeric)
            && word.first().is_some_and(u8::is_ascii_alphabetic);
    let quoted = line.ends_with(b"\"") || line.ends_with(b"'");
    if line.is_empty() {
        Lead::Nothing
    } else if hello
        || [&b">"[..], b"C:", b"$", b"<-", b"c:", b"CLIENT:", b"client:", b"Client:"]
            .iter()
            .any(|sign| line.ends_with(sign))
    {
        Lead::Prompt
    } else if tag && !quoted && (word.len() == line.len() || line.contains(&b':') || line.starts_with(b">")) {
        Lead::Tag
    } else {
        Lead::Other
    }
}

/// Returns whether `value` may be a password that is given at a prompt. Only placeholders are not.
fn is_given(value: &[u8]) -> bool {
    is_stated(value)
        || value.len() >= 6
            && value.iter().all(u8::is_ascii_graphic)
            && !is_template(value)
            && !is_stand_in(value)
            && (value.iter().any(u8::is_ascii_digit) || value.contains(&b'-'))
}

/// Returns whether `word` is the name of a method of SASL.
fn is_method(word: &[u8]) -> bool {
    const METHODS: [&[u8]; 9] = [
        b"PLAIN",
        b"LOGIN",
        b"XOAUTH2",
        b"OAUTHBEARER",
        b"CRAM-MD5",
        b"DIGEST-MD5",
        b"NTLM",
        b"GSSAPI",
        b"EXTERNAL",
    ];
    METHODS.iter().any(|method| word.eq_ignore_ascii_case(method))
        || word.to_ascii_uppercase().starts_with(b"SCRAM-")
}

/// Returns the words of `range`.
fn words(text: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
    let (mut words, mut at) = (Vec::new(), range.start);
    while at < range.end && words.len() < 12 {
        let run = text[at..range.end].iter().take_while(|b| b.is_ascii_graphic()).count();
        if run > 0 {
            words.push(at..at + run);
        }
        at += run.max(1);
    }
    // The words after `SETNAME` in `HELLO 3 AUTH … SETNAME …` don't belong to the login.
    if let Some(place) = words.iter().position(|word| text[word.clone()].eq_ignore_ascii_case(b"SETNAME")) {
        words.truncate(place);
    }
    words
}

/// Returns the last word of `range`.
fn last(text: &[u8], range: Range<usize>) -> Option<Range<usize>> {
    words(text, range).pop().map(|word| bare(text, word))
}

/// Returns the base64 at `at`, if it may hold a password.
fn base64(text: &[u8], at: usize) -> Option<Range<usize>> {
    let run =
        text[at..].iter().take(1024).take_while(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b)).count();
    let whole = text.get(at + run).is_none_or(|b| b" \r\n<\"'".contains(b));
    (run >= 8 && whole).then_some(at..at + run)
}

/// Returns the base64 on the line after `end`.
fn encoded(text: &[u8], end: usize) -> Option<Range<usize>> {
    let next = line_end(text, (end + 1).min(text.len()), 600)?;
    let word = last(text, end + 1..next)?;
    // `bare` may remove a sign at the end that belongs to the base64. Reading the base64 from its beginning includes
    // this sign again.
    base64(text, word.start)
}

/// Returns the password after `AUTH` in the protocol of Redis. In this protocol, a string consists of its length, such
/// as `$12`, a line end and the text. If two strings follow, the password is the last one.
fn counted(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (mut at, mut found) = (at, None);
    for _ in 0..2 {
        if text.get(at) != Some(&b'$') {
            break;
        }
        let start = line_end(text, at, 12)? + 1;
        let end = line_end(text, start.min(text.len()), 300)?;
        let range = start..start + text.get(start..end)?.trim_ascii_end().len();
        found = Some(range);
        at = end + 1;
    }
    found.filter(|range| is_given(&text[range.clone()]))
}

/// Returns the password after `>` in `ACL SETUSER user on >password`.
fn acl(text: &[u8], rest: Range<usize>) -> Option<Range<usize>> {
    let word = words(text, rest).into_iter().find(|word| text[word.start] == b'>')?;
    is_given(&text[word.start + 1..word.end]).then_some(word.start + 1..word.end)
}

/// Returns the password in `net use Z: \\server\share password /user:…` and `net user name password /add`.
fn windows(text: &[u8], rest: Range<usize>, user: bool) -> Option<Range<usize>> {
    let words = words(text, rest);
    let named =
        user || words.iter().any(|word| text[word.clone()].to_ascii_lowercase().starts_with(b"/user:"));
    let plain = |word: &&Range<usize>| {
        let word = &text[(*word).clone()];
        !(word.starts_with(b"/") || word.starts_with(b"\\") || word.ends_with(b":") || word == b"*")
    };
    let mut plain = words.iter().filter(plain);
    let password = bare(text, if user { plain.nth(1) } else { plain.next() }?.clone());
    let value = &text[password.clone()];
    (named
        && (is_given(value) || is_spoken(value))
        && !value.iter().all(|b| is_word(*b) && b.is_ascii_uppercase()))
    .then_some(password)
}
