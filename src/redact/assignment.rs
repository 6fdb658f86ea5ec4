//! Secrets told by the name they are assigned to: `password=`, `"api_key": "`, `--token `, `<secret>`.
//!
//! A name alone is no secret, and code is full of such names: `let token = tokenizer.next_token()`. So three things
//! have to hold. The name speaks of a secret and not of something about it (`token_count`, `public_key`). Something
//! joins it to a value, in one of the ways that code, settings, shells, markup and prose have. The value looks like a
//! secret: random, or for a password of several kinds of characters, and is no reference, call, type or stand-in.
//!
//! Left out: passwords made of words alone, and a bare `key`, which is more often the key of a map.

use std::ops::Range;

use super::edges::{begins_part, is_word};
use super::form::{Makeup, is_jumbled, is_stand_in, is_template, looks_random};
use super::value::{Joint, Value, joint, name_start, opened, value_of};

/// Returns the password assigned to the name that holds the word at `hit`: `pass`, `pwd` and what begins so.
pub(super) fn password(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let mut end = hit.end;
    for ending in ["word", "wd", "phrase", "code", "WORD", "WD", "PHRASE", "CODE", "Word", "Phrase"] {
        if text[end..].starts_with(ending.as_bytes()) {
            end += ending.len();
            break;
        }
    }
    let bare = end == hit.end && text[hit.clone()].eq_ignore_ascii_case(b"pass");
    let end = after_suffix(text, end)?;
    let value = value_of(text, hit.start, end)?;
    let known = begins_part(text, hit.start)
        || !bare
        || qualified(text, hit.start, &["db", "user", "my", "root", "admin"]);
    (known && is_password(&text[value.range.clone()], &value)).then_some(value.range)
}

/// Returns the token, key or secret assigned to the name that holds the word at `hit`.
pub(super) fn secret(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let word = &text[hit.clone()];
    let is = |other: &str| word.eq_ignore_ascii_case(other.as_bytes());
    let header = is("auth")
        && text.get(hit.end..hit.end + 9).is_some_and(|rest| rest.eq_ignore_ascii_case(b"orization"));
    let end = if header { hit.end + 9 } else { after_suffix(text, hit.end)? };
    let value = value_of(text, hit.start, end)?;
    let least = if value.quoted || value.tight { 12 } else { 16 };
    let secret = &text[value.range.clone()];
    if secret.len() < least && !is("secret") || secret.len() < 16 && is("key") {
        return None;
    }
    let named = if is("key") {
        let qualifier = qualifier(text, hit.start);
        let known = KEY_QUALIFIERS.iter().any(|word| qualifier.ends_with(word.as_bytes()));
        let query = hit.start > 0 && b"?&".contains(&text[hit.start - 1]) && value.tight;
        let other = qualifier.is_empty() || OTHER_KEYS.contains(&qualifier.as_slice());
        let plural = text.get(hit.end).is_some_and(|b| b.eq_ignore_ascii_case(&b's'));
        !plural && (known || query || !other && begins_part(text, hit.start))
    } else if is("token") {
        !OTHER_TOKENS.contains(&qualifier(text, hit.start).as_slice())
    } else {
        !is("auth") || header || begins_part(text, hit.start)
    };
    // Without quotes and with a space before it, it may be a type or a variable.
    let bare = !value.quoted && !value.tight;
    let code = bare && (Makeup::of(secret).digits == 0 && !value.line || speaks_of_secret(secret));
    let found = named
        && !code
        && !(value.listed && secret.len() < 40 && secret.contains(&b'_'))
        && (looks_random(secret, least) && !is_stand_in(secret)
            || is("secret") && secret.len() >= 10 && is_password(secret, &value));
    found.then_some(value.range)
}

/// Returns where the value begins that is assigned to a name holding the vendor's name at `hit`.
///
/// The name has to speak of a secret too, between the vendor's and the value, or the vendor's be called with it.
pub(super) fn named(text: &[u8], hit: &Range<usize>) -> Option<usize> {
    let rest = &text[hit.end..];
    let mut length = rest.iter().take(40).take_while(|b| is_word(**b) || b"-.".contains(b)).count();
    // In prose the name goes on: `Datadog API key: …`.
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
    if !name.is_empty() && ABOUT.contains(&last.as_slice()) && !speaks_of_secret(&last) {
        return None;
    }
    let (joint, at) = joint(text, hit.start, hit.end + length)?;
    if !speaks_of_secret(whole) && joint != Joint::Call {
        return None;
    }
    opened(text, at, joint).map(|(range, _)| range.start)
}

