//! Distinguishes names of secrets from other names, such as names of properties of a secret (`token_count`).

use crate::edges::is_word;
use crate::rules::PASSWORDS;

/// If one of these words follows the word for a secret, the name is not the name of a secret. An example is `count` in
/// `token_count`.
#[rustfmt::skip] // A word list is easier to read in rows.
pub(super) const ABOUT: &[&[u8]] = &[
    b"name", b"names", b"callback", b"timestamp", b"at", b"date", b"time", b"created", b"updated", b"type", b"types", b"count", b"counts", b"url", b"uri", b"id", b"ids", b"path",
    b"paths", b"file", b"files", b"filename", b"len", b"length", b"size", b"field", b"fields", b"hash",
    b"hashes", b"expires", b"expiry", b"expiration", b"ttl", b"timeout", b"age", b"class", b"kind",
    b"index", b"idx", b"pos", b"offset", b"policy", b"regex", b"pattern", b"prefix", b"suffix", b"label",
    b"hint", b"placeholder", b"input", b"ref", b"refs", b"arn", b"version", b"format", b"param", b"params",
    b"required", b"enabled", b"sha", b"sha1", b"sha256", b"commit", b"rev", b"revision", b"checksum",
    b"digest", b"etag", b"endpoint", b"host", b"provider", b"service", b"store", b"manager", b"map",
    b"list", b"set", b"error", b"message", b"text", b"title", b"description", b"limit", b"budget",
    b"usage", b"stream", b"range", b"span", b"table", b"group", b"rotation", b"salt", b"algorithm", b"alg",
    b"method", b"scheme", b"mode", b"model", b"account", b"sid", b"zone", b"project", b"app", b"org",
    b"tenant", b"region", b"bucket", b"fingerprint", b"code", b"schema", b"column", b"ring", b"board",
    b"frame", b"frames",
];

/// Words that come before `key` in names of secrets.
#[rustfmt::skip] // A word list is easier to read in rows.
pub(super) const KEY_QUALIFIERS: &[&str] = &[
    "api", "access", "secret", "private", "auth", "master", "account", "encryption", "encrypt", "signing",
    "sign", "subscription", "license", "shared", "deploy", "session", "server", "service", "admin", "ssh",
    "hmac", "jwt", "aes", "webhook", "storage", "client", "consumer", "app", "application", "developer",
    "dev", "prod", "live", "production", "integration", "functions", "function", "apim", "primaryaccess",
    "write", "ingest", "management",
];

/// Words that come before `key` in names of things that are not secrets.
#[rustfmt::skip] // A word list is easier to read in rows.
pub(super) const OTHER_KEYS: &[&[u8]] = &[
    b"public", b"encrypted", b"name", b"wrapped", b"primary", b"foreign", b"cache", b"partition", b"sort", b"hash", b"idempotency", b"row",
    b"object", b"s3", b"query", b"index", b"lookup", b"map", b"dict", b"group", b"composite",
    b"translation", b"i18n", b"locale", b"message", b"msg", b"route", b"event", b"state", b"dedup",
    b"content", b"integrity", b"sha", b"checksum", b"pub", b"unique", b"natural", b"surrogate", b"range",
    b"shard", b"bucket", b"file", b"blob", b"commit", b"tree", b"node", b"react", b"item", b"list", b"hot",
    b"arrow", b"press", b"any", b"no", b"this", b"the", b"a", b"each", b"by", b"old", b"new", b"first",
    b"last", b"next", b"prev", b"current", b"parent", b"child", b"target", b"source", b"build",
    b"artifact", b"lock", b"fingerprint", b"verify", b"verifying", b"verification", b"host", b"peer",
    b"known", b"bind", b"shortcut", b"publishable", b"anon", b"issue", b"project", b"ticket", b"metadata",
    b"config", b"setting", b"label",
];

/// Words that show that a name ending in `token` isn't the name of a secret.
#[rustfmt::skip] // A word list is easier to read in rows.
pub(super) const OTHER_TOKENS: &[&[u8]] = &[
    b"page", b"next", b"continuation", b"sync", b"cancel", b"cancellation", b"stop", b"eos", b"bos",
    b"pad", b"unk", b"mask", b"sep", b"cls", b"start", b"end", b"first", b"last", b"prev", b"previous",
    b"current", b"lookahead", b"special", b"resume", b"cursor", b"num", b"max", b"min", b"n", b"total",
    b"per", b"design", b"nft", b"erc20", b"skip", b"delta", b"change", b"watch", b"snapshot",
    b"pagination", b"contract", b"mint", b"tik", b"key",
];

