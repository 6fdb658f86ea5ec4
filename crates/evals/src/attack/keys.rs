//! Private keys as tools print them: after timestamps and line numbers, in markup, and in quotes.
//!
//! The keys are random bytes, so any line of a key in an answer is a leak of that key.

use crate::random::Random;

/// A way to print the lines of a file: a name, and the function that makes the text from the lines.
type Print = fn(&[String]) -> String;

/// The ways in which a key is printed.
pub const PRINTS: &[(&str, Print)] = &[
    ("as it is", |lines| each(lines, |_, line| format!("{line}\n"))),
    ("docker logs -t", |lines| {
        each(lines, |n, line| format!("2026-03-01T10:00:{:02}.{:09}Z {line}\n", n % 60, n * 7_654_321))
    }),
    ("a CI log", |lines| {
        each(lines, |n, line| format!("2026-03-01T10:00:{:02}.1234567Z ##[debug]{line}\n", n % 60))
    }),
    ("docker compose", |lines| each(lines, |_, line| format!("web-1  | {line}\n"))),
    ("kubectl logs --prefix", |lines| {
        each(lines, |_, line| format!("[pod/web-6d4cf56db6-abcde/app] {line}\n"))
    }),
    ("syslog", |lines| each(lines, |n, line| format!("Mar  1 10:00:{:02} host app[4711]: {line}\n", n % 60))),
    ("grep -n", |lines| each(lines, |n, line| format!("deploy/id_ed25519:{}:{line}\n", n + 1))),
    ("grep with context", |lines| each(lines, |n, line| format!("deploy/key.pem-{}-{line}\n", n + 12))),
    ("a coloured diff", |lines| {
        each(lines, |_, line| format!("\u{1b}[32m+\u{1b}[m\u{1b}[32m{line}\u{1b}[m\n"))
    }),
    ("git blame", |lines| {
        each(lines, |n, line| {
            format!("1a2b3c4d (Ada Lovelace 2026-03-01 10:00:00 +0100 {:>2}) {line}\n", n + 1)
        })
    }),
    ("echo into a file", |lines| each(lines, |_, line| format!("echo \"{line}\" >> ~/.ssh/id_rsa\n"))),
    ("printf", |lines| format!("printf '%s\\n' {}\n", each(lines, |_, line| format!("'{line}' ")))),
    ("HTML", |lines| each(lines, |_, line| format!("{line}<br>\n"))),
    ("HTML on one line", |lines| each(lines, |_, line| format!("{line}<br/>"))),
    ("a URL", |lines| {
        format!("https://example.org/?key={}", each(lines, |_, line| format!("{}%0A", encoded(line))))
    }),
    ("PHP", |lines| {
        each(lines, |n, line| format!("{}\"{line}\\n\"\n", if n == 0 { "$key = " } else { "    . " }))
    }),
    ("JavaScript", |lines| each(lines, |_, line| format!("  '{line}\\n' +\n"))),
    ("C", |lines| {
        format!("static const char key[] =\n{};\n", each(lines, |_, line| format!("    \"{line}\\n\"\n")))
    }),
    ("bat", |lines| each(lines, |n, line| format!("{:>4}   │ {line}\n", n + 1))),
    ("cat -n", |lines| each(lines, |n, line| format!("{:>6}\t{line}\n", n + 1))),
    ("cat -A", |lines| each(lines, |_, line| format!("{line}$\n"))),
    ("a quotation", |lines| each(lines, |_, line| format!("> > {line}\n"))),
    ("YAML", |lines| format!("tls:\n  key: |-\n{}", each(lines, |_, line| format!("    {line}\n")))),
    ("a JSON string", |lines| format!("{{\"key\": \"{}\"}}", each(lines, |_, line| format!("{line}\\n")))),
    ("JSON within JSON", |lines| {
        format!("{{\"log\": \"{{\\\"key\\\": \\\"{}\\\"}}\"}}", each(lines, |_, line| format!("{line}\\\\n")))
    }),
    ("a JSON array", |lines| format!("[{}]", each(lines, |_, line| format!("\n  \"{line}\",")))),
    ("lines left out", |lines| {
        let middle = lines.len() / 2;
        each(lines, |n, line| if n == middle { "...\n".to_owned() } else { format!("{line}\n") })
    }),
    ("a Markdown table", |lines| each(lines, |n, line| format!("| {n} | `{line}` |\n"))),
    ("CRLF and a log level", |lines| each(lines, |_, line| format!("INFO  [main] {line}\r\n"))),
    ("without an end", |lines| each(&lines[..lines.len() - 1], |n, line| format!("{:>3}: {line}\n", n + 1))),
];

/// Returns the lines of a fake key: armour and random base64.
pub fn made_up(random: &mut Random) -> Vec<String> {
    let kind = *random.pick(&["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "]);
    let mut lines = vec![format!("-----BEGIN {kind}PRIVATE KEY-----")];
    let width = *random.pick(&[64, 70, 76]);
    for _ in 0..6 + random.below(20) {
        lines.push(base64(random, width));
    }
    let rest = 20 + random.below(30);
    lines.push(format!("{}==", base64(random, rest - rest % 4 + 2)));
    lines.push(format!("-----END {kind}PRIVATE KEY-----"));
    lines
}

/// Returns how many lines of the key's body are left in `shown`, in full or with at least 16 of their characters.
pub fn lines_left(key: &[String], shown: &str) -> usize {
    let body = &key[1..key.len() - 1];
    body.iter()
        .filter(|line| line.as_bytes().windows(16).any(|run| shown.contains(&*String::from_utf8_lossy(run))))
        .count()
}

/// Returns a fake token, of a kind that its first letters tell.
pub fn token(random: &mut Random) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let (kind, length) = *random.pick(&[("ghp_", 36), ("glpat-", 20), ("npm_", 36), ("hf_", 34)]);
    let rest: String = (0..length).map(|_| char::from(LETTERS[random.below(62)])).collect();
    format!("{kind}{rest}")
}

/// Returns a made-up password without a form of its own, as a generator of passwords makes it.
pub fn password(random: &mut Random) -> String {
    const LETTERS: &[u8; 66] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.+";
    let inner: String = (0..18).map(|_| char::from(LETTERS[random.below(66)])).collect();
    format!("x{inner}7")
}

fn base64(random: &mut Random, length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..length).map(|_| char::from(LETTERS[random.below(64)])).collect()
}

fn each(lines: &[String], print: impl Fn(usize, &str) -> String) -> String {
    lines.iter().enumerate().map(|(number, line)| print(number, line)).collect()
}

/// Returns a line as part of a URL.
fn encoded(line: &str) -> String {
    line.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D").replace(' ', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_left_where_a_part_of_it_is() {
        let key = made_up(&mut Random::new(1));
        let whole = PRINTS[0].1(&key);
        assert_eq!(lines_left(&key, &whole), key.len() - 2);
        assert_eq!(lines_left(&key, &key[2][10..40]), 1);
        assert_eq!(lines_left(&key, "[REDACTED:private-key:123]"), 0);
    }
}
