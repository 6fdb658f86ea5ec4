//! What joins a name to a value, and how far the value goes.
//!
//! A value ends where the text it stands in ends it: quotes, escaped or not, in code and JSON; a space, a semicolon or
//! an `&` elsewhere; the end of the line in a file of settings, whose values may hold any sign. It is read no further
//! than some hundreds of bytes, whatever the text.

use std::ops::Range;

use super::edges::is_word;
use super::form::is_stand_in;

/// What is assigned to a name.
#[derive(Debug)]
pub(super) struct Value {
    pub range: Range<usize>,
    /// In quotes of its own.
    pub quoted: bool,
    /// Joined without a space, as in a shell, an address or a settings file; or given to a flag.
    pub tight: bool,
    /// The rest of a line that begins with the name.
    pub line: bool,
    /// Joined by a comma, as any two names in a list are.
    pub listed: bool,
    /// Said to be somebody's own: `my password is …`.
    pub owned: bool,
}

/// The longest value read that no quotes hold; in quotes four times as much.
const LONGEST: usize = 320;

/// How a name is joined to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// `=`, `:` and their like.
    Sign,
    /// `("`.
    Call,
    /// The comma between a name and a value both in quotes.
    List,
    /// The space after a flag.
    Flag,
    /// ` is `, and the bars of a table.
    Prose,
}

/// Returns what is assigned to the name that holds the word at `word` and ends at `end`.
pub(super) fn value_of(text: &[u8], word: usize, end: usize) -> Option<Value> {
    let (joint, at) = joint(text, word, end)?;
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
    if matches!(joint, Joint::Call | Joint::List) && !quoted
        || range.is_empty()
        || !quoted && range.len() > LONGEST
    {
        return None;
    }
    let tight = joint == Joint::Flag
        || joint == Joint::Sign && !text[end..at].contains(&b' ') && text[at - 1] != b':';
    let mut line = false;
    if !quoted {
        if joint == Joint::Sign {
            (range.end, line) = loose_end(text, &range);
        } else {
            range.end = word_end(text, &range);
        }
        // What goes on as a call, an index, a path or a template is code.
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
    let name = &text[..name_start(text, word)];
    let owned = OWNERS.iter().any(|owner| name.ends_with(owner.as_bytes()));
    Some(Value { range, quoted, tight, line, listed: joint == Joint::List, owned })
}

/// Returns what joins the name holding `word` and ending at `at` to a value, and where the value begins.
pub(super) fn joint(text: &[u8], word: usize, mut at: usize) -> Option<(Joint, usize)> {
    let mut quoted = false;
    for _ in 0..8 {
        match *text.get(at)? {
            b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\'' | b'\\')) => at += 1,
            b'"' | b'\'' | b'`' => {
                quoted = true;
                at += 1;
            }
            b']' | b'*' => at += 1,
            b'?' if text.get(at + 1) == Some(&b':') => at += 1,
            b'&' if text[at..].starts_with(b"&quot;") => {
                quoted = true;
                at += 6;
            }
            b'%' if text[at..].starts_with(b"%22") => {
                quoted = true;
                at += 3;
            }
            _ => break,
        }
    }
    let spaces = spaces(text, at);
    at += spaces;
    let rest = &text[at..];
    let first = *rest.first()?;
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
        let next = rest.get(sign.len());
        let other = match *sign {
            // `user:password@` in an address is told by the address.
            ":" => next == Some(&b':') || text[..name_start(text, word)].ends_with(b"://"),
            "=" => next == Some(&b'~'),
            _ => false,
        };
        let at = at + sign.len();
        let at = if *sign == ":" { typed(text, at).unwrap_or(at) } else { at };
        return (!other).then(|| (Joint::Sign, margin(text, at)));
    }
    let apart = matches!(first, b',' | b'\n' | b'\r') || spaces > 0 || rest.starts_with(b"\\n");
    if apart && let Some(at) = labelled(text, at) {
        return Some((Joint::Sign, at));
    }
    let name = name_start(text, word);
    match first {
        b',' if quoted => Some((Joint::List, margin(text, at + 1))),
        b'(' => Some((Joint::Call, margin(text, at + 1))),
        b'>' if name > 0 && text[name - 1] == b'<' => Some((Joint::Sign, at + 1)),
        b'|' if spaces > 0 => Some((Joint::Prose, margin(text, at + 1))),
        b'i' if spaces > 0 && rest.starts_with(b"is ") => Some((Joint::Prose, margin(text, at + 3))),
        b'i' if spaces > 0 && rest.starts_with(b"is: ") => Some((Joint::Prose, margin(text, at + 4))),
        _ if spaces == 0 => None,
        // SQL: `PASSWORD '…'`, `IDENTIFIED BY '…'`.
        b'\'' => Some((Joint::Flag, at)),
        _ if text[name..word].starts_with(b"-") => Some((Joint::Flag, at)),
        _ if LEADS.iter().any(|lead| text[..name].ends_with(lead.as_bytes())) => Some((Joint::Flag, at)),
        // A `.netrc`: `login … password …`.
        _ if text[name.saturating_sub(80)..name].windows(6).any(|w| w == b"login ") => {
            Some((Joint::Flag, at))
        }
        _ => None,
    }
}

