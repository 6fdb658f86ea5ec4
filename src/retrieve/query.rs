//! Reads a query: finds the words, phrases and commit ids to look for.

use crate::tuning::ranking::{LONGEST_PHRASE, MOST_COMMIT_IDS, MOST_PHRASES, MOST_TERMS};

/// Words that are not looked for. They are English only: in other languages every word is looked for.
const STOPWORDS: &str = "a about above after again against all also am an and any are aren as at be because been \
    before being below between both but by can could couldn d did didn do does doesn doing don down during each else \
    ever few for from further get gets got had hadn has hasn have haven having he her here hers herself him himself \
    his how i if in into is isn it its itself just let ll m ma me might mightn more most must mustn my myself no nor \
    not now o of off on once one only or other our ours ourselves out over own re s same shall shan she should \
    shouldn so some such t than that the their theirs them themselves then there these they this those through to \
    too under until up us ve very was wasn we were weren what when where whether which while who whom whose why will \
    with won would wouldn y you your yours yourself yourselves";

/// The characters that join the words of an identifier, a path or an address.
const JOINS: &str = "_-.:/\\#@+=~";

/// Returns the words of `query` to look for, in order and in lower case, without repetitions. Stopwords are left out,
/// unless the query has nothing else.
///
/// Identifiers are returned as a whole and in parts, as in the index. Parts of identifiers are kept even if they are
/// stopwords: `NO_COLOR` gives `no`.
pub fn terms(query: &str) -> Vec<String> {
    let words = words(query);
    let mut terms: Vec<String> = Vec::new();
    // Each word is compared only with the words kept so far, which are at most `MOST_TERMS`.
    for (word, is_part) in &words {
        if terms.len() == MOST_TERMS {
            break;
        }
        if (*is_part || !is_stopword(word)) && !terms.contains(word) {
            terms.push(word.clone());
        }
    }
    if terms.is_empty() {
        terms = words.into_iter().map(|(word, _)| word).collect();
        terms.dedup();
        terms.truncate(MOST_TERMS);
    }
    terms
}

/// Returns, as phrases, the identifiers of `query` that the index stores as several words: `no color` for `NO_COLOR`,
/// `std env vars` for `std::env::vars`. Each phrase is returned once.
pub fn phrases(query: &str) -> Vec<String> {
    let mut phrases: Vec<String> = Vec::new();
    for token in identifiers(query) {
        if phrases.len() == MOST_PHRASES {
            break;
        }
        let parts = token.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
        let words: Vec<String> = parts.map(str::to_lowercase).collect();
        let phrase = words.join(" ");
        if (2..=LONGEST_PHRASE).contains(&words.len()) && !phrases.contains(&phrase) {
            phrases.push(phrase);
        }
    }
    phrases
}

/// Returns the words of `query` that may be the beginning of a commit's id: they have 7 to 40 hexadecimal digits, not
/// all of them letters.
pub fn commit_ids(query: &str) -> Vec<&str> {
    let is_id = |word: &&str| {
        (7..=40).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    query.split(|c: char| !c.is_alphanumeric()).filter(is_id).take(MOST_COMMIT_IDS).collect()
}

fn is_stopword(word: &str) -> bool {
    STOPWORDS.split(' ').any(|stopword| stopword == word)
}

/// Returns the parts of `text` that may be an identifier, a path or an address. Apostrophes and brackets end such a
/// part.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || JOINS.contains(c)))
        .map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|token| !token.is_empty())
}

/// Returns the words of `text`, and for each word whether it is a part of an identifier. A camel-case identifier is
/// returned as a whole, followed by its parts.
fn words(text: &str) -> Vec<(String, bool)> {
    let mut words = Vec::new();
    for token in identifiers(text) {
        // A slash also separates plain words: `and/or`.
        let is_joined = token.contains(|c: char| JOINS.contains(c) && c != '/');
        for word in token.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            words.push((word.to_lowercase(), is_joined));
            let mut start = 0;
            let bytes = word.as_bytes();
            for at in 1..bytes.len() {
                let is_border = bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
                if is_border {
                    words.push((word[start..at].to_lowercase(), true));
                    start = at;
                }
            }
            if start > 0 {
                words.push((word[start..].to_lowercase(), true));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopwords_go_unless_nothing_else_is_there() {
        assert_eq!(
            terms("When did Caroline go to the support group?"),
            ["caroline", "go", "support", "group"]
        );
        assert_eq!(terms("what is it"), ["what", "is", "it"]);
        assert_eq!(terms("  ?! "), Vec::<String>::new());
    }

    #[test]
    fn a_commit_is_named_by_the_beginning_of_its_id() {
        assert_eq!(
            commit_ids("what did 3d174b8c09 (after 1234567) do to defaced 123456?"),
            ["3d174b8c09", "1234567"]
        );
    }

    #[test]
    fn identifiers_come_whole_and_in_parts() {
        assert_eq!(terms("HttpClient --squeeze-blank"), ["httpclient", "http", "client", "squeeze", "blank"]);
    }

    /// An earlier version searched only for `color` if the query was `NO_COLOR`.
    #[test]
    fn no_part_of_an_identifier_is_a_stopword_and_the_whole_is_a_phrase() {
        assert_eq!(terms("NO_COLOR is it?"), ["no", "color"]);
        assert_eq!(terms("does isEmpty do it"), ["isempty", "is", "empty"]);
        assert_eq!(terms("what_is"), ["what", "is"]);
        assert_eq!(terms("what of --no-color, is-odd, std::is"), ["no", "color", "is", "odd", "std"]);
        assert_eq!(terms("this and/or that cost - why"), ["cost"]);
        assert_eq!(phrases("foo(NO_COLOR's)"), ["no color"]);
        assert_eq!(
            phrases(
                "is `NO_COLOR` Ada's, read by std::env::vars()? see src/cli.rs, (issue #2819) --no-color"
            ),
            ["no color", "std env vars", "src cli rs"]
        );
        assert_eq!(phrases("why is it - so to say - slow"), Vec::<String>::new());
        assert_eq!(phrases(&"a/b".repeat(20)), Vec::<String>::new());
    }

    #[test]
    fn a_megabyte_of_words_is_a_few_terms() {
        let long: String = (0..200_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(terms(&long).len(), MOST_TERMS);
        assert!(terms(&"é".repeat(1 << 20)).len() == 1);
    }
}
