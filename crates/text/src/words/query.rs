//! Parses a query into the words, phrases, identifiers and commit ids to look for, and finds its language.

use crate::tuning::{LONGEST_PHRASE, MOST_COMMIT_IDS, MOST_PHRASES, MOST_TERMS};
use crate::words::{self, Language, Script, Term};

/// English words that are not looked for. The words are left out of queries in any language, because queries in other
/// languages often contain English words too.
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

/// The characters of Chinese function words. Pairs that contain one of these characters are not looked for.
const CHINESE_STOPWORDS: &str = "的了吗呢吧啊么嘛们着这那哪谁什怎";

/// A parsed query: the words and identifiers to look for.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The words, as [`terms`] returns them, with their stems if the query is not in English, and the emoji.
    pub terms: Vec<Term>,
    /// The identifiers that the index stores as several words. The index has each identifier in three forms: as a
    /// phrase, joined, and exactly as written.
    pub identifiers: Vec<Term>,
    /// The language; `None` if the language is English or unclear.
    pub language: Option<Language>,
}

/// Parses `query`.
pub fn read(query: &str) -> Question {
    let language = Language::of(query);
    let mut terms: Vec<Term> =
        words_to_look_for(query, language).iter().map(|word| Term::stemmed(word, language)).collect();
    for sign in words::signs(query) {
        let term = Term::new(words::exact(sign.encode_utf8(&mut [0; 4])));
        if terms.len() < MOST_TERMS && !terms.contains(&term) {
            terms.push(term);
        }
    }
    let mut identifiers: Vec<Term> = phrases(query).into_iter().map(Term::new).collect();
    for identifier in words::identifiers(query).take(MOST_PHRASES) {
        let joined = joined(identifier).filter(|_| !words::is_compound(identifier));
        for term in [Some(Term::exact(identifier)), joined.map(Term::joined)].into_iter().flatten() {
            if !identifiers.contains(&term) {
                identifiers.push(term);
            }
        }
    }
    Question { terms, identifiers, language }
}

/// Returns the words of `query` to look for, in order and in lower case, without repetitions. Stopwords are left out,
/// unless the query has nothing else.
///
/// Identifiers are returned as a whole and in parts, as the index stores them. Parts of identifiers are kept even if
/// they are stopwords: `NO_COLOR` gives `no`. Words in Chinese, Japanese and Korean are returned as pairs of
/// characters.
pub fn terms(query: &str) -> Vec<String> {
    words_to_look_for(query, Language::of(query))
}

