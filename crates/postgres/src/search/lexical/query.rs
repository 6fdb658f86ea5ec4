//! Decides which words of a question are looked for, and which of them a document must contain. The functions are pure.

use tiro_store::decide::words as decide;
use tiro_store::tuning::{MOST_WORDS, RARE_SHARE, TIERS};
use tiro_text::words::Term;

/// The maximum number of words that are looked for in a small store.
const MOST_NUMBERED: usize = 64;

/// A word or phrase, preceded by the number of documents that contain it.
pub(super) type Counted<'t> = (i64, &'t Term);

/// A word or phrase of a query, with its weight.
pub(super) type Weighed<'t> = (&'t Term, f64);

/// Which documents match, and what each word counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Query<'t> {
    /// The words. The forms of a word count as one word.
    pub words: Vec<Weighed<'t>>,
    /// How many of the words a document must contain.
    pub least: usize,
    /// Additional forms of identifiers. A document with one of them matches, whatever words it contains.
    pub extra: Vec<Weighed<'t>>,
    /// The word of a question of one word: it counts again in a document's own text. Otherwise a short document with the
    /// term in its context could come before a long document with the term in its text.
    pub own: Option<Weighed<'t>>,
}

/// The queries for the words of a question.
#[derive(Default)]
pub(super) struct Queries<'t> {
    /// The queries for all groups, the strictest first.
    pub tiers: Vec<Query<'t>>,
    /// The query for small groups.
    pub loosest: Query<'t>,
}

