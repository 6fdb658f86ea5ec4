//! Identifiers in their exact form: `NO_COLOR`, `src/a/b.rs`, `--dry-run`, `__init__`, `Vec<u8>`.
//!
//! The tokenizer of the index reads `NO_COLOR`, `no-color` and "no color" as the same words. So the hash of the exact
//! form, with its case and punctuation, is stored in the index as an additional word. This word is rare, so a text with
//! the exact form ranks before texts with only its parts.

use super::{EXACT, is_cjk};

/// The maximum number of bytes of an identifier. Arbitrary: longer words are data.
const LONGEST: usize = 64;

/// The characters besides letters and digits that an identifier may have outside of brackets.
const JOINS: &str = "_-.:/\\#@+=~$&";

/// Returns the word of the index that represents the exact form of `identifier`.
pub fn exact(identifier: &str) -> String {
    let hash = blake3::hash(identifier.as_bytes()).to_hex();
    format!("{}{EXACT}", &hash[..10])
}

/// Returns the identifiers of `text` as they are written, in order. For an identifier with brackets, also returns its
/// parts outside of and between the brackets. An identifier is a word that has punctuation, digits or capital letters
/// within it or punctuation before it.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "`\"'“”‘’«»,;".contains(c) || is_cjk(c));
    words.flat_map(|word| {
        let whole = trimmed(balanced(word));
        let has_brackets = whole.contains(['(', '<', '[', '{']);
        let inner = word.split(|c: char| !(c.is_alphanumeric() || JOINS.contains(c))).map(trimmed);
        has_brackets.then_some(whole).into_iter().chain(inner).filter(|word| is_identifier(word))
    })
}

/// Calls `add` with each identifier of `text`, and with each identifier that is a part of one, such as `rateLimiter` in
/// `self.rateLimiter.check` or `pool.rs` in `src/net/pool.rs`.
pub fn exact_forms<'t>(text: &'t str, mut add: impl FnMut(&'t str)) {
    for identifier in identifiers(text) {
        add(identifier);
        if identifier.contains(['(', '<', '[', '{']) {
            continue;
        }
        let mut seen = identifier;
        let borders: [fn(char) -> bool; 3] = [
            |c| c == '/' || c == '\\',
            |c| !c.is_alphanumeric() && c != '_' && c != '-',
            |c| !c.is_alphanumeric() && c != '_',
        ];
        for is_border in borders {
            for part in identifier.split(is_border).map(trimmed) {
                if part != seen && part != identifier && is_identifier(part) && !is_word(part) {
                    add(part);
                    seen = part;
                }
            }
        }
    }
}

/// Returns `word` without brackets at its ends that have no counterpart in it, and without quotes and dots after them.
fn balanced(word: &str) -> &str {
    let mut word = word.trim_end_matches(['.', ':', '!', '?']);
    // Each pass removes one bracket. Words that are too long are no identifiers.
    while word.len() <= 4 * LONGEST {
        let count = |c: char| word.matches(c).count();
        let shorter =
            [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>')].into_iter().find_map(|(open, close)| {
                if count(open) > count(close) {
                    word.strip_prefix(open).or_else(|| word.rfind(open).map(|at| &word[..at]))
                } else if count(close) > count(open) {
                    word.strip_suffix(close).or_else(|| word.find(close).map(|at| &word[..at]))
                } else {
                    let within = word.strip_prefix(open).and_then(|word| word.strip_suffix(close));
                    within.filter(|within| is_balanced(within, open, close))
                }
            });
        match shorter {
            Some(shorter) => word = shorter.trim_end_matches(['.', ':', '!', '?']),
            None => return word,
        }
    }
    word
}

/// Returns whether no bracket is closed before it is opened.
fn is_balanced(word: &str, open: char, close: char) -> bool {
    let mut depth = 0;
    word.chars().all(|c| {
        depth += i32::from(c == open) - i32::from(c == close);
        depth >= 0
    })
}

/// Returns `word` without the punctuation of sentences and of diffs at its ends.
fn trimmed(word: &str) -> &str {
    let mut end = word.trim_end_matches(['.', ':', '/', '\\', '-', '=', '~', '$', '&', '@', '!', '?']);
    if end.ends_with('+') && !end.ends_with("++") {
        end = end.trim_end_matches('+');
    }
    let start = end.trim_start_matches([':', '=', '+', '*', '!', '?']);
    let start = start.strip_prefix("./").unwrap_or(start);
    if start.starts_with("...") { start.trim_start_matches('.') } else { start }
}

fn is_identifier(word: &str) -> bool {
    let has = |is: fn(char) -> bool| word.contains(is);
    word.len() <= LONGEST
        && has(char::is_alphanumeric)
        && (!is_word(word) || (has(char::is_numeric) && has(char::is_alphabetic)))
}

/// Returns whether `word` has only letters and digits, and no capital letter after the first character. The index
/// contains such a word in its plain form.
fn is_word(word: &str) -> bool {
    word.chars().all(char::is_alphanumeric) && !word.chars().skip(1).any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_keep_their_punctuation_and_lose_that_of_the_sentence() {
        let of = |text| identifiers(text).collect::<Vec<&str>>();
        assert_eq!(
            of("Is `NO_COLOR` (see src/a.rs:12, #2819) read by --dry-run, __init__ or .gitignore?"),
            ["NO_COLOR", "src/a.rs:12", "#2819", "--dry-run", "__init__", ".gitignore"]
        );
        assert_eq!(
            of("Vec<u8> and #[derive(Debug)], O(n). (foo::bar())"),
            ["Vec<u8>", "u8", "#[derive(Debug)]", "O(n)", "foo::bar()", "foo::bar"]
        );
        assert_eq!(
            of("C++17, C++; @types/node; $HOME = ./run.sh..."),
            ["C++17", "C++", "@types/node", "$HOME", "run.sh"]
        );
        assert_eq!(of("Plain words - nothing else. It's “so”: I am… (really)!"), Vec::<&str>::new());
        assert_eq!(of("用argon2做哈希"), ["argon2"]);
        assert_eq!(of(&"x_".repeat(40)), Vec::<&str>::new());
    }

    #[test]
    fn an_identifier_within_another_has_an_exact_form_too() {
        let of = |text| {
            let mut forms = Vec::new();
            exact_forms(text, |form| forms.push(form));
            forms
        };
        assert_eq!(of("self.rateLimiter.check"), ["self.rateLimiter.check", "rateLimiter"]);
        assert_eq!(of("src/net/main_pool.rs"), ["src/net/main_pool.rs", "main_pool.rs", "main_pool"]);
        assert_eq!(of("--no-verify=v2.1"), ["--no-verify=v2.1", "--no-verify"]);
        assert_eq!(of("plain"), Vec::<&str>::new());
    }

    #[test]
    fn the_exact_form_is_one_word_that_depends_on_case_and_punctuation() {
        let forms = ["NO_COLOR", "no_color", "NO-COLOR", "_NO_COLOR"].map(exact);
        assert!(forms.iter().all(|form| form.chars().all(super::super::is_of_word)));
        let distinct: std::collections::HashSet<&String> = forms.iter().collect();
        assert_eq!(distinct.len(), forms.len());
    }
}
