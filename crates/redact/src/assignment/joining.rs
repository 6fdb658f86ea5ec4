//! Finds out how a name is joined to its value, by the signs, words and spaces between the two.

use super::choice::{choice, content, method};
use super::extent::BLANKS;
use super::joint::Joint;
use crate::edges::is_word;

/// Returns how a name is joined to a value, and where the value begins. The name contains the byte at `word` and
/// ends at `named`.
pub(super) fn joint(text: &[u8], word: usize, named: usize) -> Option<(Joint, usize)> {
    let (at, quoted) = after_quotes(text, named)?;
    let spaces = spaces(text, at);
    let at = at + spaces;
    let rest = &text[at..];
    let first = *rest.first()?;
    let name = name_start(text, word);
    let sign = if first.is_ascii_alphanumeric() {
        None
    } else {
        SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes()))
    };
    if let Some(sign) = sign {
        let next = rest.get(sign.len());
        let other = match *sign {
            // A separate rule finds `user:password@` in addresses.
            ":" => next == Some(&b':') || text[..name].ends_with(b"://"),
            "=" => next == Some(&b'~'),
            _ => false,
        };
        let at = at + sign.len();
        let at = if *sign == ":" { typed(text, at).unwrap_or(at) } else { at };
        if other {
            return None;
        }
        if let Some(at) = block(text, at).filter(|_| *sign == ":") {
            return Some((Joint::Sign, at));
        }
        return Some(choice(text, at).map_or((Joint::Sign, margin(text, at)), |at| (Joint::Default, at)));
    }
    if quoted && let Some(at) = part(text, name, at) {
        return Some((Joint::Flag, at));
    }
    let apart = matches!(first, b',' | b'\n' | b'\r' | b'{') || spaces > 0 || rest.starts_with(b"\\n");
    if apart && let Some(at) = labelled(text, at) {
        return Some((Joint::Sign, at));
    }
    if spaces == 0 && first.is_ascii() && !b"()>,|?{<\r\n".contains(&first) {
        return None;
    }
    if let Some(length) = COPULAS.iter().find_map(|is| rest.starts_with(is.as_bytes()).then_some(is.len())) {
        return Some((Joint::Prose, margin(text, at + length)));
    }
    if spaces > 0 && (rest.starts_with(b"BY ") || rest.starts_with(b"by ")) {
        // `IDENTIFIED WITH mysql_native_password BY '…'`.
        return matches!(rest.get(3), Some(b'\'' | b'"')).then_some((Joint::Flag, at + 3));
    }
    if let Some(at) = alternative(rest).map(|length| at + length) {
        return Some((Joint::Quoted, margin(text, at)));
    }
    if spaces > 0
        && let Some(length) = purpose(rest)
    {
        return Some((Joint::Prose, margin(text, at + length)));
    }
    if let Some(joined) = by_punctuation(text, name, at, quoted, spaces) {
        return joined;
    }
    by_space(text, word, name, named, at, quoted)
}

/// Returns where the value of a YAML key begins if an anchor, a tag or the sign of a block precedes the value:
/// `key: &anchor value`, `key: !!str value`, `key: |` and the value on the next line. The key's colon ends at `at`.
fn block(text: &[u8], at: usize) -> Option<usize> {
    let start = at + spaces(text, at);
    let word = text[start..].iter().take(40).take_while(|b| b.is_ascii_graphic()).count();
    let first = *text.get(start).filter(|_| start > at && word > 0)?;
    let end = start + word;
    let named = || text[start + 1..end].iter().all(|b| is_word(*b) || *b == b'-');
    match first {
        b'&' if word > 1 && named() => (text.get(end) == Some(&b' ')).then(|| margin(text, end)),
        b'!' if text[start..].starts_with(b"!!str ") => Some(margin(text, end)),
        b'|' | b'>' if text[start + 1..end].iter().all(|b| b"+-123456789".contains(b)) => {
            let line = end + text[end..].iter().take(2).take_while(|b| b"\r\n".contains(b)).count();
            let indent = spaces(text, line);
            (line > end && indent > 0).then_some(line + indent)
        }
        _ => None,
    }
}

