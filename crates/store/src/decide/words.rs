//! Decides which words of a question are looked for in a large store, and how much a word counts.

use crate::tuning::{LEAST_DOCUMENTS, LEAST_WEIGHT, MOST_UNMET};

/// Returns the weight of a word that occurs in `with` of `all` documents.
pub fn weight(all: i64, with: i64) -> f64 {
    let weight = ((all as f64 - with as f64 + 0.5) / (with as f64 + 0.5)).ln();
    if weight > 0.0 { weight } else { LEAST_WEIGHT }
}

/// Returns how many documents a tier's words may have together: `share` of all `documents`, but at least
/// [`LEAST_DOCUMENTS`].
pub fn room(share: f64, documents: i64) -> i64 {
    LEAST_DOCUMENTS.max((documents as f64 * share) as i64)
}

/// Returns up to `most` of the rarest of `terms`, each of which comes with its document count, the rarest first. The sum
/// of their counts is at most `share` of the documents, but the rarest term is returned even if its count is larger.
/// Adds up to [`MOST_UNMET`] words that no document contained when they were counted, because a new document may contain
/// them.
pub fn rarest<T>(terms: &[(i64, T)], share: f64, documents: i64, most: usize) -> Vec<&(i64, T)> {
    let room = room(share, documents);
    let (unmet, met) = terms.split_at(terms.partition_point(|(documents, _)| *documents == 0));
    let mut total = 0;
    let within = |(place, (documents, _)): &(usize, &(i64, T))| {
        total += documents;
        *place == 0 || total <= room
    };
    let met = met.iter().enumerate().take_while(within).take(most).map(|(_, term)| term);
    unmet.iter().take(MOST_UNMET).chain(met).collect()
}
