//! Ranks documents by BM25, in which the frequency of a word is weighted by column. The functions are pure.
//!
//! The formula is that of FTS5 (<https://sqlite.org/fts5.html#the_bm25_function>), as SQLite's engine computes it.

use super::query::{Query, Weighed};
use crate::search::entry::PLACE_BITS;
use tiro_store::tuning::{BM25_B, BM25_K1, COLUMNS};
use tiro_text::words::Term;

/// The column of a document's own text.
const OWN: usize = 2;

/// A document that contains a form of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Occurrence {
    pub chunk: i64,
    /// The number of its group.
    pub facet: i16,
    /// How many words it has, divided by the average of all documents.
    pub length: f64,
    /// How often it has the form, each time weighed by the column.
    pub frequency: f64,
    /// How often its own text has the form.
    pub own: f64,
}

/// A document that matches a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub chunk: i64,
    pub facet: i16,
    pub score: f64,
}

/// Returns how often a word stands at `places`, each time weighed by its column, and how often in the document's own
/// text.
pub(super) fn frequency(places: impl Iterator<Item = u16>) -> (f64, f64) {
    let (mut frequency, mut own) = (0.0, 0.0);
    for place in places {
        let column = usize::from(place >> PLACE_BITS);
        // The first weight is that of the column which SQLite has for groups.
        frequency += COLUMNS[column + 1];
        if column == OWN {
            own += COLUMNS[column + 1];
        }
    }
    (frequency, own)
}

/// Returns the places at which a phrase begins. `words` has the places of each of its words.
pub(super) fn phrase(words: &[Vec<u16>]) -> Vec<u16> {
    let [first, rest @ ..] = words else { return Vec::new() };
    let follows = |place: u16, (distance, places): (u16, &Vec<u16>)| {
        place.checked_add(distance).is_some_and(|place| places.binary_search(&place).is_ok())
    };
    let is_whole = |place: &&u16| (1..).zip(rest).all(|word| follows(**place, word));
    first.iter().filter(is_whole).copied().collect()
}

/// Returns the documents that match the query, the best first. `of` returns the documents that contain a form of a
/// word, by the number of the form.
pub(super) fn ranked<'o>(
    query: &Query<'_>,
    mut of: impl FnMut(&Term, usize) -> &'o [Occurrence],
) -> Vec<Ranked> {
    /// What a word adds to the score of a document.
    struct Share {
        chunk: i64,
        /// The number of the word, and of its form.
        number: (usize, usize),
        facet: i16,
        score: f64,
    }
    let mut shares: Vec<Share> = Vec::new();
    let mut add = |number: usize, (term, weight): &Weighed<'_>, is_own: bool| {
        for form in 0..term.forms().len() {
            for found in of(term, form) {
                let Occurrence { chunk, facet, length, frequency, own } = *found;
                let frequency = if is_own { own } else { frequency };
                if frequency > 0.0 {
                    let norm = BM25_K1 * (1.0 - BM25_B + BM25_B * length);
                    let score = weight * frequency * (BM25_K1 + 1.0) / (frequency + norm);
                    shares.push(Share { chunk, number: (number, form), facet, score });
                }
            }
        }
    };
    let (words, extra) = (query.words.len(), query.extra.len());
    query.words.iter().enumerate().for_each(|(number, word)| add(number, word, false));
    query.extra.iter().enumerate().for_each(|(number, word)| add(words + number, word, false));
    query.own.iter().for_each(|word| add(words + extra, word, true));
    shares.sort_unstable_by_key(|share| (share.chunk, share.number));
    let mut ranked = Vec::new();
    for shares in shares.chunk_by_mut(|one, other| one.chunk == other.chunk) {
        // A document usually contains several forms of a word; the first counts.
        let mut last = None;
        for share in shares.iter_mut() {
            if last == Some(share.number.0) {
                share.score = 0.0;
            }
            last = Some(share.number.0);
        }
        let firsts = |range: std::ops::Range<usize>| {
            shares.iter().filter(move |share| range.contains(&share.number.0) && share.score != 0.0)
        };
        let has_words = firsts(0..words).count() >= query.least;
        if has_words || firsts(words..words + extra).next().is_some() {
            // Without enough words, only the additional forms count.
            let from = if has_words { 0 } else { words };
            let score = firsts(from..usize::MAX).map(|share| share.score).sum();
            ranked.push(Ranked { chunk: shares[0].chunk, facet: shares[0].facet, score });
        }
    }
    ranked.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(chunk: i64, frequency: f64, own: f64) -> Occurrence {
        Occurrence { chunk, facet: 0, length: 1.0, frequency, own }
    }

    #[test]
    fn a_form_counts_once_and_a_tier_needs_its_words() {
        let terms = [Term::stemmed("sicherung", Some(tiro_text::words::Language::German)), Term::new("b")];
        let of = [
            vec![vec![found(1, 1.0, 0.0), found(2, 1.0, 0.0)], vec![found(1, 4.0, 0.0)]],
            vec![vec![found(2, 1.0, 1.0), found(3, 1.0, 0.0)]],
        ];
        let occurrences = |term: &Term, form: usize| {
            let place = terms.iter().position(|own| own == term).unwrap();
            of[place][form].as_slice()
        };
        let words: Vec<Weighed<'_>> = vec![(&terms[0], 2.0), (&terms[1], 1.0)];
        let any = Query { words: words.clone(), least: 1, ..Query::default() };
        let told = |query: &Query<'_>| {
            ranked(query, occurrences).iter().map(|hit| (hit.chunk, hit.score)).collect::<Vec<_>>()
        };
        // At a frequency and a length of 1, a word counts its weight.
        assert_eq!(told(&any), [(2, 3.0), (1, 2.0), (3, 1.0)]);
        assert_eq!(told(&Query { least: 2, ..any.clone() }), [(2, 3.0)]);
        let extra = vec![(&terms[1], 1.0)];
        let with_extra = Query { words: words[..1].to_vec(), least: 2, extra, own: None };
        assert_eq!(told(&with_extra), [(2, 1.0), (3, 1.0)], "one word is too few to count");
        let alone = Query { words: words[1..].to_vec(), least: 1, extra: Vec::new(), own: Some(words[1]) };
        assert_eq!(told(&alone), [(2, 2.0), (3, 1.0)]);
    }

    #[test]
    fn a_phrase_stands_in_one_column_word_after_word() {
        let column = |number: u16| number << PLACE_BITS;
        let words = [vec![0, 7, column(1), column(2) + 3], vec![1, 9, column(1) + 1, column(3) + 4]];
        assert_eq!(phrase(&words), [0, column(1)]);
        assert_eq!(phrase(&[]), [0; 0]);
        let (all, own) = frequency([0, column(1), column(2), column(2) + 5, column(3)].into_iter());
        assert!((all - 3.6).abs() < 1e-9 && (own - 2.0).abs() < 1e-9, "{all} {own}");
    }
}