/// Beginnings of words that end in `pass` but don't mean a password.
pub(super) const OTHER_PASSES: &[&[u8]] = &[
    b"by", b"com", b"encom", b"sur", b"tres", b"over", b"under", b"im", b"out", b"multi", b"single", b"two",
    b"one",
];

/// Words that come before `password` in names of labels, actions and fields.
#[rustfmt::skip] // A word list is easier to read in rows.
pub(super) const LABELS: &[&[u8]] = &[
    b"label", b"type", b"field", b"show", b"hide", b"toggle", b"reset", b"forgot", b"forgotten", b"change", b"update",
    b"set", b"get", b"enter", b"confirm", b"confirmation", b"verify", b"check", b"invalid", b"wrong", b"missing",
    b"require", b"requires", b"no", b"not", b"lost", b"remove", b"create", b"generate", b"input", b"text", b"error",
    b"by", b"with", b"without", b"has", b"is", b"use", b"uses", b"using", b"hash", b"hashed", b"encrypted",
];

/// Returns whether `word` is one of `words`.
pub(super) fn is_in(words: &[&[u8]], word: &[u8]) -> bool {
    words.contains(&word)
}

/// Returns the end of a name that contains a word for a secret, such as `password`. The word ends at `end`. Returns
/// `None` if the rest of the name shows that it is not the name of a secret.
pub(super) fn after_suffix(text: &[u8], end: usize) -> Option<usize> {
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
            // If the name has a second word for a secret, that word is found as a separate hit.
            if is_in(ABOUT, &part)
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
pub(super) fn qualifier(text: &[u8], start: usize) -> Vec<u8> {
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

/// Returns whether `name` contains a word for a secret.
pub(super) fn speaks_of_secret(name: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] =
        [b"key", b"token", b"secret", b"pass", b"auth", b"api", b"cred", b"pwd", b"license"];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.windows(word.len()).any(|window| window == *word))
}

/// Returns whether `name`, the whole name of a column, a field or a setting, is the name of a secret: `db_password`,
/// `API key`, `clientSecret`, `mot de passe`.
pub(crate) fn is_secret(name: &[u8]) -> bool {
    let name = name.trim_ascii();
    if !(2..=48).contains(&name.len()) {
        return false;
    }
    if !name.is_ascii() || name.contains(&b' ') {
        let lower = name.to_ascii_lowercase();
        let foreign =
            |word: &&&str| !word.is_ascii() || word.contains(' ') && !word.starts_with("identified");
        if PASSWORDS.iter().filter(foreign).any(|word| lower.ends_with(word.as_bytes())) {
            return true;
        }
    }
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    for (place, &byte) in name.iter().enumerate() {
        let camel = byte.is_ascii_uppercase() && place > 0 && name[place - 1].is_ascii_lowercase();
        if !byte.is_ascii_alphanumeric() && byte.is_ascii() || camel {
            words.push(Vec::new());
        }
        if byte.is_ascii_alphanumeric() || !byte.is_ascii() {
            words.last_mut().expect("there is one").push(byte.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    while words.last().is_some_and(|word| {
        word.iter().all(u8::is_ascii_digit)
            || [&b"value"[..], b"plain", b"plaintext", b"cleartext"].contains(&word.as_slice())
    }) {
        words.pop();
    }
    let Some(last) = words.pop() else { return false };
    let last = last.trim_ascii_end().to_vec();
    let digits = last.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let last = last[..last.len() - digits].to_vec();
    let before = words.pop().unwrap_or_default();
    let ends = |words: &[&str]| words.iter().any(|word| last.ends_with(word.as_bytes()));
    if ends(&["password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "wachtwoord"])
        || is_in(
            &[
                b"pass", b"pwd", b"pw", b"psw", b"userpw", b"userpwd", b"rootpw", b"clave", b"mdp", b"senha",
                b"parola",
            ],
            &last,
        )
    {
        return !is_in(LABELS, &before);
    }
    if ends(&[
        "secret",
        "secrets",
        "credential",
        "credentials",
        "apikey",
        "accesskey",
        "secretkey",
        "authkey",
    ]) || is_in(&[b"creds", b"totp", b"otp"], &last)
    {
        return !is_in(&[b"no", b"is", b"has"], &before);
    }
    if ends(&["token"]) {
        let one = is_in(&[b"token", b"accesstoken", b"authtoken", b"apitoken", b"bottoken"], &last);
        return one && !is_in(OTHER_TOKENS, &before);
    }
    last == b"key" && KEY_QUALIFIERS.iter().any(|word| before == word.as_bytes())
}