/// Returns where the quotes and brackets after a name end, and whether there were quotes. Returns `None` if the
/// text ends there.
fn after_quotes(text: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut quoted = false;
    for _ in 0..8 {
        match *text.get(at)? {
            b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\'' | b'\\')) => at += 1,
            b'"' | b'\'' | b'`' => {
                quoted = true;
                at += 1;
            }
            b']' | b'*' => at += 1,
            // The size of an array, as in `PASSWORD[] = "…"` and `password[32] = "…"`.
            b'[' if !quoted && let Some(length) = brackets(text, at) => at += length,
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
    Some((at, quoted))
}

/// Returns how the punctuation at `at` joins a name to a value, and where the value begins. Returns `Some(None)` if
/// that punctuation doesn't join a value, and `None` if there is no punctuation at `at`.
fn by_punctuation(
    text: &[u8],
    name: usize,
    at: usize,
    quoted: bool,
    spaces: usize,
) -> Option<Option<(Joint, usize)>> {
    let rest = &text[at..];
    let joined = match rest[0] {
        b'{' if matches!(rest.get(1), Some(b'"' | b'\'')) => Some((Joint::Call, at + 1)),
        b',' if quoted => {
            // In a call such as `getenv("PASSWORD", "…")` the value is the default of a setting; elsewhere it is an
            // item of a list.
            let call =
                text[..name].strip_suffix(b"\"").or(text[..name].strip_suffix(b"'")).unwrap_or_default();
            let default = DEFAULTS.iter().any(|call_of| call.ends_with(call_of.as_bytes()));
            Some((if default { Joint::Default } else { Joint::List }, margin(text, at + 1)))
        }
        // A comma in a test, as in `assert_eq!(config.password, "…")`, or in a column of a fixture.
        b',' if spaces == 0 && is_compared(text, name) => Some((Joint::Default, margin(text, at + 1))),
        b')' => method(text, at).map(|at| (Joint::Default, at)),
        b'(' => Some((Joint::Call, margin(text, at + 1))),
        b'>' if name > 0 && text[name - 1] == b'<' => Some((Joint::Sign, content(text, at + 1))),
        // `<string name="password">…</string>`.
        b'>' if quoted && spaces == 0 => Some((Joint::Sign, at + 1)),
        // `<key>password</key><string>…</string>`.
        b'<' => element(text, at).map(|at| (Joint::Sign, at)),
        b'|' if spaces > 0 => Some((Joint::Prose, margin(text, at + 1))),
        // In notes: `token - '…'`.
        b'-' if spaces > 0 && (rest.starts_with(b"- '") || rest.starts_with(b"- \"")) => {
            Some((Joint::Sign, at + 2))
        }
        _ if spaces == 0 => None,
        _ => return None,
    };
    Some(joined)
}

