//! Builds queries in the language of FTS5. A query says which words a document must contain. The functions are pure.

use crate::write::chunks;
use tiro_base::memory::Group;
use tiro_store::decide::words;
use tiro_store::tuning::{MOST_UNMET, MOST_WORDS, RARE_SHARE, TIERS};
use tiro_text::words::Term;

/// The maximum number of words of a query. [`super::rank`] identifies them by numbers below 64.
const MOST_NUMBERED: usize = 64;

/// The number of the first additional form of an identifier. This number is higher than the numbers of words.
const FIRST_EXTRA: usize = MOST_WORDS + MOST_UNMET;

/// The number of the word of a question of one word, where the own text of a document contains it. It is higher than
/// the numbers of all words of such a question.
const OWN_TEXT: usize = MOST_NUMBERED - 1;

/// A word or phrase, preceded by the number of documents that contain it.
pub(super) type Counted = (i64, Term);

/// A query of the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query {
    /// The query in the language of FTS5.
    pub text: String,
    /// For each word, in the order of the query: the number that identifies the word, and its weight. A word that the
    /// query contains twice has the same number in both places. All forms of a word share the number of the word. If
    /// the weights are `None`, FTS5 computes them.
    pub weights: Option<Vec<(usize, f64)>>,
    /// A JSON array of chunks. If the array is given, all other chunks are skipped before they are scored.
    pub among: Option<String>,
}

impl Query {
    /// If one of `terms` is a word that marks a group, returns the query restricted to the columns of text. In all
    /// other cases, returns the unchanged query over all columns, which takes a quarter less time.
    pub(super) fn in_text(&self, terms: &[Term]) -> Query {
        let is_mark = |term: &Term| {
            let term = term.word().to_lowercase();
            Group::ALL.iter().any(|group| term.contains(&chunks::facet(*group)))
        };
        let text = match terms.iter().any(is_mark) {
            true => format!("{{speaker header text context}} : ({})", self.text),
            false => self.text.clone(),
        };
        Query { text, weights: self.weights.clone(), among: self.among.clone() }
    }

    /// Returns the query that also matches documents with any of `words`.
    fn or_any(self, words: &[&Counted], documents: i64) -> Query {
        let further = any(words, documents);
        let numbered = |(number, weight): (usize, f64)| (number + FIRST_EXTRA, weight);
        let further_weights = further.weights.into_iter().flatten().map(numbered);
        let texts = [self.text, further.text].into_iter().filter(|text| !text.is_empty());
        let weights = self.weights.into_iter().flatten().chain(further_weights).collect();
        Query { text: texts.collect::<Vec<_>>().join(" OR "), weights: Some(weights), among: None }
    }

    /// Returns the query, in which a document whose own text contains `term` counts twice. Otherwise a short document
    /// with the term in its context could come before a long document with the term in its text.
    pub(super) fn preferring_text(self, (with, term): &Counted, documents: i64) -> Query {
        let own = any(&[&(*with, term.clone())], documents);
        let numbered = own.weights.into_iter().flatten().map(|(_, weight)| (OWN_TEXT, weight));
        let weights = numbered.chain(self.weights.into_iter().flatten()).collect();
        let text = format!("{{text}} : ({}) OR {}", own.text, self.text);
        Query { text, weights: Some(weights), among: self.among }
    }

    /// Returns the query restricted to `chunks`.
    pub(super) fn among(self, chunks: &[i64]) -> Query {
        let chunks: Vec<String> = chunks.iter().map(i64::to_string).collect();
        Query { among: Some(format!("[{}]", chunks.join(","))), ..self }
    }

    /// Returns the query restricted to documents of `groups`.
    pub(super) fn of_groups(&self, groups: &[Group]) -> Query {
        let marks: Vec<String> = groups.iter().map(|group| chunks::facet(*group)).collect();
        let text = format!("facets : ({}) AND ({})", marks.join(" OR "), self.text);
        let unweighed = || groups.iter().map(|_| (0, 0.0));
        let weights = self.weights.as_ref().map(|own| unweighed().chain(own.iter().copied()).collect());
        Query { text, weights, among: self.among.clone() }
    }
}

/// The queries for the words of a question.
#[derive(Default)]
pub(super) struct Queries {
    /// The queries for all groups, the strictest first.
    pub tiers: Vec<Query>,
    /// The query for small groups.
    pub loosest: Query,
}

impl Queries {
    /// Returns the queries for a small corpus, which match a document that contains any of `terms`. Each of `terms`
    /// comes with its count.
    pub(super) fn of_any(terms: &[Counted], documents: i64) -> Queries {
        let any = any(&terms.iter().take(MOST_NUMBERED).collect::<Vec<_>>(), documents);
        Queries { tiers: vec![any.clone()], loosest: any }
    }

