//! Finds passwords in prose. A string counts as a password if it has the shape of a password, and if its sentence has a
//! word for a password before or after the string.
//!
//! The module has no lists of phrases for each language. A few plain words may be between the word and the password.
//! The shape of the string decides, and may be less distinct if the word and the string are close to each other.

use std::ops::Range;

use crate::edges::is_word;
use crate::form::{is_jumbled, is_stand_in};
use crate::shape::{bare, is_code, is_designation, is_hash, is_shaped, is_spoken, is_stated};

/// The maximum number of bytes between the word and the password.
const REACH: usize = 72;

/// Words after which a user and a password follow.
const PAIRS: &[&str] = &[
    "cred",
    "login",
    "log in",
    "sign in",
    "zugang",
    "anmeld",
    "identifi",
    "credencial",
    "credenzial",
    "account",
    "user",
    "benutzer",
    "utilisateur",
    "usuario",
    "логин",
    "账号",
    "帐号",
    "用户",
    "ssh ",
];

/// Words that join a name or a purpose to a password.
#[rustfmt::skip] // A word list is easier to read in rows.
const VERBS: &[&str] = &[
    "is", "was", "are", "to", "be", "now", "still", "currently", "remains", "becomes", "as", "ist", "lautet", "war", "jetzt", "nun", "auf", "zu", "heißt",
    "est", "sera", "était", "maintenant", "à", "en", "es", "era", "será", "ahora", "por", "é", "è", "foi", "agora", "to", "jest", "je", "är", "er", "on",
    "это", "на", "—", "–", "-", ":", "->", "→", "：", "als", "comme", "como", "like", "with", "using", "use", "try",
];

/// Returns the password that the word at `hit` means.
pub(crate) fn spoken(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    // In a sentence, the word stands alone or is the last part of a compound with a hyphen. `FTS5TOKEN` is code.
    if text[hit.start].is_ascii() && hit.start > 0 && is_word(text[hit.start - 1]) {
        return None;
    }
    // The ending of the word, as in `password's`, `passwords`, `credentials`, `Passworts`.
    let glued = text[hit.end - 1] >= 0x80;
    let ending = text[hit.end..].iter().take(16).take_while(|b| b.is_ascii_alphabetic() && !glued).count();
    let mut end = hit.end + ending;
    for sign in ["'s", "’s", "**", "*", "`"] {
        end += if text[end..].starts_with(sign.as_bytes()) { sign.len() } else { 0 };
    }
    let next = text.get(end).copied().unwrap_or(b' ');
    let spaced = text.get(end + 1).is_none_or(|b| *b == b' ' || !b.is_ascii());
    if next.is_ascii() && next != b' ' && !glued && !(b",:".contains(&next) && spaced) {
        return None;
    }
    let letters = text[hit.end..hit.end + ending].to_ascii_lowercase();
    // Words such as `passing` and `two-pass` don't mean a password.
    const ENDINGS: [&[u8]; 9] = [b"", b"s", b"word", b"words", b"phrase", b"code", b"wd", b"wort", b"worts"];
    let joined = hit.start > 0 && text[hit.start - 1] == b'-' && ending == 0;
    if text[hit.clone()].eq_ignore_ascii_case(b"pass") && (joined || !ENDINGS.contains(&letters.as_slice())) {
        return None;
    }
    let word = text[hit.clone()].to_ascii_lowercase();
    // Words such as `tokenizer` and `secretary` don't mean a secret.
    if ending > 2 && (word == b"token" || word == b"secret") {
        return None;
    }
    let pair = PAIRS.iter().any(|start| word.starts_with(start.as_bytes()));
    // A key may look like a hash.
    let key = word.ends_with(b"key") || !word.is_ascii();
    let most = if next == b',' { 0 } else { 8 };
    if pair { pair_after(text, end) } else { after(text, end, key, most).or_else(|| before(text, hit.start)) }
}

/// A word of a sentence, and whether it is quoted.
struct Word {
    range: Range<usize>,
    /// Whether it is quoted.
    quoted: bool,
}

/// Returns the next word from `at` on, up to `limit`. A run of characters outside ASCII is a separate word, because in
/// Chinese no space separates it from other words.
fn word(text: &[u8], at: usize, limit: usize) -> Option<Word> {
    let mut start = at;
    let mut quoted = false;
    loop {
        let rest = text.get(start..limit)?;
        let first = *rest.first()?;
        let sign = ["“", "”", "„", "«", "»", "「", "『", "，", "：", "（", "\u{a0}", "\u{202f}"]
            .iter()
            .find(|sign| rest.starts_with(sign.as_bytes()));
        if let Some(sign) = sign {
            quoted |= !matches!(*sign, "，" | "：" | "（" | "\u{a0}" | "\u{202f}");
            start += sign.len();
        } else if b" \t,(".contains(&first) {
            start += 1;
        } else if b"\"`'".contains(&first) || rest.starts_with(b"**") {
            quoted = true;
            start += 1;
        } else {
            break;
        }
    }
    // A word in Latin letters may begin with a letter outside ASCII. A Chinese word ends before a Latin letter.
    let first = text[start];
    let run = match first {
        0..0x80 => text[start..limit]
            .iter()
            .take_while(|b| b.is_ascii_graphic() && !(quoted && b"\"`".contains(b)))
            .count(),
        0x80..0xe3 => {
            text[start..limit].iter().take_while(|b| !b.is_ascii() || b.is_ascii_alphabetic()).count()
        }
        _ => text[start..limit].iter().take_while(|b| !b.is_ascii()).count(),
    };
    (run > 0).then_some(Word { range: start..start + run, quoted })
}

