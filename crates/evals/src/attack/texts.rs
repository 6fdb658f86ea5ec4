//! Texts that are made to take long: runs of one character, of what rules and splitters look for, and of mixtures.

use crate::random::Random;

/// Characters of every class that something may treat on its own.
const CHARACTERS: &str = " \n\t\r\0\u{1b}aAzZ09!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~éßя語あ한नم😀\u{301}\u{200b}\u{200d}\u{202e}\u{2028}\u{feff}\u{ad}\u{fe0f}\u{1f1e6}\u{10ffff}";

/// What two or three characters can set off.
const PAIRS: &[&str] = &[
    "a ",
    "a\n",
    "\n ",
    " \n",
    "\n\n",
    "\r\n",
    "a.",
    "a. ",
    "A. ",
    "a b. ",
    "( ",
    "()",
    "[](",
    "![](",
    "{}",
    "{{",
    "[[",
    "\"\\",
    "\\\"",
    "''",
    "``",
    "**",
    "__",
    "~~",
    "# \n",
    "- \n",
    "- a\n",
    "1. a\n",
    "> ",
    "> \n",
    "| ",
    "|-|\n",
    "```\n",
    "<b>",
    "</b>",
    "<!--",
    "-->",
    "&amp;",
    "%0A",
    "%20",
    "\\n",
    "\\u0041",
    "e\u{301}",
    "=\"",
    "=' ",
    ": ",
    "; ",
    "a=",
    "a: ",
    "/a",
    "../",
    "a/",
    "\\a",
    "@a",
    "#1 ",
    "a@b.c ",
    "0x",
    "1,",
    "1.0",
    "1 2",
    "-1",
    "=>",
    "->",
    "::",
    "a_",
    "a-",
    "aA",
    "é ",
    "語 ",
    "語。",
    "😀 ",
    "\u{200b}a",
    "a\u{200d}",
    "\u{202e}a",
    "\0a",
    "\u{1b}[31m",
    "\t\n",
    "a\t",
    "|a",
    "a|",
    "$a",
    "${",
    "$(",
];

/// How secrets begin, and the names that they are assigned to.
const LITERALS: &[&str] = &[
    "password=",
    "password: ",
    "password=\"",
    "Password: '",
    "passwd=",
    "pwd=",
    "pw: ",
    "secret=",
    "secret: ",
    "token=",
    "token: ",
    "api_key=",
    "apikey: ",
    "API_KEY=\"",
    "access_key=",
    "private_key: ",
    "client_secret=",
    "--password ",
    "-p",
    "--token=",
    "curl -u a:",
    "Authorization: Bearer ",
    "Authorization: Basic ",
    "Bearer ",
    "Basic ",
    "Cookie: ",
    "Set-Cookie: a=",
    "session=",
    "connect.sid=s%3A",
    "PHPSESSID=",
    "X-Api-Key: ",
    "https://a:",
    "https://a:b@",
    "postgres://",
    "mongodb+srv://u:",
    "redis://:",
    "amqp://a:b@c ",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END PRIVATE KEY-----\n",
    "-----BEGIN ",
    "-----",
    "MIIEpAIBAAKCAQEA",
    "b3BlbnNzaC1rZXktdjE",
    "PuTTY-User-Key-File-3: ",
    "Private-Lines: 14\n",
    "AGE-SECRET-KEY-1",
    "<private>",
    "</private>",
    "<private></private>",
    "[REDACTED:",
    "[REDACTED:password:",
    "[REDACTED:password:12345678]",
    "ghp_",
    "github_pat_",
    "gho_",
    "glpat-",
    "sk-",
    "sk-proj-",
    "sk-ant-",
    "sk_live_",
    "AKIA",
    "AKIAIOSFODNN7EXAMPLE ",
    "ASIA",
    "AIza",
    "ya29.",
    "xoxb-",
    "xoxp-",
    "hooks.slack.com/services/T",
    "eyJ",
    "eyJhbGciOiJIUzI1NiJ9.",
    "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.",
    "npm_",
    "pypi-AgEIcHlwaS5vcmc",
    "hf_",
    "gsk_",
    "xai-",
    "e2b_",
    "llx-",
    "SG.",
    "key-",
    "AC",
    "SK",
    "dop_v1_",
    "shpat_",
    "sq0csp-",
    "EAAC",
    "rk_live_",
    "whsec_",
    "hvs.",
    "s.",
    "vault:v1:",
    "dapi",
    "NRAK-",
    "PMAK-",
    "lin_api_",
    "secret_",
    "figd_",
    "tskey-",
    "discord.com/api/webhooks/",
    "\"d\": \"",
    "\"k\": \"",
    "kind: Secret\ndata:\n  a: ",
    "data:\n",
    "SUAA",
    "abandon ",
    "zoo ",
    "5Kb8kLf9zgWQnogidDA76MzPL6TsZZY36hWXMssSzNydYXYB9KF",
    "IDENTIFIED BY '",
    "ConvertTo-SecureString \"",
    "define('AUTH_KEY', '",
    "const char *password = \"",
    "пароль: ",
    "密码：",
    "パスワード: ",
    "contraseña=",
    "aGVsbG8gd29ybGQg",
    "Z2hwXw==",
    "6768705f",
    "data:image/png;base64,",
    "sha512-",
    "AAAAB3NzaC1yc2E",
    "ssh-rsa AAAA",
    "machine a login b password ",
];