    /// Returns the queries for a question of one word: they prefer documents whose own text contains the word.
    pub(super) fn preferring_text(self, term: &Counted, documents: i64) -> Queries {
        let preferring = |query: Query| query.preferring_text(term, documents);
        Queries { tiers: self.tiers.into_iter().map(preferring).collect(), loosest: preferring(self.loosest) }
    }

    /// Returns the queries for a large corpus, which has `documents` documents. Each of `terms` comes with its
    /// count.
    ///
    /// Every query also matches documents with a rare identifier in its exact or joined form. The forms of an
    /// identifier don't count as further words, because a document with an identifier contains all its forms.
    pub(super) fn of_rare(terms: Vec<Counted>, documents: i64) -> Queries {
        let (mut extra, mut terms): (Vec<_>, Vec<_>) =
            terms.into_iter().partition(|(_, term)| term.is_extra());
        terms.sort();
        let room = words::room(RARE_SHARE, documents);
        extra.retain(|(count, _)| *count <= room);
        extra.sort();
        let extra = words::rarest(&extra, RARE_SHARE, documents, MOST_WORDS);
        let with_extra = |query: Query| query.or_any(&extra, documents);
        let loosest = any(&words::rarest(&terms, RARE_SHARE, documents, MOST_WORDS), documents);
        let tiers = tiers(&terms, documents).into_iter().map(with_extra).collect();
        Queries { tiers, loosest: with_extra(loosest) }
    }
}

/// Returns the tiers for a large corpus, the strictest tier first. The rarest of `terms` must come first.
fn tiers(terms: &[Counted], documents: i64) -> Vec<Query> {
    let mut tiers: Vec<Query> = Vec::with_capacity(TIERS.len());
    for (least, share, most) in TIERS {
        let words = words::rarest(terms, share, documents, most);
        let query = match least {
            2 if words.len() < 2 => continue,
            2 => pairs(&words, documents),
            _ => any(&words, documents),
        };
        if !tiers.contains(&query) {
            tiers.push(query);
        }
    }
    tiers
}

/// Returns the query that matches documents with any of `words`.
fn any(words: &[&Counted], documents: i64) -> Query {
    let text = words.iter().map(|(_, word)| any_form(word)).collect::<Vec<_>>().join(" OR ");
    let weigh = |(number, counted): (usize, &&Counted)| weights(number, counted, documents);
    Query { text, weights: Some(words.iter().enumerate().flat_map(weigh).collect()), among: None }
}

/// Returns the query that matches documents with any two of `words`. The query combines each word with any of the rarer
/// words. The rarest of `words` must come first.
fn pairs(words: &[&Counted], documents: i64) -> Query {
    let mut text = Vec::new();
    let mut all = Vec::new();
    for (number, counted) in words.iter().enumerate().skip(1).rev() {
        let rarer = any(&words[..number], documents);
        let word = any_form(&counted.1);
        let word = if counted.1.forms().len() > 1 { format!("({word})") } else { word };
        text.push(format!("({word} AND ({}))", rarer.text));
        all.extend(weights(number, counted, documents));
        all.extend(rarer.weights.into_iter().flatten());
    }
    Query { text: text.join(" OR "), weights: Some(all), among: None }
}

/// Returns the number and the weight of a word, repeated for each of its forms.
fn weights(
    number: usize,
    (with, word): &Counted,
    documents: i64,
) -> impl Iterator<Item = (usize, f64)> + use<> {
    std::iter::repeat_n((number, word.factor() * words::weight(documents, *with)), word.forms().len())
}

/// Returns the query for any form of a word.
pub(super) fn any_form(term: &Term) -> String {
    term.forms().iter().map(|form| quoted(form)).collect::<Vec<_>>().join(" OR ")
}

