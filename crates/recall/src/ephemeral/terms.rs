//! Finds the terms of a text: its words in lower case and stemmed, and the parts of its identifiers.

use frostem::{Algorithm, Stemmer};

use tiro_text::words::{self, query};

/// The maximum number of bytes of a word. Arbitrary: longer words are data.
const LONGEST: usize = 128;

/// Calls `add` with each identifier of `text`, unchanged. An identifier consists of letters, digits and underscores.
pub(super) fn identifiers<'t>(text: &'t str, add: impl FnMut(&'t str)) {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| (1..=LONGEST).contains(&word.len()) && word.contains(char::is_alphanumeric))
        .for_each(add);
}

/// Returns the terms of an identifier: the stems of its parts. If the identifier has several parts, the stem of the
/// whole identifier is added.
pub(super) fn of_identifier(identifier: &str, stemmer: &Stemmer) -> Vec<String> {
    let mut terms = Vec::new();
    if identifier.contains(words::is_cjk) {
        for (script, part) in words::scripts(identifier) {
            match script {
                Some(_) => terms.extend(words::pairs(part).map(str::to_owned)),
                None => terms.extend(of_identifier(part, stemmer)),
            }
        }
        return terms;
    }
    let mut count = 0;
    for part in identifier.split('_').filter(|part| !part.is_empty()) {
        for part in camel_parts(part) {
            terms.push(stem(&part.to_lowercase(), stemmer));
            count += 1;
        }
    }
    if count > 1 {
        let joined: String = identifier.chars().filter(|c| *c != '_').collect();
        terms.push(stem(&joined.to_lowercase(), stemmer));
    }
    terms
}

/// Returns the terms to search for, in the order of the query. Stopwords are left out, unless the query contains
/// nothing else.
pub(super) fn of_query(query: &str) -> Vec<String> {
    let stemmer = stemmer();
    let question = query::read(query);
    let mut terms: Vec<String> = Vec::new();
    let joined = question
        .identifiers
        .iter()
        .map(words::Term::word)
        .filter(|word| word.chars().all(char::is_alphanumeric));
    for word in question.terms.iter().map(words::Term::word).chain(joined) {
        let term = if word.contains(words::is_cjk) { word.to_owned() } else { stem(word, &stemmer) };
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// Returns the stemmer for all texts. Code is in English, and so are most texts about it. Words of other languages are
/// changed in the same way in texts and in queries.
pub(super) fn stemmer() -> Stemmer {
    Stemmer::new(Algorithm::English)
}

fn stem(word: &str, stemmer: &Stemmer) -> String {
    match word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        true => stemmer.stem(word).into_owned(),
        false => word.to_owned(),
    }
}

/// Returns the parts of a camel-case word: `Http` and `Server` of `HTTPServer`.
fn camel_parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = word.as_bytes();
    for at in 1..bytes.len() {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let is_border = here.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || (before.is_ascii_uppercase() && next_is_lower));
        if is_border {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    parts.push(&word[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let (stemmer, mut terms) = (stemmer(), Vec::new());
        identifiers(text, |identifier| terms.extend(of_identifier(identifier, &stemmer)));
        terms
    }

    #[test]
    fn an_identifier_has_its_parts_and_all_its_letters() {
        assert_eq!(
            terms("fn renew_lease(HTTPServer)"),
            ["fn", "renew", "leas", "renewleas", "http", "server", "httpserver"]
        );
        assert_eq!(
            terms("src/store/mod.rs: NO_COLOR"),
            ["src", "store", "mod", "rs", "no", "color", "nocolor"]
        );
        assert_eq!(terms("缓存的键 größe __ 42"), ["缓存", "存的", "的键", "größe", "42"]);
    }

    #[test]
    fn a_query_finds_what_a_text_has() {
        for (query, text) in [
            ("where are leases renewed?", "renew_lease"),
            ("NO_COLOR", "NO_COLOR"),
            ("no_color", "fn noColor()"),
            ("HttpClient", "httpClient"),
            ("src/store/mod.rs", "store::mod"),
            ("缓存", "缓存的键"),
        ] {
            let (wanted, found) = (of_query(query), terms(text));
            assert!(wanted.iter().any(|term| found.contains(term)), "{query}: {wanted:?}, {found:?}");
        }
        assert_eq!(of_query("where is a lease renewed"), ["leas", "renew"]);
        assert_eq!(of_query("what is it"), ["what", "is", "it"]);
        assert!(of_query(" ?! ").is_empty());
    }
}
