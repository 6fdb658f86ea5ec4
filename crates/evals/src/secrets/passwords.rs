//! Passwords of generators in files, and texts that make the rules read far.

use crate::random::Random;

/// A password in a file.
pub struct Written {
    /// The generator.
    pub generator: &'static str,
    /// The format of the file.
    pub format: &'static str,
    /// What stands before the password.
    before: String,
    /// The password, escaped.
    secret: String,
    /// What stands after it.
    after: &'static str,
}

impl Written {
    /// Returns the file.
    pub fn text(&self) -> String {
        [&self.before, &self.secret, self.after].concat()
    }

    /// Returns whether one mark replaced the whole password and nothing else.
    pub fn is_taken(&self, redacted: &str) -> bool {
        let middle = redacted.strip_prefix(&self.before).and_then(|rest| rest.strip_suffix(self.after));
        let mark = middle.and_then(|mark| mark.strip_prefix("[REDACTED:")?.strip_suffix(']'));
        mark.is_some_and(|mark| !mark.contains('['))
    }
}

/// The password generators, each with its name, its special characters, and its shortest and longest length.
const GENERATORS: [(&str, &str, usize, usize); 5] = [
    ("Amazon RDS", "!#$%&'()*+,-.:;<=>?[\\]^_`{|}~", 16, 30),
    ("AWS Secrets Manager", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 32, 32),
    ("Terraform", "!@#$%&*()-_=+[]{}<>:?", 16, 24),
    ("KeePass", "!\"#$%&()*+,-./:;<=>?@[\\]^_{|}~", 20, 20),
    ("WordPress", "!@#$%^&*()-_ []{}<>~`+=,.;:/?|", 64, 64),
];

/// Returns files with `count` passwords of each generator.
pub fn generated(count: usize, random: &mut Random) -> Vec<Written> {
    let mut written = Vec::new();
    for (generator, signs, shortest, longest) in GENERATORS {
        let alphabet: Vec<char> =
            ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(signs.chars()).collect();
        for _ in 0..count {
            let length = shortest + random.below(longest - shortest + 1);
            let password: String = (0..length).map(|_| *random.pick(&alphabet)).collect();
            let name = if generator == "WordPress" { "SECURE_AUTH_KEY" } else { "DB_PASSWORD" };
            for (format, before, escaped, after) in [
                ("JSON", "{\"%\": \"", "\"\\", "\"}\n"),
                ("YAML", "db:\n  %: \"", "\"\\", "\"\n"),
                (".env", "A=1\n%=\"", "\"\\$`", "\"\nB=2\n"),
                ("HCL", "  % = \"", "\"\\", "\"\n"),
                ("PHP", "<?php\ndefine('%', '", "'\\", "');\n"),
            ] {
                let escape = |sign: char| escaped.contains(sign).then_some('\\').into_iter().chain([sign]);
                let secret = password.chars().flat_map(escape).collect();
                written.push(Written { generator, format, before: before.replace('%', name), secret, after });
            }
        }
    }
    written
}

/// Returns texts of 1 MB, each of which repeats one piece, so that the rules have to read far.
pub fn hostile() -> Vec<String> {
    let pieces = [
        " ",
        "a",
        "A",
        "0",
        "\n",
        "\t",
        "-",
        "_",
        "=",
        "/",
        "\"",
        "'",
        "\\",
        "(",
        "{",
        "[",
        "<",
        "$",
        "%",
        "é",
        "密",
        "aB3#",
        "password",
        "password=",
        "password=\"",
        "password: ",
        "password ",
        "pw=",
        "pass:",
        "token=",
        "secret=\"",
        "api_key=",
        "auth",
        "key=",
        " -p",
        " -p=\"",
        " -u a:",
        "redis-cli -a ",
        "identified by '",
        "密码：",
        "пароль: ",
        "://",
        "a://b:c",
        "bearer ",
        "eyJ",
        "eyJ.",
        "<private>",
        "-----BEGIN ",
        "[REDACTED:",
        "password=${",
        "password={{",
        "password=$(",
        "a:5432:",
    ];
    pieces.iter().map(|piece| piece.repeat(1_000_000 / piece.len())).collect()
}