fn speaks_of_secret(name: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] =
        [b"key", b"token", b"secret", b"pass", b"auth", b"api", b"cred", b"pwd", b"license"];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.windows(word.len()).any(|window| window == *word))
}

/// What may follow the word in a name, being about a secret or some other thing.
const ABOUT: &[&[u8]] = &[
    b"name",
    b"names",
    b"type",
    b"types",
    b"count",
    b"counts",
    b"url",
    b"uri",
    b"id",
    b"ids",
    b"path",
    b"paths",
    b"file",
    b"files",
    b"filename",
    b"len",
    b"length",
    b"size",
    b"field",
    b"fields",
    b"hash",
    b"hashes",
    b"expires",
    b"expiry",
    b"expiration",
    b"ttl",
    b"timeout",
    b"age",
    b"class",
    b"kind",
    b"index",
    b"idx",
    b"pos",
    b"offset",
    b"policy",
    b"regex",
    b"pattern",
    b"prefix",
    b"suffix",
    b"label",
    b"hint",
    b"placeholder",
    b"input",
    b"ref",
    b"refs",
    b"arn",
    b"version",
    b"format",
    b"param",
    b"params",
    b"required",
    b"enabled",
    b"sha",
    b"sha1",
    b"sha256",
    b"commit",
    b"rev",
    b"revision",
    b"checksum",
    b"digest",
    b"etag",
    b"endpoint",
    b"host",
    b"provider",
    b"service",
    b"store",
    b"manager",
    b"map",
    b"list",
    b"set",
    b"error",
    b"message",
    b"text",
    b"title",
    b"description",
    b"limit",
    b"budget",
    b"usage",
    b"stream",
    b"range",
    b"span",
    b"table",
    b"group",
    b"rotation",
    b"salt",
    b"algorithm",
    b"alg",
    b"method",
    b"scheme",
    b"mode",
    b"model",
    b"account",
    b"sid",
    b"zone",
    b"project",
    b"app",
    b"org",
    b"tenant",
    b"region",
    b"bucket",
    b"fingerprint",
    b"code",
    b"schema",
    b"column",
    b"ring",
    b"board",
    b"frame",
    b"frames",
];

/// What comes before `key` in names of secrets.
const KEY_QUALIFIERS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "master",
    "account",
    "encryption",
    "encrypt",
    "signing",
    "sign",
    "subscription",
    "license",
    "shared",
    "deploy",
    "session",
    "server",
    "service",
    "admin",
    "ssh",
    "hmac",
    "jwt",
    "aes",
    "webhook",
    "storage",
    "client",
    "consumer",
    "app",
    "application",
    "developer",
    "dev",
    "prod",
    "live",
    "production",
    "integration",
    "functions",
    "function",
    "apim",
    "primaryaccess",
    "write",
    "ingest",
    "management",
];

/// What comes before `key` in names of other things.
const OTHER_KEYS: &[&[u8]] = &[
    b"public",
    b"primary",
    b"foreign",
    b"cache",
    b"partition",
    b"sort",
    b"hash",
    b"idempotency",
    b"row",
    b"object",
    b"s3",
    b"query",
    b"index",
    b"lookup",
    b"map",
    b"dict",
    b"group",
    b"composite",
    b"translation",
    b"i18n",
    b"locale",
    b"message",
    b"msg",
    b"route",
    b"event",
    b"state",
    b"dedup",
    b"content",
    b"integrity",
    b"sha",
    b"checksum",
    b"pub",
    b"unique",
    b"natural",
    b"surrogate",
    b"range",
    b"shard",
    b"bucket",
    b"file",
    b"blob",
    b"commit",
    b"tree",
    b"node",
    b"react",
    b"item",
    b"list",
    b"hot",
    b"arrow",
    b"press",
    b"any",
    b"no",
    b"this",
    b"the",
    b"a",
    b"each",
    b"by",
    b"old",
    b"new",
    b"first",
    b"last",
    b"next",
    b"prev",
    b"current",
    b"parent",
    b"child",
    b"target",
    b"source",
    b"build",
    b"artifact",
    b"lock",
    b"fingerprint",
    b"verify",
    b"verifying",
    b"verification",
    b"host",
    b"peer",
    b"known",
    b"bind",
    b"shortcut",
    b"publishable",
    b"anon",
    b"issue",
    b"project",
    b"ticket",
    b"metadata",
    b"config",
    b"setting",
    b"label",
];

