//! Decides three things: which cached answers are removed to make space, when the text index is merged, and which
//! memories an undo restores.

use std::collections::HashSet;
use std::hash::Hash;

use crate::tuning::INDEX_GROWTH;

/// Returns how many entries must be removed from a cache of `total` bytes so that the rest fits into `most` bytes.
/// `bytes` are the sizes of the entries, the least recently used entry first.
pub fn surplus(total: i64, most: i64, bytes: impl IntoIterator<Item = i64>) -> usize {
    let mut left = total;
    let is_too_much = |size: &i64| {
        let was_too_much = left > most;
        left -= size;
        was_too_much
    };
    bytes.into_iter().take_while(is_too_much).count()
}

/// Returns whether to merge a text index. The index has `documents` documents, and had `merged` documents at its last
/// merge. An index of fewer than `least` documents is searched fast enough without a merge.
pub fn is_merge_due(documents: i64, merged: i64, least: i64) -> bool {
    documents >= least && documents as f64 >= INDEX_GROWTH * merged as f64
}

/// Returns the memories that an undo restores, as indices into `forgotten`. A memory is restored if all its
/// forgotten sources are restored too. `forgotten` pairs each memory with its forgotten sources, and lists sources
/// before the memories made from them.
pub fn coming_back<Key: Copy + Eq + Hash>(forgotten: &[(Key, Vec<Key>)]) -> Vec<usize> {
    let mut coming: HashSet<Key> = HashSet::new();
    let mut places = Vec::with_capacity(forgotten.len());
    for (place, (key, sources)) in forgotten.iter().enumerate() {
        if sources.iter().all(|source| coming.contains(source)) {
            coming.insert(*key);
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_answers_are_removed_until_the_rest_fits() {
        for (total, most, bytes, expected) in [
            (30, 30, vec![10, 10, 10], 0),
            (31, 30, vec![1, 20, 10], 1),
            (60, 30, vec![10, 10, 10, 30], 3),
            (60, 0, vec![30, 30], 2),
            (60, 30, vec![], 0),
        ] {
            assert_eq!(surplus(total, most, bytes.clone()), expected, "{total} {most} {bytes:?}");
        }
    }

    #[test]
    fn an_index_is_merged_when_it_is_large_and_grew_by_a_quarter() {
        for (documents, merged, expected) in
            [(49, 0, false), (50, 0, true), (60, 50, false), (62, 50, false), (63, 50, true)]
        {
            assert_eq!(is_merge_due(documents, merged, 50), expected, "{documents} {merged}");
        }
    }

    #[test]
    fn derived_memories_are_restored_only_with_all_their_sources() {
        let forgotten = [(1, vec![]), (2, vec![9]), (3, vec![1]), (4, vec![1, 2]), (5, vec![3])];
        assert_eq!(coming_back(&forgotten), [0, 2, 4]);
    }
}