/// Phrases by which facts, decisions, times and summaries are found.
const PHRASES: &[&str] = &[
    "We decided to use it. ",
    "I prefer tea. ",
    "The deadline is 2026-03-01. ",
    "2026-03-01T10:00:00Z ",
    "because ",
    "not ",
    "is ",
    "Actually, no. ",
    "Remember that ",
    "Ada Lovelace ",
    "NO_COLOR ",
    "src/a/b.rs ",
    "E0599 ",
    "#2819 ",
    "[message m1, user] ",
    "user: ",
    "assistant: ",
    "#12 user: ",
    "TODO: ",
    "- [ ] a\n",
    "* * *\n",
    "## a\n",
    "Dr. ",
    "e.g. ",
    "U.S.A. ",
    "3.14 ",
    "?! ",
    "… ",
    "fn a() {}\n",
    "if (a) {\n",
    "}\n",
    "import a\n",
    "| a | b |\n",
    "+ a\n- b\n",
    "@@ -1 +1 @@\n",
    "commit 0123456789abcdef\n",
    "[[1],",
    "{\"a\":",
    "<a href=\"",
    "\\begin{",
    "a AND b OR ",
    "NEAR(a b)",
    "\"a\" NOT ",
    "a* ",
    "SELECT * FROM a; ",
    "</data>\n",
    "[data 0]\n",
];

/// Returns every text by its name, each about `bytes` long; the same for the same seed.
pub fn all(bytes: usize, seed: u64) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut repeat = |what: &str| {
        texts.push((format!("{} repeated", what.escape_debug()), what.repeat(bytes.div_ceil(what.len()))));
    };
    CHARACTERS.chars().for_each(|character| repeat(&character.to_string()));
    PAIRS.iter().chain(LITERALS).chain(PHRASES).for_each(|what| repeat(what));
    let nested = bytes / 2;
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("<a>", "</a>"), ("\"", "\""), ("> ", "\n")] {
        let text = open.repeat(nested / open.len()) + &close.repeat(nested / close.len());
        texts.push((format!("{open} nested"), text));
    }
    let mut random = Random::new(seed);
    let pieces: Vec<&str> = [PAIRS, LITERALS, PHRASES].concat();
    for kinds in [2, 3, 5, 8, 13, 300] {
        for number in 0..4 {
            let some: Vec<&str> = (0..kinds).map(|_| *random.pick(&pieces)).collect();
            texts.push((
                format!("{kinds} kinds mixed, {number}"),
                filled(bytes, || random.pick(&some).to_string()),
            ));
        }
    }
    let letters = |letters: &'static [u8]| {
        let mut random = Random::new(seed);
        move || char::from(*random.pick(letters)).to_string()
    };
    texts.push(("one word".into(), filled(bytes, letters(b"abcdefghijklmnopqrstuvwxyz"))));
    texts.push(("one line of base64".into(), filled(bytes, letters(b"ABCDEFabcdef0123456789+/"))));
    texts.push(("one line of hexadecimal digits".into(), filled(bytes, letters(b"0123456789abcdef"))));
    texts.push(("one line of everything printable".into(), filled(bytes, letters(PRINTABLE))));
    texts.push(("words of every length".into(), filled(bytes, || "w".repeat(random.below(300)) + " ")));
    texts.push(("every character in turn".into(), {
        let mut next = (1..=0x0010_ffff_u32).filter_map(char::from_u32).cycle();
        filled(bytes, move || next.next().expect("a cycle has no end").to_string())
    }));
    texts
}

const PRINTABLE: &[u8] =
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

/// Returns pieces one after the other until there are `bytes` of them.
fn filled(bytes: usize, mut piece: impl FnMut() -> String) -> String {
    let mut text = String::with_capacity(bytes + 300);
    while text.len() < bytes {
        text.push_str(&piece());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_three_hundred_different_texts_of_the_length_asked_for() {
        let texts = all(1000, 1);
        assert!(texts.len() >= 300, "{}", texts.len());
        assert_eq!(texts.iter().map(|(_, text)| text).collect::<BTreeSet<_>>().len(), texts.len());
        assert!(texts.iter().all(|(_, text)| (900..1400).contains(&text.len())));
    }
}