/// Returns the password in the rest of the sentence from `at` on. If `key` is true, the password may look like a hash.
/// At most `most` words may be before it.
fn after(text: &[u8], at: usize, key: bool, most: usize) -> Option<Range<usize>> {
    let limit = sentence_end(text, at);
    let (mut at, mut between, mut joined, mut marked) = (at, 0, false, false);
    // Whether a verb was found. Only words that say when or how may follow a verb.
    let mut told = false;
    while let Some(found) = word(text, at, limit) {
        let range = bare(text, found.range.clone());
        let value = &text[range.clone()];
        let near = between == 0 || joined || marked || told;
        let hash = key && (joined || between == 0) && value.len() >= 32 && is_hash(value);
        let fits = if found.quoted && !marked || joined {
            is_spoken(value) || is_stated(value) && !is_hash(value) && is_mixed(value)
        } else {
            is_spoken(value)
        };
        // After a comma, a password must be at the end of its part of the sentence. Otherwise the value is an argument.
        let ends = most > 0 || found.quoted || text.get(range.end).is_none_or(|b| b",.;\r\n".contains(b));
        if near
            && (fits || hash)
            && ends
            && !is_code(value)
            && !is_stand_in(value.strip_suffix(b"!").unwrap_or(value))
        {
            return Some(range);
        }
        let lower = text[found.range.clone()].to_ascii_lowercase();
        let plain = lower.iter().all(|b| b.is_ascii_alphabetic() || b"-'/".contains(b) || !b.is_ascii());
        let sign = VERBS.iter().any(|verb| *verb.as_bytes() == *lower);
        if !plain && !sign {
            // A word such as `ada:` or `ada@host` names the user.
            if lower.len() > 24 || lower.len() > 1 && !lower.ends_with(b":") && !lower.contains(&b'@') {
                return None;
            }
        }
        // This is for `password 0 …` in the configuration of a router.
        joined = sign
            || between == 0 && lower.len() == 1 && lower[0].is_ascii_digit()
            || lower.iter().all(|b| !b.is_ascii())
            || lower.ends_with(b":");
        told |= sign && most > 0;
        marked = lower.ends_with(b",") || lower.ends_with(b"(");
        between += 1;
        at = found.range.end;
        if between > most {
            break;
        }
    }
    None
}

/// Returns the password before the word at `at`, as in `… is the new password` and `… as the password`.
fn before(text: &[u8], at: usize) -> Option<Range<usize>> {
    let near = &text[at.saturating_sub(REACH)..at];
    let near = &near[near.iter().rposition(|b| *b == b'\n').map_or(0, |place| place + 1)..];
    let start = at - near.len();
    let lower = near.to_ascii_lowercase();
    let (verb, place) = [
        " is the ",
        " (the ",
        " (our ",
        " (my ",
        " as the ",
        " is our ",
        " is my ",
        " as ",
        " ist das ",
        " est le ",
        " es la ",
        " è la ",
    ]
    .iter()
    .filter_map(|verb| Some((verb, lower.windows(verb.len()).rposition(|it| it == verb.as_bytes())?)))
    .max_by_key(|(_, place)| *place)?;
    let between = &lower[place + verb.len()..];
    if between.iter().filter(|b| **b == b' ').count() > 3
        || !between.iter().all(|b| b.is_ascii_alphabetic() || b" -".contains(b))
    {
        return None;
    }
    let first = lower[..place].iter().rposition(|b| *b == b' ').map_or(0, |space| space + 1);
    let range = bare(text, start + first..start + place);
    let value = &text[range.clone()];
    (is_spoken(value) && !is_hash(value)).then_some(range)
}