/// Returns the term quoted for FTS5.
pub(crate) fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counts: &[i64]) -> Vec<Counted> {
        counts.iter().enumerate().map(|(n, documents)| (*documents, Term::new(format!("w{n}")))).collect()
    }

    fn texts(terms: Vec<Counted>) -> Vec<String> {
        Queries::of_rare(terms, 100_000).tiers.into_iter().map(|query| query.text).collect()
    }

    #[test]
    fn in_a_small_corpus_every_word_decides() {
        let queries = Queries::of_any(&counted(&[40, 3, 0]), 100);
        assert_eq!(queries.loosest.text, r#""w0" OR "w1" OR "w2""#);
        assert_eq!(queries.tiers, [queries.loosest]);
    }

    #[test]
    fn a_large_corpus_is_searched_by_two_rare_words_then_two_of_more_then_one() {
        let two_of_three = r#"("w3" AND ("w1" OR "w2")) OR ("w2" AND ("w1"))"#;
        let two_of_four =
            r#"("w4" AND ("w1" OR "w2" OR "w3")) OR ("w3" AND ("w1" OR "w2")) OR ("w2" AND ("w1"))"#;
        let found = texts(counted(&[40_000, 300, 3_000, 9_000, 15_000]));
        assert_eq!(found, [two_of_three, two_of_four, r#""w1" OR "w2""#]);
        let two_of_all = r#"("w2" AND ("w0" OR "w1")) OR ("w1" AND ("w0"))"#;
        let found = texts(counted(&[0, 300, 3_000]));
        assert_eq!(found, [two_of_all, r#""w0" OR "w1" OR "w2""#], "a new text may have it");
    }

    #[test]
    fn every_word_of_a_query_has_its_weight() {
        let Queries { tiers, loosest } = Queries::of_rare(counted(&[300, 3_000, 9_000]), 100_000);
        let weight = |with| words::weight(100_000, with);
        let (w0, w1, w2) = (weight(300), weight(3_000), weight(9_000));
        assert_eq!(tiers[0].text, r#"("w2" AND ("w0" OR "w1")) OR ("w1" AND ("w0"))"#);
        assert_eq!(tiers[0].weights.as_deref(), Some(&[(2, w2), (0, w0), (1, w1), (1, w1), (0, w0)][..]));
        let marked = loosest.of_groups(&[Group::Note, Group::Conversation]);
        assert_eq!(marked.text, r#"facets : (groupnote OR groupconversation) AND ("w0" OR "w1")"#);
        assert_eq!(marked.weights.as_deref(), Some(&[(0, 0.0), (0, 0.0), (0, w0), (1, w1)][..]));
    }

    #[test]
    fn a_word_with_a_stem_is_one_word_in_two_forms() {
        let stemmed = Term::stemmed("sicherung", Some(tiro_text::words::Language::German));
        let [stem, word] = stemmed.forms() else { panic!("{stemmed:?}") };
        let terms = vec![(300, Term::new("w0")), (3_000, stemmed.clone())];
        let Queries { tiers, loosest } = Queries::of_rare(terms, 100_000);
        assert_eq!(tiers[0].text, format!(r#"(("{stem}" OR "{word}") AND ("w0"))"#));
        let numbers = |query: &Query| -> Vec<usize> {
            query.weights.iter().flatten().map(|(number, _)| *number).collect()
        };
        assert_eq!((numbers(&tiers[0]), numbers(&loosest)), (vec![1, 1, 0], vec![0, 1, 1]));
    }

    #[test]
    fn a_rare_identifier_matches_by_itself_and_takes_the_place_of_no_word() {
        let words = counted(&[300, 3_000, 9_000]);
        let with = |count: i64| {
            let exact = (count, Term::exact("NO_COLOR"));
            Queries::of_rare(words.iter().cloned().chain([exact]).collect(), 100_000)
        };
        let (plain, rare) = (Queries::of_rare(words.clone(), 100_000), with(20));
        let exact = quoted(&tiro_text::words::exact("NO_COLOR"));
        assert_eq!(rare.tiers.len(), plain.tiers.len());
        for (rare, plain) in rare.tiers.iter().zip(&plain.tiers) {
            assert_eq!(rare.text, format!("{} OR {exact}", plain.text));
            let last = rare.weights.as_ref().unwrap().last().copied();
            assert_eq!(last, Some((FIRST_EXTRA, 2.0 * words::weight(100_000, 20))));
        }
        assert_eq!(with(90_000).tiers, plain.tiers, "a common form matches too much");
    }

    #[test]
    fn the_marks_of_groups_are_looked_for_in_the_text_alone() {
        let any = Query { text: "w".to_owned(), weights: None, among: None };
        let of = |terms: &[&str]| any.in_text(&terms.iter().map(|term| Term::new(*term)).collect::<Vec<_>>());
        assert_eq!(
            (of(&["group", "message"]).text, of(&["a GroupMessage"]).text),
            ("w".into(), "{speaker header text context} : (w)".to_owned())
        );
    }

    #[test]
    fn the_word_of_a_question_of_one_word_counts_twice_in_the_own_text() {
        let term = (300, Term::new("w0"));
        let queries = Queries::of_any(std::slice::from_ref(&term), 1000).preferring_text(&term, 1000);
        let weight = words::weight(1000, 300);
        assert_eq!(queries.loosest.text, r#"{text} : ("w0") OR "w0""#);
        assert_eq!(queries.loosest.weights, Some(vec![(OWN_TEXT, weight), (0, weight)]));
        assert_eq!(queries.tiers, [queries.loosest]);
    }

    #[test]
    fn a_common_word_alone_still_matches_and_quotes_are_data() {
        assert_eq!(texts(vec![(90_000, Term::new("a\"b"))]), [r#""a""b""#]);
    }
}
