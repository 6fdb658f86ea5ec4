//! The files and identifiers that a text names, as far as they are surely names of code.

use std::collections::BTreeSet;

use super::identifiers::identifiers;

/// The maximum number of bytes of a text that are read. Arbitrary: far longer than a note.
const MOST_READ: usize = 16 * 1024;

/// The maximum number of files, and of identifiers. Arbitrary: a note about more code is about none of it.
const MOST: usize = 32;

/// The fewest characters of an identifier. Arbitrary: shorter ones occur by chance.
const SHORTEST: usize = 4;

/// The names of code in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeNames {
    /// The files, as paths or names, without line numbers, sorted.
    pub files: Vec<String>,
    /// The identifiers, without the paths, types and calls around them, sorted.
    pub identifiers: Vec<String>,
}

impl CodeNames {
    /// Returns the first names of code in `text`. A file has an extension. An identifier is written in `snake_case` or
    /// `camelCase`, or it is a part of a path or call in backquotes, such as `Pool::acquire()`.
    pub fn of(text: &str) -> CodeNames {
        let text = &text[..text.floor_char_boundary(MOST_READ)];
        let (mut files, mut found) = (BTreeSet::new(), BTreeSet::new());
        for (place, part) in text.split('`').enumerate() {
            let is_name = place % 2 == 1 && !part.contains(char::is_whitespace);
            let is_code = is_name && (part.contains("::") || part.contains("()"));
            for name in identifiers(part).map(without_line) {
                if name.contains("://") || name.contains('@') {
                    continue;
                }
                if is_file(name) {
                    files.insert(name.trim_start_matches("./").to_owned());
                } else if !name.contains('/') {
                    let parts = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    found.extend(parts.filter(|part| is_identifier(part, is_code)).map(str::to_owned));
                }
            }
        }
        CodeNames {
            files: files.into_iter().take(MOST).collect(),
            identifiers: found.into_iter().take(MOST).collect(),
        }
    }

    /// Returns whether the text names no code.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.identifiers.is_empty()
    }
}

/// Returns `name` without the numbers of lines at its end, as in `main.rs:12:3`.
fn without_line(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':' || c == '-');
    if name[stem.len()..].starts_with(':') { stem } else { name }
}

/// Returns whether `name` is the path or the name of a file with an extension.
fn is_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let is_plain = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    name.chars().all(is_plain)
        && last.rsplit_once('.').is_some_and(|(stem, ending)| {
            stem.len() > 1
                && (1..=5).contains(&ending.len())
                && ending.starts_with(|c: char| c.is_ascii_lowercase())
                && ending.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

/// Returns whether `word` is an identifier. In a path or a call, any word may be one.
fn is_identifier(word: &str, is_code: bool) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_snake = word.trim_matches('_').contains('_');
    let is_camel =
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.contains(|c: char| c.is_ascii_uppercase());
    word.len() >= SHORTEST && begins && (is_code || is_snake || is_camel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<String>, Vec<String>) {
        let CodeNames { files, identifiers } = CodeNames::of(text);
        (files, identifiers)
    }

    #[test]
    fn files_and_identifiers_are_named() {
        let (files, identifiers) =
            of("We keep `retry_call` in ./src/net/retry.rs:12, and `Pool::acquire()` in pool.rs.");
        assert_eq!(files, ["pool.rs", "src/net/retry.rs"]);
        assert_eq!(identifiers, ["Pool", "acquire", "retry_call"]);
        let (files, identifiers) = of("parse_header replaces parseHeader; see lib/a-b.test.ts.");
        assert_eq!((files, identifiers.len()), (vec!["lib/a-b.test.ts".to_owned()], 2));
    }

    #[test]
    fn other_words_name_no_code() {
        for text in [
            "We use PostgreSQL 17 and GitHub, e.g. for v1.2 of C++.",
            "See https://example.com/a/page.html or mail ada@example.com.",
            "Run `cargo test` on `staging`, and read/write as up-to-date.",
        ] {
            assert!(CodeNames::of(text).is_empty(), "{:?}", CodeNames::of(text));
        }
    }

    #[test]
    fn megabytes_are_read_at_once() {
        assert!(CodeNames::of(&"語".repeat(1 << 20)).is_empty());
    }
}
