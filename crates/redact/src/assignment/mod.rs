//! Finds secrets by the names that they are assigned to, as after `password=`, `"api_key": "`, `--token ` and
//! `<secret>`.
//!
//! In code, the values of such names are often not secrets, as in `let token = tokenizer.next_token()`. So three
//! conditions must be met. First, the name is the name of a secret, not of a property of a secret or of something
//! public (`token_count`, `public_key`). Second, a value is assigned to the name in a way that is usual in code,
//! settings, shells, markup or prose. Third, the value looks like a secret: it is random (a password need only mix
//! several kinds of characters), and it is not a reference, call, type or placeholder.
//!
//! Two kinds of secrets are not found. The first kind are passwords of plain words that are neither quoted nor in
//! settings. The second kind are values that could be hashes and whose name is only `key`, because most such values are
//! keys of maps.

mod beside;
mod choice;
mod command;
mod extent;
mod joining;
mod joint;
mod names;
#[cfg(test)]
mod tests;
mod value;

use std::ops::Range;

use super::edges::{begins_part, is_word};
use super::form::{Makeup, is_generated, is_jumbled, is_long_token, is_stand_in, is_template, looks_random};
use super::shape::is_passphrase;
use extent::opened;
use joining::{joint, name_start};
use joint::Joint;
use names::{
    ABOUT, KEY_QUALIFIERS, LABELS, OTHER_KEYS, OTHER_PASSES, OTHER_TOKENS, after_suffix, is_in, qualifier,
    speaks_of_secret,
};
use value::{Value, value_of};

pub(super) use beside::{marked, piped};
pub(super) use command::{gem_source, pgpass, user_flag};
pub(super) use names::is_secret;

/// Returns the password assigned to the name that contains the word at `hit`. The word is `pass` or `pwd`, a word
/// that begins with one of these, or a word of another language.
pub(super) fn password(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let word = &text[hit.clone()];
    if !word.is_ascii() || word.contains(&b' ') || !b"pP".contains(&word[0]) && word.len() < 16 {
        return foreign(text, hit);
    }
    if word.eq_ignore_ascii_case(b"ConvertTo-SecureString") {
        return command::secure_string(text, hit);
    }
    let mut end = hit.end;
    if word.len() == 4 {
        for ending in
            ["word", "wd", "phrase", "code", "wort", "WORD", "WD", "PHRASE", "CODE", "WORT", "Word", "Phrase"]
        {
            if text[end..].starts_with(ending.as_bytes()) {
                end += ending.len();
                break;
            }
        }
    }
    if let Some(found) = command::from_command(text, hit).or_else(|| command::openssl(text, hit)) {
        return Some(found);
    }
    let bare = end == hit.end && word.len() <= 4;
    let end = after_suffix(text, end)?;
    let before = qualifier(text, hit.start);
    if bare && !begins_part(text, hit.start) && (word.len() < 4 || is_in(OTHER_PASSES, &before)) {
        return None;
    }
    let value = value_of(text, hit.start, end)?;
    let weak = !bare && !is_in(LABELS, &before);
    is_password(&text[value.range.clone()], &value, weak).then_some(value.range)
}

/// Returns the password that follows the word for a password at `hit`. The word is not English or is a phrase, such
/// as `identified by`.
fn foreign(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    if text[hit.start].is_ascii() && !begins_part(text, hit.start) {
        return None;
    }
    if text[hit.clone()].eq_ignore_ascii_case(b"identified by") {
        return command::identified(text, hit);
    }
    // The word may have the ending of a grammatical case; in Chinese and Japanese no space separates it from the
    // next word.
    let ending = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || !b.is_ascii();
    let run = text[hit.end..].iter().take(16).take_while(|b| ending(b)).count();
    let (joint, at) = joint(text, hit.start, hit.end).or_else(|| joint(text, hit.start, hit.end + run))?;
    let value = value::value_at(text, hit.start, at, joint, at)?;
    is_password(&text[value.range.clone()], &value, false).then_some(value.range)
}

