//! Searches by words, with an inverted index that is ranked by BM25.

use std::collections::HashMap;

use super::{Kept, Piece, terms};
use crate::tuning::ephemeral::{HEADER_COUNT, NEIGHBOUR_SHARE};
use tiro_store::tuning::{BM25_B, BM25_K1, LEAST_WEIGHT};

/// The inverted index of the chunks.
#[derive(Debug, Default)]
pub(super) struct InvertedIndex {
    key_by_term: HashMap<String, u32>,
    /// For each term, the chunks that contain it, and how often each of them contains it.
    postings: Vec<Vec<(u32, u32)>>,
    /// The number of terms of each chunk.
    lengths: Vec<u32>,
}

impl InvertedIndex {
    /// Returns the index of `pieces`. A piece is also found by the words of its file's name, and by the words of the
    /// items around it.
    pub(super) fn of(sources: &[Kept], pieces: &[Piece]) -> InvertedIndex {
        let mut words = InvertedIndex::default();
        let stemmer = terms::stemmer();
        // Each identifier is divided and stemmed only once.
        let mut keys_by_identifier: HashMap<&str, Vec<u32>> = HashMap::new();
        let mut found: Vec<u32> = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            let source = &sources[piece.source];
            let mut add = |text, count: u32| {
                terms::identifiers(text, |identifier| {
                    let keys = keys_by_identifier.entry(identifier).or_insert_with(|| {
                        let terms = terms::of_identifier(identifier, &stemmer);
                        terms.into_iter().map(|term| words.key(term)).collect()
                    });
                    (0..count).for_each(|_| found.extend(keys.iter()));
                });
            };
            add(&source.text[piece.chunk.range.start..piece.chunk.range.end], 1);
            add(&source.name, HEADER_COUNT);
            piece.chunk.within.iter().for_each(|item| add(item, HEADER_COUNT));
            words.lengths.push(found.len() as u32);
            found.sort_unstable();
            for same in found.chunk_by(|a, b| a == b) {
                words.postings[same[0] as usize].push((place as u32, same.len() as u32));
            }
            found.clear();
        }
        words
    }

    fn key(&mut self, term: String) -> u32 {
        let next = self.postings.len() as u32;
        let key = *self.key_by_term.entry(term).or_insert(next);
        if key == next {
            self.postings.push(Vec::new());
        }
        key
    }

    /// Returns the BM25 of each chunk that contains one of `terms`, in the order of the chunks. A share of the BM25 of
    /// a chunk's better neighbour in the same source is added.
    pub(super) fn scores(&self, terms: &[String], pieces: &[Piece]) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let total = self.lengths.iter().map(|length| f64::from(*length)).sum::<f64>();
        let count = self.lengths.len() as f64;
        let average = (total / count.max(1.0)).max(1.0);
        for postings in
            terms.iter().filter_map(|term| Some(&self.postings[*self.key_by_term.get(term)? as usize]))
        {
            let with = postings.len() as f64;
            let weight = ((count - with + 0.5) / (with + 0.5)).ln_1p().max(LEAST_WEIGHT);
            for (place, often) in postings {
                let (often, length) = (f64::from(*often), f64::from(self.lengths[*place as usize]));
                let norm = BM25_K1 * (1.0 - BM25_B + BM25_B * length / average);
                scores[*place as usize] += weight * often * (BM25_K1 + 1.0) / (often + norm);
            }
        }
        let of = |place: Option<usize>, source| match place
            .and_then(|place| Some((pieces.get(place)?, scores[place])))
        {
            Some((piece, score)) if piece.source == source => score,
            _ => 0.0,
        };
        let lent = |place: usize| {
            let source = pieces[place].source;
            let best = of(place.checked_sub(1), source).max(of(Some(place + 1), source));
            scores[place] + NEIGHBOUR_SHARE * best
        };
        (0..scores.len()).map(lent).collect()
    }
}
