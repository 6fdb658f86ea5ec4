//! Passwords as generators make them, and the places where people and programs write them.

mod places;

use crate::redact::Redactor;

/// Returns `text` without its secrets.
fn redact(text: &str) -> String {
    Redactor::new([7; 32]).redact(text).text.into_owned()
}

/// Whether `secret` between `before` and `after` becomes one mark and nothing else changes.
fn taken(before: &str, secret: &str, after: &str) -> bool {
    let redacted = redact(&format!("{before}{secret}{after}"));
    let middle = redacted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    middle
        .and_then(|mark| mark.strip_prefix("[REDACTED:")?.strip_suffix(']'))
        .is_some_and(|mark| !mark.contains('['))
}

/// Draws numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn drawn(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

/// The passwords of one generator.
struct Generator {
    name: &'static str,
    alphabet: Vec<u8>,
    lengths: std::ops::RangeInclusive<usize>,
    /// The names under which such passwords are found.
    names: &'static [&'static str],
}

fn generators() -> Vec<Generator> {
    let printable = || b'!'..=b'~';
    let alphanumeric = || printable().filter(u8::is_ascii_alphanumeric);
    const NAMES: &[&str] = &["DB_PASSWORD", "password", "dbPassword", "admin_password", "master_password"];
    vec![
        Generator {
            name: "Amazon RDS: printable ASCII without / @ \" and space",
            alphabet: printable().filter(|b| !b"/@\"".contains(b)).collect(),
            lengths: 16..=30,
            names: NAMES,
        },
        Generator {
            name: "AWS Secrets Manager: letters, digits and all punctuation, 32",
            alphabet: printable().collect(),
            lengths: 32..=32,
            names: NAMES,
        },
        Generator {
            name: "Terraform random_password",
            alphabet: alphanumeric().chain(*b"!@#$%&*()-_=+[]{}<>:?").collect(),
            lengths: 16..=24,
            names: NAMES,
        },
        Generator {
            name: "KeePass: letters, digits and special signs, 20",
            alphabet: printable().filter(|b| !b"'`".contains(b)).collect(),
            lengths: 20..=20,
            names: NAMES,
        },
        Generator {
            name: "WordPress keys and salts, 64",
            alphabet: alphanumeric().chain(*b"!@#$%^&*()-_ []{}<>~`+=,.;:/?|").collect(),
            lengths: 64..=64,
            names: &[
                "AUTH_KEY",
                "SECURE_AUTH_KEY",
                "LOGGED_IN_KEY",
                "NONCE_KEY",
                "AUTH_SALT",
                "SECURE_AUTH_SALT",
                "LOGGED_IN_SALT",
                "NONCE_SALT",
            ],
        },
    ]
}

/// Returns `text` with a backslash before each of `signs`.
fn escaped(text: &str, signs: &str) -> String {
    text.chars().flat_map(|c| signs.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Returns the ways in which `format` writes `password` under `name`: what stands before it, itself, what stands behind.
fn written(format: &str, name: &str, password: &str) -> Vec<(String, String, String)> {
    let plain =
        |extra: &str| password.bytes().all(|b| b.is_ascii_graphic() && !extra.as_bytes().contains(&b));
    let first = |signs: &str| signs.contains(&password[..1]);
    let mut ways = Vec::new();
    let mut way = |before: String, secret: String, after: &str| ways.push((before, secret, after.to_owned()));
    match format {
        "JSON" => {
            way(
                format!("{{\n  \"user\": \"app\",\n  \"{name}\": \""),
                escaped(password, "\"\\"),
                "\",\n  \"port\": 5432\n}\n",
            );
            way(format!("{{\"user\":\"app\",\"{name}\":\""), escaped(password, "\"\\"), "\"}");
        }
        "YAML" => {
            way(format!("db:\n  {name}: \""), escaped(password, "\"\\"), "\"\n  port: 5432\n");
            way(format!("db:\n  {name}: '"), password.replace('\'', "''"), "'\n  port: 5432\n");
            let indicator = first("-?:,[]{}#&*!|>'\"%@`");
            if plain("#") && !indicator && !password.ends_with(':') {
                way(format!("db:\n  {name}: "), password.to_owned(), "\n  port: 5432\n");
            }
        }
        ".env" => {
            way(format!("USER=app\n{name}=\""), escaped(password, "\"\\$`"), "\"\nPORT=5432\n");
            if !password.contains('\'') {
                way(format!("USER=app\n{name}='"), password.to_owned(), "'\nPORT=5432\n");
            }
            if plain("#") && !first("\"'`") {
                way(format!("USER=app\n{name}="), password.to_owned(), "\nPORT=5432\n");
            }
        }
        "HCL" => {
            let inner = escaped(password, "\"\\").replace("${", "$${").replace("%{", "%%{");
            way(format!("resource \"db\" \"main\" {{\n  {name} = \""), inner, "\"\n}\n");
        }
        "PHP" => {
            way(format!("<?php\ndefine('{name}', '"), escaped(password, "'\\"), "');\n");
            way(format!("<?php\n$config['{name}'] = '"), escaped(password, "'\\"), "';\n");
            way(format!("<?php\nreturn ['{name}' => \""), escaped(password, "\"\\$"), "\"];\n");
        }
        _ => unreachable!("the formats are those of the test"),
    }
    ways
}

#[test]
fn generated_passwords_are_taken_whole() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut lost = Vec::new();
    for generator in generators() {
        for format in ["JSON", "YAML", ".env", "HCL", "PHP"] {
            let (mut found, mut count) = (0, 0);
            for number in 0..40 {
                let (shortest, longest) = generator.lengths.clone().into_inner();
                let length = shortest + dice.below(longest - shortest + 1);
                let password = dice.drawn(&generator.alphabet, length);
                let name = generator.names[number % generator.names.len()];
                for (before, secret, after) in written(format, name, &password) {
                    count += 1;
                    if taken(&before, &secret, &after) {
                        found += 1;
                    } else {
                        lost.push(format!("{format}: {before}{secret}{after}"));
                    }
                }
            }
            println!("{:>4} of {count:>4}  {format:5} {}", found, generator.name);
            assert!(found * 100 >= count * 95, "{}, {format}: {found} of {count}; {lost:#?}", generator.name);
        }
    }
}