/// Returns the token, key or secret assigned to the name that contains the word at `hit`.
pub(super) fn secret(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let word = &text[hit.clone()];
    let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
    let header = is("auth")
        && text.get(hit.end..hit.end + 9).is_some_and(|rest| rest.eq_ignore_ascii_case(b"orization"));
    // The `secret_id` of a Vault AppRole is a secret; the id of a key or a token is not.
    let id = is("secret")
        && ["_id", "Id", "_ID", "ID"].iter().any(|id| text[hit.end..].starts_with(id.as_bytes()));
    let end = if header {
        hit.end + 9
    } else if id {
        hit.end + if text[hit.end] == b'_' { 3 } else { 2 }
    } else {
        after_suffix(text, hit.end)?
    };
    if is("totp") || is("hotp") {
        return one_time(text, end);
    }
    if is("token")
        && let Some(tokens) = list(text, end)
    {
        return Some(tokens);
    }
    let value = value_of(text, hit.start, end).or_else(|| spoken(text, hit, end))?;
    if word.len() == 10
        && let Some(password) = pair(text, &value)
    {
        return Some(password);
    }
    let before = qualifier(text, hit.start);
    let query = hit.start > 0 && value.tight && b"?&".contains(&text[name_start(text, hit.start).max(1) - 1]);
    let secret = &text[value.range.clone()];
    let short = value.quoted && !value.listed && !is("key") && Makeup::of(secret).digits >= 2;
    let least = match () {
        () if query || short => 8,
        () if value.quoted || value.tight || value.line => 12,
        () => 16,
    };
    let weak = secret.len() < least && (secret.len() < 8 || !is_generated(secret, 8));
    if weak && !is("secret") || secret.len() < 16 && (is("key") || is("salt")) {
        return None;
    }
    let named = if is("key") {
        let known = KEY_QUALIFIERS.iter().any(|word| before.ends_with(word.as_bytes()));
        let other = before.is_empty() || is_in(OTHER_KEYS, &before);
        let plural = text.get(hit.end).is_some_and(|b| b.eq_ignore_ascii_case(&b's'));
        let salted = value.quoted && !is_in(OTHER_KEYS, &before) && is_salt(secret);
        let drawn = before.is_empty() && value.quoted && !value.listed && is_drawn(secret);
        !plural && (known || query || salted || drawn || !other && begins_part(text, hit.start))
    } else if is("salt") {
        // A salt counts as a secret only if it has many punctuation characters, like the salts of WordPress.
        is_salt(secret)
    } else if is("token") {
        !is_in(OTHER_TOKENS, &before)
    } else {
        !is("auth") || header || begins_part(text, hit.start) || before == b"o"
    };
    // An unquoted value that follows a space may be a type or a variable.
    let bare = !value.quoted && !value.tight;
    let code = bare && (Makeup::of(secret).digits == 0 && !value.line || speaks_of_secret(secret));
    let found = named
        && !code
        && !(value.listed && secret.len() < 40 && secret.contains(&b'_') && !is_generated(secret, 32))
        && (looks_random(secret, least) && !is_stand_in(secret)
            || is_generated(secret, if is("key") { 20 } else { 10 }) && !is_template(secret)
            || is("token") && value.quoted && holds_random(secret)
            || is("secret") && !id && secret.len() >= 10 && is_password(secret, &value, false));
    found.then_some(value.range)
}

/// Returns the password if `value` begins with `user / password` or `user:password`.
fn pair(text: &[u8], value: &Value) -> Option<Range<usize>> {
    let at = value.range.start;
    let user = text[at..].iter().take(40).take_while(|b| is_word(**b) || b".@-".contains(b)).count();
    let rest = &text[at + user..];
    let sign = [" / ", " : ", "/", ":"].iter().find(|sign| rest.starts_with(sign.as_bytes()))?;
    let start = at + user + sign.len();
    let run =
        text[start..].iter().take(129).take_while(|b| b.is_ascii_graphic() && !b"\"'`".contains(b)).count();
    let end = start + text[start..start + run].trim_ascii_end().len();
    let password = &text[start..end];
    let value = Value { range: start..end, quoted: false, tight: true, line: false, ..*value };
    let strong = Makeup::of(password).digits > 1 && !password.contains(&b'/') && !password.contains(&b':');
    (user > 0 && run <= 128 && strong && is_password(password, &value, false)).then_some(start..end)
}