/// Returns the password of a pair of a user and a password, such as `ada / …` or `ada:…`, in the rest of the sentence
/// from `at` on.
fn pair_after(text: &[u8], at: usize) -> Option<Range<usize>> {
    let limit = sentence_end(text, at);
    let mut words = Vec::new();
    let mut at = at;
    while words.len() < 9
        && let Some(found) = word(text, at, limit)
    {
        at = found.range.end;
        words.push(found);
    }
    for (place, found) in words.iter().enumerate() {
        let whole = &text[found.range.clone()];
        // `ada:…` and `ada/…`.
        if let Some(sign) =
            whole.iter().position(|b| b":/".contains(b)).filter(|sign| *sign > 0 && *sign + 1 < whole.len())
        {
            let range = bare(text, found.range.start + sign + 1..found.range.end);
            let user = &whole[..sign];
            let named =
                user.iter().all(|b| is_word(*b) || b".-@".contains(b)) && !whole[sign + 1..].contains(&b'/');
            if named && is_spoken(&text[range.clone()]) && !text[range.clone()].contains(&b'@') {
                return Some(range);
            }
        }
        let range = bare(text, found.range.clone());
        let value = &text[range.clone()];
        let sign = place.checked_sub(1).map(|last| &text[words[last].range.clone()]);
        let joined = sign.is_some_and(|sign| {
            [&b"/"[..], b"|", b"and", b"with", b"mit", b"und", b"et", b"avec", b"y", b"con", b":", b"-", b","]
                .contains(&sign)
        });
        if place >= 2
            && joined
            && (is_spoken(value) || is_shaped(value) && !is_hash(value) && !is_designation(value))
        {
            return Some(range);
        }
    }
    None
}

/// Returns the password in `ada / …`, whose slash is at `hit`.
fn slashed(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let user =
        text[..hit.start].iter().rev().take(48).take_while(|b| is_word(**b) || b".-@".contains(b)).count();
    let before = text[..hit.start - user].trim_ascii_end();
    let begins =
        before.is_empty() || before.ends_with(b":") || text[before.len()..hit.start - user].contains(&b'\n');
    let run = text[hit.end..].iter().take(96).take_while(|b| b.is_ascii_graphic()).count();
    let range = bare(text, hit.end..hit.end + run);
    let value = &text[range.clone()];
    let path = value.contains(&b'/') || value.contains(&b'.');
    (user > 1 && text[hit.start - user].is_ascii_alphabetic() && begins && !path && is_spoken(value))
        .then_some(range)
}

/// Returns the password in `user@host:…` or `user:…@host`, where the `@` is at `at`.
pub(crate) fn address(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let at = hit.start;
    if text[at] == b' ' {
        return slashed(text, hit);
    }
    let user = text[..at]
        .iter()
        .rev()
        .take(80)
        .take_while(|b| b.is_ascii_graphic() && !b"\"'`<>(),=/".contains(b))
        .count();
    let user = at - user..at;
    let host = text[at + 1..].iter().take(80).take_while(|b| is_word(**b) || b"-.".contains(b)).count();
    if user.is_empty() || host < 2 {
        return None;
    }
    if let Some(colon) = text[user.clone()].iter().position(|b| *b == b':') {
        let range = user.start + colon + 1..at;
        let alone = user.start == 0 || b" \t\n\"'`(".contains(&text[user.start - 1]);
        let named = colon > 0
            && text[user.start..user.start + colon].iter().all(|b| is_word(*b) || b".-".contains(b));
        return (alone && named && is_spoken(&text[range.clone()])).then_some(range);
    }
    let colon = at + 1 + host;
    let named = text[user.clone()].iter().all(|b| is_word(*b) || b".-+".contains(b))
        && text.get(colon) == Some(&b':');
    let digest = text[at + 1..colon].starts_with(b"sha");
    if !named || digest {
        return None;
    }
    let run = text[colon + 1..]
        .iter()
        .take(96)
        .take_while(|b| b.is_ascii_graphic() && !b"\"'`<>".contains(b))
        .count();
    let range = bare(text, colon + 1..colon + 1 + run);
    let value = &text[range.clone()];
    let path = value.contains(&b'/') || value.contains(&b'.');
    (!path && is_spoken(value)).then_some(range)
}

/// Returns whether `value` has letters and digits or signs.
fn is_mixed(value: &[u8]) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let other = value.iter().any(|b| b.is_ascii_uppercase() || b"!@#$%^&*?+~".contains(b));
    value.len() >= 7
        && digits > 0
        && (other || digits > 1 && is_jumbled(value))
        && !is_designation(value)
        && value.iter().any(u8::is_ascii_alphabetic)
}

/// Returns the end of the sentence that continues at `at`. The end is at most [`REACH`] bytes away, and never within a
/// word.
fn sentence_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let ends = |place: &usize| {
        let here = &rest[*place..];
        // A sign after a digit may be the last character of a password.
        let sign = b".;".contains(&here[0])
            || b"!?".contains(&here[0]) && *place > 0 && !rest[*place - 1].is_ascii_digit();
        here[0] == b'\n'
            || sign && here.get(1).is_none_or(|b| b.is_ascii_whitespace()) && *place > 0
            || here[0] == 0xe3 && here.starts_with("。".as_bytes())
            || here[0] == 0xef && here.starts_with("；".as_bytes())
    };
    let most = rest.len().min(REACH + 96);
    let end = (0..most).find(ends).unwrap_or(most);
    at + end
}