/// What comes before `token` in names of other things.
const OTHER_TOKENS: &[&[u8]] = &[
    b"page",
    b"next",
    b"continuation",
    b"sync",
    b"cancel",
    b"cancellation",
    b"stop",
    b"eos",
    b"bos",
    b"pad",
    b"unk",
    b"mask",
    b"sep",
    b"cls",
    b"start",
    b"end",
    b"first",
    b"last",
    b"prev",
    b"previous",
    b"current",
    b"lookahead",
    b"special",
    b"resume",
    b"cursor",
    b"num",
    b"max",
    b"min",
    b"n",
    b"total",
    b"per",
    b"design",
    b"nft",
    b"erc20",
    b"skip",
    b"delta",
    b"change",
    b"watch",
    b"snapshot",
    b"pagination",
    b"contract",
    b"mint",
    b"tik",
    b"key",
];

/// Returns where a name ends whose word ends at `end`, unless what follows the word makes it the name of another thing.
fn after_suffix(text: &[u8], end: usize) -> Option<usize> {
    let suffix = text[end..].iter().take(33).take_while(|b| is_word(**b) || **b == b'-').count();
    if suffix == 0 {
        return Some(end);
    }
    let name = &text[end..end + suffix];
    let plural = matches!(name[0], b's' | b'S') && !name.get(1).is_some_and(u8::is_ascii_alphabetic);
    let upper = text[end - 1].is_ascii_uppercase();
    let digits = name.iter().take_while(|b| b.is_ascii_digit()).count();
    let glued = name[0].is_ascii_lowercase()
        || upper && name[0].is_ascii_uppercase()
        || digits > 0 && name.get(digits).is_some_and(u8::is_ascii_alphabetic);
    if suffix > 32 || glued && !plural {
        return None;
    }
    let mut part = Vec::with_capacity(suffix);
    for (place, &byte) in name.iter().chain(b"_").enumerate() {
        let camel = byte.is_ascii_uppercase() && place > 0 && name[place - 1].is_ascii_lowercase();
        if !byte.is_ascii_alphanumeric() || camel {
            // Another word for a secret is another hit, with a name of its own.
            if ABOUT.contains(&part.as_slice())
                || [b"key", b"pwd"].iter().any(|word| part == *word)
                || speaks_of_secret(&part)
            {
                return None;
            }
            part.clear();
        }
        if byte.is_ascii_alphanumeric() {
            part.push(byte.to_ascii_lowercase());
        }
    }
    Some(end + suffix)
}

/// Returns the part of the name before the word at `start`, in lower case.
fn qualifier(text: &[u8], start: usize) -> Vec<u8> {
    let mut end = start;
    if end > 0 && b"_-. ".contains(&text[end - 1]) {
        end -= 1;
    }
    let mut first = end;
    while first > 0 && end - first < 20 && text[first - 1].is_ascii_alphanumeric() {
        first -= 1;
        let camel = text[first].is_ascii_uppercase() && first > 0 && text[first - 1].is_ascii_lowercase();
        if camel {
            break;
        }
    }
    text[first..end].to_ascii_lowercase()
}

fn qualified(text: &[u8], start: usize, endings: &[&str]) -> bool {
    let qualifier = qualifier(text, start);
    endings.iter().any(|ending| qualifier.ends_with(ending.as_bytes()))
}

/// Whether `text` looks like a password, given how it is assigned.
fn is_password(text: &[u8], value: &Value) -> bool {
    if text.len() < 6 || text.len() > 256 || is_template(text) || is_stand_in(text) {
        return false;
    }
    let makeup = Makeup::of(text);
    if makeup.other > 0 || text.iter().any(|b| b"()<>{}".contains(b)) && !value.tight {
        return false;
    }
    // Any name in a list of names may follow one that speaks of a password.
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
    (given || value.line) && text.len() >= 8 && strong
        || given
            && makeup.digits > 0
            && letters
            && makeup.joiners == 0
            && text.len() >= if value.tight { 6 } else { 7 }
        || given && makeup.digits > 0 && mixed && text.len() >= 10 && !value.owned
}