/// What stands before a name whose value is told in a sentence.
const OWNERS: &[&str] = &["my ", "My ", "our ", "Our "];

/// What stands before a name that a mere space joins to its value.
const LEADS: &[&str] = &["ENV ", "#define ", "setx ", "set -x ", "set -gx ", "set -Ux "];

/// The longer before those they begin with.
const SIGNS: &[&str] = &[
    "===", "!==", "||=", "??=", "::=", "==", "!=", "=>", ":=", "?=", "+=", "<-", "=", ":", "%3D", "%3d",
    "%3A", "%3a", "\\u003d", "：",
];

fn spaces(text: &[u8], at: usize) -> usize {
    text[at..].iter().take(40).take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// Returns where a value begins after a joint that ends at `at`: after spaces, and after a line end before a quote.
fn margin(text: &[u8], at: usize) -> usize {
    let mut next = at + spaces(text, at);
    while text.get(next) == Some(&b'*') {
        next += 1 + spaces(text, next + 1);
    }
    if text.get(next) == Some(&b'\n') {
        let line = next + 1 + spaces(text, next + 1);
        if matches!(text.get(line), Some(b'"' | b'\'')) {
            return line;
        }
    }
    next
}

/// Returns where the value begins in `: Type = value`; `at` follows the colon.
fn typed(text: &[u8], at: usize) -> Option<usize> {
    let kind = |b: u8| is_word(b) || b" &<>[]|?.:'".contains(&b);
    let length = text[at..].iter().take(48).take_while(|b| kind(**b)).count();
    let sign = at + length;
    let assigned =
        text.get(sign) == Some(&b'=') && text.get(sign + 1) == Some(&b' ') && text[sign - 1] == b' ';
    (assigned && length > 1).then_some(sign + 1)
}

/// Returns where the value begins in `name: NAME` followed by `value: …`, as attributes, lines or members.
fn labelled(text: &[u8], at: usize) -> Option<usize> {
    let mut next = at;
    while next < at + 60 {
        match text.get(next)? {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\'' => next += 1,
            b'\\' => next += if matches!(text.get(next + 1), Some(b'n')) { 2 } else { 1 },
            _ => break,
        }
    }
    let label = text.get(next..next + 5)?;
    if !label.eq_ignore_ascii_case(b"value") {
        return None;
    }
    next += 5;
    while matches!(text.get(next), Some(b'"' | b'\'' | b'\\')) {
        next += 1;
    }
    next += spaces(text, next);
    matches!(text.get(next), Some(b'=' | b':')).then(|| margin(text, next + 1))
}

/// Returns the value that begins at `at`, and whether it is quoted.
pub(super) fn opened(text: &[u8], at: usize, joint: Joint) -> Option<(Range<usize>, bool)> {
    // A prefix of a string literal, or a call around one.
    let prefix =
        text[at.min(text.len())..].iter().take(2).take_while(|b| b"bBrRfFuUL@$&".contains(b)).count();
    if let Some(range) = quoted(text, at + prefix).or_else(|| quoted(text, at)) {
        return Some((range, true));
    }
    let name = text[at..].iter().take(48).take_while(|b| is_word(**b) || b".:!".contains(b)).count();
    if name > 0 && text.get(at + name) == Some(&b'(') {
        let inner = at + name + 1;
        let inner = inner + usize::from(matches!(text.get(inner), Some(b'&' | b'b')));
        return quoted(text, inner).map(|range| (range, true));
    }
    let entity: &[u8] = b"&quot;";
    let at = if text[at..].starts_with(entity) {
        at + entity.len()
    } else if text[at..].starts_with(b"%22") {
        at + 3
    } else {
        at
    };
    if joint == Joint::Flag && text.get(at) == Some(&b'-') {
        return None;
    }
    Some((plain(text, at), false))
}

/// Returns what stands in the quotes, escaped or not, that open at `at`.
fn quoted(text: &[u8], at: usize) -> Option<Range<usize>> {
    let escapes = text.get(at..)?.iter().take(8).take_while(|b| **b == b'\\').count();
    let quote = *text.get(at + escapes).filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
    let mut start = at + escapes + 1;
    if text[start..].starts_with(&[quote, quote]) {
        start += 2;
    }
    let mut slashes = 0;
    for (place, &byte) in text.iter().enumerate().skip(start).take(4 * LONGEST) {
        if byte == quote
            && (slashes <= escapes && (escapes > 0 || slashes == 0) || escapes == 0 && slashes % 2 == 0)
        {
            return Some(start..place - slashes.min(place - start));
        }
        if byte == b'\n' {
            break;
        }
        slashes = if byte == b'\\' { slashes + 1 } else { 0 };
    }
    let run = plain(text, start);
    (!run.is_empty()).then_some(run)
}

/// Returns the unquoted value that begins at `start`.
fn plain(text: &[u8], start: usize) -> Range<usize> {
    let mut end = start;
    for &byte in text.iter().skip(start).take(LONGEST + 1) {
        if !byte.is_ascii_graphic() || b"\"'`,;&<>()[]{}|\\=".contains(&byte) {
            break;
        }
        if byte == b'%'
            && [&b"%26"[..], b"%22", b"%20", b"%2C", b"%0A"].iter().any(|code| text[end..].starts_with(code))
        {
            break;
        }
        end += 1;
    }
    let padding = text[end..].iter().take(2).take_while(|b| **b == b'=').count();
    if end > start && !text.get(end + padding).is_some_and(|b| is_word(*b) || *b == b'=') {
        end += padding;
    }
    while end > start
        && b".:!?*".contains(&text[end - 1])
        && text.get(end).is_none_or(|b| b" \n\r*".contains(b))
        && !is_part(text, start..end)
    {
        end -= 1;
    }
    start..end
}

/// Returns the end of a value of words or flags: what stands up to the next space, less the sentence's own signs.
fn word_end(text: &[u8], range: &Range<usize>) -> usize {
    let rest = text[range.end..].iter().take(128);
    let mut end =
        range.end + rest.take_while(|b| b.is_ascii_graphic() && !b"\"'`\\<>(){}[]|".contains(b)).count();
    while end > range.end && b".,;:!?".contains(&text[end - 1]) && !is_part(text, range.start..end) {
        end -= 1;
    }
    end
}

/// Whether the sign with which `range` ends belongs to the value, the sentence going on behind it: `… Xk92! and`.
fn is_part(text: &[u8], range: Range<usize>) -> bool {
    let goes_on =
        text.get(range.end) == Some(&b' ') && text.get(range.end + 1).is_some_and(u8::is_ascii_lowercase);
    let value = &text[range.start..range.end - 1];
    text[range.end - 1] == b'!' && goes_on && value.iter().any(u8::is_ascii_digit) && !is_stand_in(value)
}

/// Returns the end of a value that may hold more than `range`: a whole line of settings, a part between semicolons, an
/// element's content; and whether the value is the rest of a line of settings.
fn loose_end(text: &[u8], range: &Range<usize>) -> (usize, bool) {
    let next = text.get(range.end).copied().unwrap_or(b'\n');
    if b"\"'`\\ \t".contains(&next) {
        return (range.end, false);
    }
    let run = |stops: &[u8]| {
        let rest = text[range.end..].iter().take(128);
        range.end + rest.take_while(|b| b.is_ascii_graphic() && !stops.contains(b)).count()
    };
    // The line up to the value, and in it the name and the sign.
    let before = &text[range.start.saturating_sub(80)..range.start];
    let line = &before[before.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
    let starts = line.len() < before.len() || range.start < 80;
    let sign = line.iter().rposition(|b| !b" =:".contains(b)).map_or(0, |place| place + 1);
    let name =
        line[..sign].iter().rposition(|b| !is_word(*b) && !b"-.".contains(b)).map_or(0, |place| place + 1);
    let lead = &line[..name.min(sign)];
    let pairs = sign + 1 == line.len() && {
        let end =
            text[range.end..].iter().take(64).position(|b| *b == b';' || !b.is_ascii_graphic()).unwrap_or(64);
        let rest = text.get(range.end + end..).unwrap_or_default();
        let key = rest.iter().skip(1).take(30).take_while(|b| b.is_ascii_alphabetic() || **b == b' ').count();
        lead.trim_ascii_end().ends_with(b";")
            || rest.first() == Some(&b';') && key > 2 && rest.get(1 + key) == Some(&b'=')
    };
    if pairs {
        return (run(b"\"'`;<>\\"), false);
    }
    if range.start > 0 && text[range.start - 1] == b'>' {
        let end = run(b"<");
        return (if text[end..].starts_with(b"</") { end } else { range.end }, false);
    }
    let signed = lead.strip_prefix(b"+").or(lead.strip_prefix(b"-")).unwrap_or(lead).trim_ascii();
    if starts && [&b""[..], b"export", b"ENV", b"ARG", b"set", b"-", b"-e"].contains(&signed) {
        let end = run(b"\"'`\\");
        let value = &text[range.start..end];
        let code =
            value.iter().any(|b| b"(){}[]<>".contains(b)) || value.ends_with(b",") || value.ends_with(b";");
        if !code && text.get(end).is_none_or(|b| matches!(b, b'\n' | b'\r')) {
            return (end, true);
        }
    }
    (range.end, false)
}

/// Words before the credentials in a header.
const SCHEMES: &[&str] =
    &["bearer", "token", "apikey", "api-key", "key", "bot", "ssws", "geniekey", "splunk", "digest"];

/// Returns the length of the scheme, and the space after it, with which `value` begins.
fn scheme(value: &[u8]) -> usize {
    let Some(space) = value.iter().take(12).position(|b| *b == b' ') else { return 0 };
    let known = SCHEMES.iter().any(|name| value[..space].eq_ignore_ascii_case(name.as_bytes()));
    if known { space + 1 } else { 0 }
}

/// Returns where the name begins that holds the byte at `at`.
pub(super) fn name_start(text: &[u8], at: usize) -> usize {
    at - text[..at].iter().rev().take(64).take_while(|b| is_word(**b) || b"-.".contains(b)).count()
}