/// Returns whether a call that compares two values precedes `name` on its line.
fn is_compared(text: &[u8], name: usize) -> bool {
    let line = &text[name.saturating_sub(40)..name];
    let line = &line[line.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
    ["assert", "expect", "Equal"].iter().any(|word| line.windows(word.len()).any(|it| it == word.as_bytes()))
}

/// Returns where the value of a part of a multipart body begins. The part's name ends at the quote before `at`.
fn part(text: &[u8], name: usize, at: usize) -> Option<usize> {
    if !text[..name].ends_with(b"name=\"")
        || !text[name.saturating_sub(80)..name].windows(9).any(|w| w == b"form-data")
    {
        return None;
    }
    let lines = text[at..].iter().take(200);
    let (mut place, mut last) = (at, 0);
    for byte in lines {
        place += 1;
        match byte {
            b'\n' if last == b'\n' => return Some(place),
            b'\r' => {}
            byte => last = *byte,
        }
    }
    None
}

/// Returns how a name is joined to a value if only spaces separate the two, and where the value begins. The name ends
/// at `named`, and the spaces end at `at`.
fn by_space(
    text: &[u8],
    word: usize,
    name: usize,
    named: usize,
    at: usize,
    quoted: bool,
) -> Option<(Joint, usize)> {
    match text[at] {
        // In SQL: `PASSWORD '…'`, `IDENTIFIED BY '…'`.
        b'\'' => Some((Joint::Flag, at)),
        b'"' if !quoted && begins_line(text, name) => Some((Joint::Quoted, at)),
        _ if text[name..word].starts_with(b"-") => Some((Joint::Flag, at)),
        _ if begins_line(text, name) && ends_line(text, at) => Some((Joint::Flag, at)),
        _ if LEADS.iter().any(|lead| text[..name].ends_with(lead.as_bytes())) => Some((Joint::Flag, at)),
        // In a `.netrc` file: `login … password …`.
        _ if text[name.saturating_sub(80)..name].windows(6).any(|w| w == b"login ") => {
            Some((Joint::Flag, at))
        }
        _ => declared(text, named, at).map(|at| (Joint::Quoted, at)),
    }
}

/// Returns the length of the operator at the beginning of `rest` if it precedes a default, as `||` does.
fn alternative(rest: &[u8]) -> Option<usize> {
    ["|| ", "?? ", "or "].iter().find_map(|sign| rest.starts_with(sign.as_bytes()).then_some(sign.len()))
}

/// Returns the length of the words between a name and its value, if they say the purpose of the password, as in
/// `password for the database is …`.
fn purpose(rest: &[u8]) -> Option<usize> {
    ["for ", "to ", "of ", "on "].iter().find(|word| rest.starts_with(word.as_bytes()))?;
    let kind = |b: u8| is_word(b) || b" -.@/".contains(&b);
    let run = rest.iter().take(48).take_while(|b| kind(**b)).count();
    let is = rest[..run].windows(4).position(|word| word == b" is ").map(|at| at + 4);
    is.or_else(|| rest[run..].starts_with(b": ").then_some(run + 2))
}

/// Returns the length of the brackets at `at`, if they hold one word or number, or nothing.
fn brackets(text: &[u8], at: usize) -> Option<usize> {
    let inner = text[at + 1..].iter().take(24).take_while(|b| is_word(**b)).count();
    (text.get(at + 1 + inner) == Some(&b']')).then_some(inner + 2)
}

/// Returns where the value begins in a declaration whose type follows the name, such as `password string = "…"`.
fn declared(text: &[u8], named: usize, at: usize) -> Option<usize> {
    if text[named] != b' ' {
        return None;
    }
    let kind = |b: u8| is_word(b) || b" .*&<>[]()?{};".contains(&b);
    let length = text[at..].iter().take(40).take_while(|b| kind(**b)).count();
    let sign = at + length;
    let assigned = text.get(sign) == Some(&b'=') && text[sign - 1] == b' ';
    let value = sign + 1 + spaces(text, sign + 1);
    (assigned && matches!(text.get(value), Some(b'"' | b'\'' | b'`' | b'N' | b'@' | b'L'))).then_some(value)
}

/// Returns where the text of the next element begins, if an opening tag follows the closing tag at `at`, as in
/// `</key><string>`.
fn element(text: &[u8], at: usize) -> Option<usize> {
    let tag = text[at..].strip_prefix(b"</")?;
    let close = at + 3 + tag.iter().take(24).position(|b| *b == b'>')?;
    let next = close + text[close..].iter().take(24).take_while(|b| b.is_ascii_whitespace()).count();
    if text.get(next) != Some(&b'<') || text.get(next + 1) == Some(&b'/') {
        return None;
    }
    Some(next + 1 + text[next..].iter().take(24).position(|b| *b == b'>')?)
}

/// Returns whether the line before `at` has only spaces, colons and opening brackets, or ends with a colon.
fn begins_line(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(40)..at];
    let blank = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t' | b':' | b'(')).count();
    blank == before.len() && at < 40
        || before.iter().rev().nth(blank) == Some(&b'\n')
        || at > 0 && text[at - 1] == b':'
}

/// Returns whether the rest of the line from `at` is one word.
fn ends_line(text: &[u8], at: usize) -> bool {
    let run = BLANKS.run(&text[at..], 129);
    let code = text[at..at + run].iter().any(|b| b"()[]{}<>,;:".contains(b));
    run <= 128
        && !code
        && !b"*&-".contains(&text[at])
        && text.get(at + run).is_none_or(|b| matches!(b, b'\n' | b'\r'))
}

/// Words that may come before a name. After such a word, a space is enough to join the name to its value.
const LEADS: &[&str] = &[
    "ENV ",
    "#define ",
    "setx ",
    "set -x ",
    "set -gx ",
    "set -Ux ",
    "setenv ",
    "SetEnv ",
    "fastcgi_param ",
    "use ",
    "use the ",
    "with ",
    "with the ",
    "using ",
    "using the ",
    "(setq ",
    "(define ",
    "(def ",
    "(defparameter ",
    "(defvar ",
    "(defconst ",
];

/// Words and signs between a name and its value in prose, as in `password is …`.
const COPULAS: &[&str] = &[
    "is ",
    "to ",
    "ist jetzt ",
    "ist nun ",
    "lautet: ",
    "is: ",
    "is set to ",
    "was ",
    "ist ",
    "lautet ",
    "es ",
    "é ",
    "est ",
    "es: ",
    "è ",
    "це ",
    "это ",
    "adalah ",
    "هو ",
    "هي ",
    "है ",
    "হল ",
    "হলো ",
    "是：",
    "是:",
    "是",
    "为：",
    "为",
    "為",
    "は",
    "는 ",
    "은 ",
    "는",
    "은",
    "－",
    "— ",
    "– ",
    "- ",
    "-> ",
    "→ ",
];

/// Functions that take a setting's name and its default value. Each entry is the name of a function or the end of its
/// name.
const DEFAULTS: &[&str] = &[
    "get(",
    "getenv(",
    "env(",
    "Getenv(",
    "GetEnv(",
    "get_env(",
    "getProperty(",
    "fetch(",
    "getOrDefault(",
    "config(",
    "define(",
    "header(",
    "Header(",
    "Header.Set(",
    "Header.Add(",
    "headers.set(",
    "headers.append(",
    "fill(",
    "type(",
    "GetString(",
    "getString(",
];

/// The signs between a name and its value. If a sign begins with another sign, the longer one is listed first.
const SIGNS: &[&str] = &[
    "===", "!==", "||=", "??=", "::=", "==", "!=", "=>", ":=", "?=", "+=", ".=", "<-", "=", ":", "%3D",
    "%3d", "%3A", "%3a", "\\u003d", "：",
];

fn spaces(text: &[u8], at: usize) -> usize {
    text.get(at..).unwrap_or_default().iter().take(40).take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// Returns where a value begins. The signs or words that join the value to its name end at `at`. The value begins after
/// the spaces there, or on the next line if that line begins with a quote.
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

/// Returns where the value begins if the name is followed by an attribute, line or member called `value`, `default`
/// or `initial_value`, as in `name: NAME` and then `value: …`.
fn labelled(text: &[u8], at: usize) -> Option<usize> {
    let mut next = at;
    while next < at + 60 {
        match text.get(next)? {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\'' | b'{' => next += 1,
            b'\\' => next += if matches!(text.get(next + 1), Some(b'n')) { 2 } else { 1 },
            _ => break,
        }
    }
    let label = ["value", "default", "initial_value", "content"].iter().find(|label| {
        text.get(next..next + label.len()).is_some_and(|it| it.eq_ignore_ascii_case(label.as_bytes()))
    })?;
    next += label.len();
    while matches!(text.get(next), Some(b'"' | b'\'' | b'\\')) {
        next += 1;
    }
    next += spaces(text, next);
    matches!(text.get(next), Some(b'=' | b':')).then(|| margin(text, next + 1))
}

/// Returns the beginning of the name that contains the byte at `at`.
pub(super) fn name_start(text: &[u8], at: usize) -> usize {
    at - text[..at].iter().rev().take(64).take_while(|b| is_word(**b) || b"-.".contains(b)).count()
}
