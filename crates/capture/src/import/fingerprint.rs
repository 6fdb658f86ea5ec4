//! Recognises repeated tool calls: calls of the same command whose times, counts or temporary paths differ.

use tiro_redact::Redactor;

/// Returns a hash that is equal for a call and its repetitions. The `call` of a repetition may differ only in temporary
/// paths. Its `outcome` may also differ in numbers, hexadecimal ids, times and durations.
pub(super) fn fingerprint(call: &str, outcome: &str) -> u64 {
    // Secrets are redacted before hashing. Answers show an id that is derived from the hash, and nobody must be able to
    // check a guessed secret against this id.
    let [call, outcome] = [call, outcome].map(|text| Redactor::blank().redact(text).text.into_owned());
    let text = normal(&call, false) + "\n" + &normal(&outcome, true);
    let hash = blake3::hash(text.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("8 of 32 bytes"))
}

/// Folders for temporary files.
const TEMPORARY: [&str; 4] = ["/tmp/", "/private/tmp/", "/var/folders/", "/var/tmp/"];

/// Returns `text` with temporary paths replaced by `#`. If `numbers` is true, numbers are replaced too. Each run of
/// white space is replaced by one space.
fn normal(text: &str, numbers: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '/'
            && let Some(folder) = TEMPORARY.iter().find(|folder| rest.starts_with(**folder))
        {
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ':' | ')' | ',' | ';');
            rest = &rest[rest.find(ends).unwrap_or(rest.len()).max(folder.len())..];
            out += "/tmp/#";
        } else if c.is_alphanumeric() {
            let (word, after) =
                rest.split_at(rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len()));
            let is_hex = word.len() >= 7 && word.bytes().all(|b| b.is_ascii_hexdigit());
            if numbers && (is_hex || word.bytes().any(|b| b.is_ascii_digit())) {
                // A date or a time such as `09:30:00.5` counts as a single number.
                let joined =
                    out.strip_suffix(['.', ':', '-', '_', ',']).is_some_and(|out| out.ends_with('#'));
                if joined {
                    out.pop();
                } else {
                    out.push('#');
                }
            } else {
                out += word;
            }
            rest = after;
        } else {
            if !c.is_whitespace() {
                out.push(c);
            } else if !out.ends_with(' ') {
                out.push(' ');
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a former fault: the id of an output was a hash that included its secrets, so guessed secrets
    /// could be checked against it.
    #[test]
    fn a_fingerprint_reveals_nothing_of_a_secret() {
        let of = |secret: &str| fingerprint("Bash: env", &format!("DB_PASSWORD={secret}"));
        assert_eq!(of("qZxWvKjPhRtLmNbYcDgF"), of("LmNbYcDgFqZxWvKjPhRt"));
        assert_ne!(of("CorrectHorseBattery"), fingerprint("Bash: env", "DB_HOST=qZxWvKjPhRtLmNbYcDgF"));
    }

    #[test]
    fn a_repeat_differs_in_numbers_only() {
        let first = "2026-11-20T13:54:20.595Z ok in 1.23s, built deadbeef12 in /tmp/a1/b (12 tests)";
        let again = "2026-11-21T09:04:00Z ok in 12s,  built 0badcafe in /tmp/zz (7 tests)";
        assert_eq!(fingerprint("Bash: cargo test", first), fingerprint("Bash: cargo test", again));
        assert_ne!(fingerprint("Bash: cargo test", first), fingerprint("Bash: cargo test", "failed"));
        assert_ne!(fingerprint("Read: chapter1.md", "ok"), fingerprint("Read: chapter2.md", "ok"));
        assert_eq!(fingerprint("Bash: cat /tmp/x1", "ok"), fingerprint("Bash: cat /tmp/x2", "ok"));
    }
}
