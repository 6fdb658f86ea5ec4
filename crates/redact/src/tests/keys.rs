//! Tests private keys in many kinds of surrounding text.

use super::drawing::{drawn, one};
use super::{only_mark, redact};

/// A key block put together from its parts.
fn key_block(kind: &str, lines: usize, end: &str) -> String {
    let mut block = ["-----BEGIN ", kind, "-----", end].concat();
    for line in drawn("[A-Za-z0-9+/]{64}", lines) {
        block += &line;
        block += end;
    }
    block + &one("[A-Za-z0-9+/]", 30) + "==" + end + &["-----END ", kind, "-----"].concat()
}

#[test]
fn private_keys_are_taken_whole_with_their_bodies() {
    for kind in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for end in ["\n", "\r\n", "\\n", "\\r\\n", "\n+", "\n    ", "\n> ", "\\n\" +\n  \""] {
            let block = key_block(kind, 12, end);
            let redacted = redact(&format!("before \"{block}\" after"));
            let middle = redacted.strip_prefix("before \"").and_then(|rest| rest.strip_suffix("\" after"));
            assert_eq!(middle.and_then(only_mark), Some("private-key"), "{end:?}: {redacted:?}");
            // The key without its last line, and the key cut off within a line.
            let body = &block[..block.find("-----END").expect("it has one")];
            let cut = redact(&format!("{}\n\nAfter it.", body.trim_end_matches(end)));
            let rest = cut.strip_suffix("\n\nAfter it.");
            assert_eq!(rest.and_then(only_mark), Some("private-key"), "{end:?}: {cut:?}");
            let cut = body.match_indices(end).nth(5).expect("twelve lines").0;
            let cut = redact(&body[..cut - 20]);
            assert_eq!(only_mark(&cut), Some("private-key"), "{end:?}: {cut:?}");
        }
    }
    let numbered: String = key_block("RSA PRIVATE KEY", 6, "\n")
        .lines()
        .enumerate()
        .map(|(number, line)| format!("{number:>6}→{line}\n"))
        .collect();
    assert_eq!(
        only_mark(redact(&numbered).trim_start_matches(" ").trim_start_matches("0→").trim_end()),
        Some("private-key")
    );
    let bare =
        ["MIIEpAIBAAKC", "AQEA", &one("[A-Za-z0-9+/]", 48), "\n", &one("[A-Za-z0-9+/]", 64), "\n"].concat();
    assert_eq!(only_mark(redact(&bare).trim_end()), Some("private-key-body"));
}

/// Decorations of the lines of a key: the text before, between and after them.
///
/// `{n}` is the number of a line.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("docker logs -t", "2024-01-15T10:00:{n}.123456789Z ", "\n"),
    ("GitHub Actions", "2024-01-15T10:00:{n}.1234567Z ", "\n"),
    ("docker compose", "payments-api-1  | ", "\n"),
    ("kubectl logs --prefix", "[pod/payments-7d4b9c6f5-x2x9z/app] ", "\n"),
    ("syslog", "Jan 15 10:00:{n} host app[4711]: ", "\n"),
    ("journal", "Jan 15 10:00:{n} ip-10-0-0-1.eu-central-1.compute.internal app[4711]: ", "\n"),
    ("grep -n", "deploy/secrets/production/server.pem:{n}:", "\n"),
    ("grep -A", "server.pem-{n}-", "\n"),
    ("coloured diff", "\u{1b}[32m+", "\u{1b}[m\n"),
    ("coloured diff, words apart", "\u{1b}[32m+\u{1b}[m\u{1b}[32m", "\u{1b}[m\n"),
    ("git blame", "a1b2c3d4 (Jane Doe 2024-01-15 10:00:{n} +0100 {n}) ", "\n"),
    (
        "git blame -l",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709 (Jane Doe 2024-01-15 10:00:{n} +0100 {n}) ",
        "\n",
    ),
    ("echo to a file", "echo \"", "\" >> /etc/ssl/private/server.pem\n"),
    ("printf", "printf '%s\\n' '", "' >> server.pem\n"),
    ("br", "", "<br>"),
    ("br with its slash", "", "<br />\n"),
    ("percent", "", "%0A"),
    ("percent, both", "", "%0D%0A"),
    ("escaped", "", "\\n"),
    ("escaped twice", "", "\\\\n"),
    ("PHP", "    . '", "' . \"\\n\"\n"),
    ("JavaScript", "  '", "\\n' +\n"),
    ("Java", "            + \"", "\\n\"\n"),
    ("C", "    \"", "\\n\"\n"),
    ("C, continued", "", "\\n\\\n"),
    ("bat", "  {n}   \u{2502} ", "\n"),
    (
        "bat in colours",
        "\u{1b}[38;5;238m  {n}\u{1b}[0m   \u{1b}[38;5;238m\u{2502}\u{1b}[0m \u{1b}[38;5;231m",
        "\u{1b}[0m\n",
    ),
    ("quoted mail", "> > ", "\n"),
    ("YAML", "      ", "\n"),
    ("a list in YAML", "  - ", "\n"),
    ("JSON lines", "    \"", "\",\n"),
    (
        "docker's JSON",
        "{\"log\":\"",
        "\\n\",\"stream\":\"stdout\",\"time\":\"2024-01-15T10:00:{n}.123456789Z\"}\n",
    ),
    (
        "an event in JSON",
        "{\"@timestamp\":\"2024-01-15T10:00:{n}Z\",\"level\":\"info\",\"kubernetes\":{\"pod\":\"web-7d4b9c6f5-x2x9z\",\"namespace\":\"production\"},\"message\":\"",
        "\"}\n",
    ),
    ("cat -A", "", "$\n"),
    ("cat -A of DOS lines", "", "^M$\n"),
    ("nl", "    {n}\t", "\n"),
    ("DOS lines", "", "\r\n"),
    ("HTML entities", "", "&#10;"),
    ("table cells", "<td>", "</td></tr>\n<tr>"),
    ("Rust log", "[2024-01-15T10:00:{n}Z DEBUG server::tls] ", "\n"),
    ("terminal", "root@host:/# ", "\n"),
    ("Terraform", "        + ", "\n"),
    ("Windows log", "15.01.2024 10:00:{n} [12] INFO  App.Security.Certificates.Loader - ", "\n"),
];