/// Returns the value that follows a name after a space, as in prose and commands. Returns `None` if the value may be
/// something other than a token.
fn spoken(text: &[u8], hit: &Range<usize>, end: usize) -> Option<Value> {
    if text.get(end) != Some(&b' ') || !text[hit.clone()].eq_ignore_ascii_case(b"token") {
        return None;
    }
    let run = text[end + 1..].iter().take(129).take_while(|b| is_word(**b) || **b == b'-').count();
    let value = &text[end + 1..end + 1 + run];
    let plain = (32..=128).contains(&run) && looks_random(value, 32) && Makeup::of(value).digits * 8 >= run;
    let range = end + 1..end + 1 + run;
    plain.then_some(Value {
        range,
        quoted: false,
        tight: true,
        line: false,
        listed: false,
        owned: true,
        set: false,
        colon: false,
        prose: true,
        wrapped: false,
    })
}

/// Returns the base32 secret that is passed to a generator of one-time passwords, as in `TOTP("…")` and
/// `TOTP.new('…')`. `end` is where the name of the generator ends.
fn one_time(text: &[u8], end: usize) -> Option<Range<usize>> {
    let made = end + if text[end..].starts_with(b".new") { 4 } else { 0 };
    let (range, quoted) = (text.get(made) == Some(&b'(')).then(|| opened(text, made + 1, Joint::Call))??;
    let secret = &text[range.clone()];
    let base32 = secret.iter().all(|b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(b));
    (quoted && base32 && secret.len() >= 16 && !is_stand_in(secret)).then_some(range)
}

/// Returns the range from the first to the last token of a list in brackets, such as `"tokens": ["…", "…"]`.
fn list(text: &[u8], mut at: usize) -> Option<Range<usize>> {
    at += text[at..].iter().take(4).take_while(|b| b"\"'\\".contains(b)).count();
    at += text[at..].iter().take(4).take_while(|b| b" :=".contains(b)).count();
    if text.get(at) != Some(&b'[') {
        return None;
    }
    at += 1;
    let (mut start, mut end) = (None, at);
    for _ in 0..16 {
        at = at.min(text.len());
        at += text[at..].iter().take(40).take_while(|b| b.is_ascii_whitespace() || **b == b',').count();
        let escape = text[at..].iter().take(4).take_while(|b| **b == b'\\').count();
        if !matches!(text.get(at + escape), Some(b'"' | b'\'')) {
            break;
        }
        let (range, _) = opened(text, at, Joint::Sign)?;
        let token = &text[range.clone()];
        if token.len() < 12 || !looks_random(token, 12) || is_stand_in(token) {
            return None;
        }
        start = start.or(Some(range.start));
        end = range.end;
        at = end + escape + 1;
    }
    start.map(|start| start..end)
}

/// Returns whether `text` has a word that looks random. A value with such a word may be an object or a pair that
/// contains a token.
fn holds_random(text: &[u8]) -> bool {
    text.len() <= 400
        && text
            .split(|b| !is_word(*b))
            .any(|word| word.len() >= 24 && looks_random(word, 24) && !is_stand_in(word))
}

/// Returns whether `text` has many punctuation characters that are not in base64, as the keys and salts of a
/// WordPress configuration have.
fn is_salt(text: &[u8]) -> bool {
    let signs = text.iter().filter(|b| b.is_ascii_punctuation() && !b"+/=_-.:".contains(b)).count();
    text.len() >= 32 && signs >= 3 && is_generated(text, 32)
}

/// Returns whether `text` looks like letters and digits drawn at random, and not like a hash or a path.
fn is_drawn(text: &[u8]) -> bool {
    let makeup = Makeup::of(text);
    text.len() >= 32
        && makeup.letters() > 4
        && makeup.digits > 2
        && text
            .split(|b| b"-_/".contains(b))
            .all(|part| part.len() < 32 && text.len() > part.len() || !part.iter().all(u8::is_ascii_hexdigit))
        && text.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=_-".contains(b))
        && !is_stand_in(text)
        && looks_random(text, 32)
}

/// Returns the range of the value assigned to the name that contains the byte at `word` and ends at `end`.
pub(super) fn assigned(text: &[u8], word: usize, end: usize) -> Option<Range<usize>> {
    Some(value_of(text, word, end)?.range)
}