impl<'t> Query<'t> {
    /// Returns the query for documents that contain any of `words`.
    pub fn any(words: &[Counted<'t>], documents: i64) -> Query<'t> {
        Query { words: weighed(words, documents), least: 1, ..Query::default() }
    }

    fn of_two(words: &[Counted<'t>], documents: i64) -> Query<'t> {
        Query { words: weighed(words, documents), least: 2, ..Query::default() }
    }

    /// Returns all words, also the additional ones.
    pub fn all(&self) -> Vec<&'t Term> {
        self.words.iter().chain(&self.extra).map(|(term, _)| *term).collect()
    }
}

impl<'t> Queries<'t> {
    /// Returns the queries for the terms, each of which comes with its count.
    pub fn of(terms: &[Counted<'t>], documents: i64, is_large: bool) -> Queries<'t> {
        let mut queries = match is_large {
            false => Queries::of_any(terms, documents),
            true => Queries::of_rare(terms, documents),
        };
        if let [only] = terms {
            let own = weighed(&[*only], documents).pop();
            queries.tiers.iter_mut().chain([&mut queries.loosest]).for_each(|query| query.own = own);
        }
        queries
    }

    /// Returns the queries for a small corpus, which match a document that contains any of `terms`.
    fn of_any(terms: &[Counted<'t>], documents: i64) -> Queries<'t> {
        let any = Query::any(&terms[..terms.len().min(MOST_NUMBERED)], documents);
        Queries { tiers: vec![any.clone()], loosest: any }
    }

    /// Returns the queries for a large corpus, which has `documents` documents.
    ///
    /// Every query also matches documents with a rare identifier in its exact or joined form. The forms of an
    /// identifier don't count as further words, because a document with an identifier contains all its forms.
    fn of_rare(terms: &[Counted<'t>], documents: i64) -> Queries<'t> {
        let (mut extra, mut terms): (Vec<_>, Vec<_>) =
            terms.iter().copied().partition(|(_, term)| term.is_extra());
        terms.sort();
        let room = decide::room(RARE_SHARE, documents);
        extra.retain(|(count, _)| *count <= room);
        extra.sort();
        let extra = weighed(&rarest(&extra, RARE_SHARE, documents, MOST_WORDS), documents);
        let with_extra = |query: Query<'t>| Query { extra: extra.clone(), ..query };
        let loosest = Query::any(&rarest(&terms, RARE_SHARE, documents, MOST_WORDS), documents);
        let tiers = tiers(&terms, documents).into_iter().map(with_extra).collect();
        Queries { tiers, loosest: with_extra(loosest) }
    }
}

/// Returns the tiers for a large corpus, the strictest tier first. The rarest of `terms` must come first.
fn tiers<'t>(terms: &[Counted<'t>], documents: i64) -> Vec<Query<'t>> {
    let mut tiers: Vec<Query<'t>> = Vec::with_capacity(TIERS.len());
    for (least, share, most) in TIERS {
        let words = rarest(terms, share, documents, most);
        let query = match least {
            2 if words.len() < 2 => continue,
            2 => Query::of_two(&words, documents),
            _ => Query::any(&words, documents),
        };
        if !tiers.contains(&query) {
            tiers.push(query);
        }
    }
    tiers
}

/// Returns the rarest of the terms, as [`decide::rarest`] does.
fn rarest<'t>(terms: &[Counted<'t>], share: f64, documents: i64, most: usize) -> Vec<Counted<'t>> {
    decide::rarest(terms, share, documents, most).into_iter().copied().collect()
}

/// Returns the words with their weights.
fn weighed<'t>(words: &[Counted<'t>], documents: i64) -> Vec<Weighed<'t>> {
    let weighed = |(with, term): &Counted<'t>| (*term, term.factor() * decide::weight(documents, *with));
    words.iter().map(weighed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns terms `w0`, `w1` and so on.
    fn terms(count: usize) -> Vec<Term> {
        (0..count).map(|number| Term::new(format!("w{number}"))).collect()
    }

    /// Returns the words of each tier, each tier preceded by how many of them are needed.
    fn told(queries: &Queries<'_>) -> Vec<(usize, String)> {
        let words =
            |query: &Query<'_>| query.all().iter().map(|term| term.word()).collect::<Vec<_>>().join(" ");
        queries.tiers.iter().map(|query| (query.least, words(query))).collect()
    }

    fn large(terms: &[Term], counts: &[i64]) -> Vec<(usize, String)> {
        let counted: Vec<Counted<'_>> = counts.iter().copied().zip(terms).collect();
        told(&Queries::of(&counted, 100_000, true))
    }

    #[test]
    fn a_large_corpus_is_searched_by_two_rare_words_then_two_of_more_then_one() {
        let terms = terms(5);
        let found = large(&terms, &[40_000, 300, 3_000, 9_000, 15_000]);
        let tier = |least, words: &str| (least, words.to_owned());
        assert_eq!(found, [tier(2, "w1 w2 w3"), tier(2, "w1 w2 w3 w4"), tier(1, "w1 w2")]);
        let found = large(&terms, &[0, 300, 3_000]);
        assert_eq!(found, [tier(2, "w0 w1 w2"), tier(1, "w0 w1 w2")], "a new text may have it");
        assert_eq!(large(&terms, &[90_000]), [tier(1, "w0")], "a common word alone still matches");
    }

    #[test]
    fn a_rare_identifier_matches_by_itself_and_takes_the_place_of_no_word() {
        let words = terms(3);
        let exact = Term::exact("NO_COLOR");
        let with = |count: i64| {
            let counted: Vec<Counted<'_>> =
                [300, 3_000, 9_000, count].into_iter().zip(words.iter().chain([&exact])).collect();
            Queries::of(&counted, 100_000, true)
        };
        let plain = with(90_000);
        assert!(plain.tiers.iter().all(|query| query.extra.is_empty()), "a common form matches too much");
        for (rare, plain) in with(20).tiers.iter().zip(&plain.tiers) {
            assert_eq!(rare.words, plain.words);
            assert_eq!(rare.extra, [(&exact, 2.0 * decide::weight(100_000, 20))]);
        }
    }

    #[test]
    fn in_a_small_corpus_every_word_decides_and_a_single_word_counts_twice() {
        let terms = terms(3);
        let counted: Vec<Counted<'_>> = [40, 3, 0].into_iter().zip(&terms).collect();
        let queries = Queries::of(&counted, 100, false);
        assert_eq!(told(&queries), [(1, "w0 w1 w2".to_owned())]);
        assert_eq!((queries.loosest.own, queries.tiers == [queries.loosest]), (None, true));
        let queries = Queries::of(&counted[..1], 100, false);
        assert_eq!(queries.loosest.own, Some((&terms[0], decide::weight(100, 40))));
    }
}