/// Returns the lines of a key with this body: with the first line if `first` is true, and with the last if `last`
/// is.
fn key_lines(kind: &str, body: &[String], first: bool, last: bool) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(first.then(|| ["-----BEGIN ", kind, "-----"].concat()));
    lines.extend(body.iter().cloned());
    lines.extend(last.then(|| ["-----END ", kind, "-----"].concat()));
    lines
}

fn set_in(lines: &[String], before: &str, after: &str) -> String {
    let numbered = lines.iter().enumerate();
    numbered
        .map(|(n, line)| [&before.replace("{n}", &format!("{:>2}", n + 12)), line.as_str(), after].concat())
        .collect()
}

/// Returns how many pieces of sixteen letters from `body` are still in `text`.
fn pieces_left(body: &[String], text: &str) -> usize {
    let pieces = body.iter().flat_map(|line| line.as_bytes().chunks_exact(16));
    pieces.filter(|piece| text.contains(std::str::from_utf8(piece).expect("base64"))).count()
}

#[test]
fn nothing_of_a_key_stays_whatever_stands_around_its_lines() {
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let mut body = drawn("[A-Za-z0-9+/]{64}", 24);
        body.push(one("[A-Za-z0-9+/]", 30) + "==");
        for (name, before, after) in SETTINGS {
            for (first, last) in [(true, true), (true, false), (false, true)] {
                let text = set_in(&key_lines(kind, &body, first, last), before, after);
                let prose =
                    format!("{before}It was saved 3 times. Then the Server2 restarted and went on.{after}")
                        .replace("{n}", "11");
                let text = format!("{prose}{text}\n{prose}");
                let redacted = redact(&text);
                let left = pieces_left(&body, &redacted);
                assert_eq!(left, 0, "{name}, {kind}, first {first}, last {last}: {redacted}");
                let kept = redacted.matches("went on.").count();
                assert_eq!(kept, 2, "{name}, {kind}, first {first}, last {last}: {redacted}");
            }
            // Lines are missing in the middle.
            let mut gap = key_lines(kind, &body, true, true);
            gap[9] = "...".into();
            let redacted = redact(&set_in(&gap, before, after));
            assert_eq!(pieces_left(&body, &redacted), 0, "{name}, with a gap: {redacted}");
        }
    }
}

#[test]
fn putty_keys_behind_prefixes() {
    for (name, before, after) in SETTINGS {
        let body = drawn("[A-Za-z0-9+/]{64}", 14);
        let mut lines: Vec<String> = vec!["Private-Lines: 14".into()];
        lines.extend(body.iter().cloned());
        lines.push(["Private-MAC: ", &one("[0-9a-f]", 40)].concat());
        let redacted = redact(&set_in(&lines, before, after));
        assert_eq!(pieces_left(&body, &redacted), 0, "{name}: {redacted}");
    }
}

#[test]
fn text_about_keys_stays() {
    let begin = ["-----BEGIN ", "RSA PRIVATE KEY-----"].concat();
    let end = ["-----END ", "RSA PRIVATE KEY-----"].concat();
    let code =
        "fn get_element_by_class_name2(&self) -> Option<&HTMLElement4> { self.src_main_java_com_Example2 }\n";
    for text in [
        format!("{begin}\n...\n{end}\n"),
        format!("{begin}\n<your key here, 32 lines of Base64>\n{end}\n"),
        format!("A file begins with `{begin}` and ends with `{end}`.\n"),
        format!("const A: &str = \"{begin}\";\n{}const B: &str = \"{end}\";\n", code.repeat(6)),
        format!("/{begin}([A-Za-z0-9+\\/=\\s]+){end}/"),
        format!("{end}\n{}", code.repeat(4)),
        format!("{}{end}\n", code.repeat(4)),
    ] {
        assert_eq!(redact(&text), text);
    }
}