/// Returns the beginning of the value that is assigned to a name. The name contains the vendor's name at `hit`.
///
/// The name also has to contain a word for a secret, or the value has to be the argument of a call.
pub(super) fn named(text: &[u8], hit: &Range<usize>) -> Option<usize> {
    let rest = &text[hit.end..];
    let mut length = rest.iter().take(40).take_while(|b| is_word(**b) || b"-.".contains(b)).count();
    // In prose the name may consist of several words, as in `Datadog API key: …`.
    for _ in 0..3 {
        let word = rest[length..].iter().take(16).skip(1).take_while(|b| b.is_ascii_alphabetic()).count();
        let speaks = rest.get(length) == Some(&b' ')
            && word > 1
            && speaks_of_secret(&rest[length + 1..length + 1 + word]);
        if !speaks {
            break;
        }
        length += 1 + word;
    }
    let name = &rest[..length];
    let whole = &text[name_start(text, hit.start)..hit.end + length];
    let last = name.rsplit(|b| b"_-.".contains(b)).next().unwrap_or(name).to_ascii_lowercase();
    if !name.is_empty() && is_in(ABOUT, &last) && !speaks_of_secret(&last) {
        return None;
    }
    let (joint, at) = joint(text, hit.start, hit.end + length)?;
    if !speaks_of_secret(whole) && joint != Joint::Call {
        return None;
    }
    opened(text, at, joint).map(|(range, _)| range.start)
}

/// Returns whether `text` looks like a password. `value` says how it is assigned. If `weak` is true, a single word may
/// be a password.
fn is_password(text: &[u8], value: &Value, weak: bool) -> bool {
    if text.len() > 256 {
        return is_long_token(text) && !is_stand_in(text);
    }
    if text.len() < 5 || is_template(text) || is_stand_in(text) {
        return false;
    }
    if is_generated(text, if value.listed { 16 } else { 8 }) || !value.listed && is_passphrase(text) {
        return true;
    }
    let makeup = Makeup::of(text);
    if makeup.other > 0 || text.iter().any(|b| b"()<>{}".contains(b)) && !value.tight {
        return false;
    }
    if weak && is_weak(text, value) {
        return true;
    }
    if text.len() < 6 {
        return false;
    }
    // In a list of names, the item after the name of a password may be just another name.
    let random = looks_random(text, 12) && !(value.listed && text.contains(&b'_'));
    let letters = makeup.letters() > 0;
    let kinds =
        [makeup.lower, makeup.upper, makeup.digits, makeup.symbols].iter().filter(|n| **n > 0).count();
    if random || !value.listed && kinds >= 3 && makeup.digits > 0 && looks_random(text, 8) {
        return true;
    }
    let path =
        text.contains(&b'/') || text.windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_alphabetic());
    if makeup.digits > 0 && letters && makeup.symbols > 0 && !path {
        return true;
    }
    let given = (value.quoted || value.tight || value.owned) && !value.listed;
    let mixed = makeup.upper > 0 && makeup.lower > 0 && text.iter().all(|b| is_word(*b) || *b == b'-');
    let jumbled = is_jumbled(text);
    let strong = kinds >= 3 && makeup.symbols > 0 && (makeup.joiners == 0 || jumbled)
        || makeup.symbols >= 2 && makeup.letters() >= 3 && makeup.joiners == 0
        || makeup.upper > 0 && makeup.lower > 0 && makeup.joiners == 0 && jumbled;
    // On a line of settings or code the value may be a name, but names seldom have three digits.
    let simple = makeup.upper == 0 && makeup.digits >= 2;
    let in_text = (value.colon && simple && text.len() >= 8 || value.prose && simple && text.len() >= 10)
        && !value.listed;
    let line = value.line && (makeup.digits >= 3 || jumbled || value.colon) || in_text;
    (given || value.line) && text.len() >= 8 && strong
        || (given || line)
            && makeup.digits > 0
            && letters
            && (makeup.joiners == 0 || !path && makeup.digits >= 3)
            && text.len() >= if value.tight { 6 } else { 7 }
        || given && makeup.digits > 0 && mixed && text.len() >= 10 && !value.owned
}

/// Returns whether `text` may be a weak password: it has only lower-case letters and digits, and it is quoted or
/// set as in a shell.
fn is_weak(text: &[u8], value: &Value) -> bool {
    let makeup = Makeup::of(text);
    let small = makeup.upper == 0 && makeup.symbols == 0 && makeup.letters() + makeup.digits >= 5;
    let joined = text.iter().all(|b| is_word(*b) || *b == b'-');
    (value.quoted && value.set && !value.wrapped || value.tight && value.line)
        && small
        && joined
        && text.len() <= 32
}