fn words_to_look_for(query: &str, language: Option<Language>) -> Vec<String> {
    let words = words(query, language);
    let mut terms: Vec<String> = Vec::new();
    // Each word is compared only with the words kept so far, which are at most `MOST_TERMS`.
    for (word, weight) in &words {
        if terms.len() == MOST_TERMS {
            break;
        }
        if *weight == Weight::Full && !terms.contains(word) {
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

/// Returns the identifiers of `query` that the index stores as several words, as phrases: `no color` for `NO_COLOR`,
/// `std env vars` for `std::env::vars`. Each phrase is returned once.
fn phrases(query: &str) -> Vec<String> {
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

/// Returns an identifier in lower case and without the hyphens or underscores between its parts: `nocolor` for
/// `NO_COLOR`. The index stores this form too.
fn joined(identifier: &str) -> Option<String> {
    let is_joint = |c: char| c == '-' || c == '_';
    let core = identifier.trim_matches(is_joint);
    (core.contains(is_joint) && core.chars().all(|c| c.is_alphanumeric() || is_joint(c)))
        .then(|| core.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase())
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

/// The importance of a word of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// The word is looked for.
    Full,
    /// The word is a stopword, and looked for only if the query has nothing else.
    Little,
}

fn weight(word: &str, language: Option<Language>) -> Weight {
    let lower = word.to_lowercase();
    // A word in capitals is an abbreviation, so `CI` doesn't count as the Italian pronoun `ci`.
    let is_name = word.chars().nth(1).is_some() && word.chars().all(char::is_uppercase);
    let is_foreign = language.is_some_and(|language| !is_name && language.is_stopword(&lower));
    if is_foreign || STOPWORDS.split(' ').any(|stopword| stopword == lower) {
        Weight::Little
    } else {
        Weight::Full
    }
}

/// Returns the parts of `text` that may be an identifier, a path or an address. Apostrophes and brackets end such a
/// part.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || JOINS.contains(c)))
        .map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|token| !token.is_empty())
}

/// Returns the words of `text` in lower case, with their weights. A camel-case identifier or a quantity is returned as
/// a whole, followed by its parts.
fn words(text: &str, language: Option<Language>) -> Vec<(String, Weight)> {
    let mut words = Vec::new();
    for token in identifiers(text) {
        // A slash also separates plain words: `and/or`.
        let is_joined = token.contains(|c: char| JOINS.contains(c) && c != '/');
        for word in token.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if word.contains(words::is_cjk) {
                push_pairs(&mut words, word, language);
                continue;
            }
            let weight = if is_joined { Weight::Full } else { weight(word, language) };
            words.push((word.to_lowercase(), weight));
            let mut start = 0;
            let bytes = word.as_bytes();
            for at in 1..bytes.len() {
                let is_border = bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
                if is_border {
                    words.push((word[start..at].to_lowercase(), Weight::Full));
                    start = at;
                }
            }
            if start > 0 {
                words.push((word[start..].to_lowercase(), Weight::Full));
            }
            let parts = words::quantity(word).into_iter().flat_map(|(number, unit)| [number, unit]);
            words.extend(parts.map(|part| (part.to_lowercase(), Weight::Full)));
        }
    }
    words
}

/// Appends the pairs of characters of a word in Chinese, Japanese or Korean, and its parts in other scripts.
fn push_pairs(words: &mut Vec<(String, Weight)>, word: &str, language: Option<Language>) {
    let is_chinese = language == Some(Language::Chinese);
    for (script, part) in words::scripts(word) {
        match script {
            None => words.push((part.to_lowercase(), weight(part, language))),
            Some(script) => words.extend(words::pairs(part).map(|pair| {
                // Particles and endings are written in Hiragana.
                let says_little = script == Script::Hiragana
                    || (is_chinese
                        && pair != "目的"
                        && pair.contains(|c: char| CHINESE_STOPWORDS.contains(c)));
                (pair.to_owned(), if says_little { Weight::Little } else { Weight::Full })
            })),
        }
    }
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
    fn an_identifier_is_looked_for_as_a_phrase_joined_and_exactly() {
        let forms = |query: &str| -> Vec<String> {
            read(query).identifiers.iter().map(|term| term.word().to_owned()).collect()
        };
        let exact = words::exact;
        assert_eq!(forms("NO_COLOR"), ["no color".to_owned(), exact("NO_COLOR"), "nocolor".to_owned()]);
        assert_eq!(forms("where is rateLimiter used"), [exact("rateLimiter")]);
        assert_eq!(forms("is it up-to-date"), ["up to date".to_owned(), exact("up-to-date")]);
        assert_eq!(forms("_private and #2819?"), [exact("_private"), exact("#2819")]);
        assert_eq!(forms("why is the build slow"), Vec::<String>::new());
    }

    #[test]
    fn a_question_in_another_language_has_its_stems_and_lacks_its_stopwords() {
        let question = read("Wer hat den Schlüssel für eine verschlüsselte Sicherung?");
        assert_eq!(question.language, Some(Language::German));
        let words: Vec<&str> = question.terms.iter().map(Term::word).collect();
        assert_eq!(words, ["schlüssel", "verschlüsselte", "sicherung"]);
        assert_eq!(question.terms[2].forms()[0], Language::German.stem("sicherungen").unwrap());
        assert_eq!(terms("缓存的键是什么"), ["缓存", "键是"]);
        assert_eq!(terms("データベースの接続はなぜ？")[5..], ["接続"]);
        assert_eq!(terms("なぜ"), ["なぜ"]);
    }

    #[test]
    fn a_quantity_comes_whole_and_in_parts_and_an_emoji_as_its_word_of_the_index() {
        assert_eq!(terms("is 8MB too much"), ["8mb", "8", "mb", "much"]);
        let ship = Term::new(words::exact("🚢"));
        assert_eq!(read("🚢 🚢 ships").terms, [Term::new("ships"), ship]);
        assert_eq!(read("⚠\u{fe0f}").terms, read("⚠").terms);
    }

    #[test]
    fn a_megabyte_of_words_is_a_few_terms() {
        let long: String = (0..200_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(terms(&long).len(), MOST_TERMS);
        assert!(terms(&"é".repeat(1 << 20)).len() == 1);
    }
}
