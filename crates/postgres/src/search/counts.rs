//! A cache of how many documents of a large store contain a stem.
//!
//! Counting the documents of a common word takes as long as a search. The counts are kept until the store has grown by a
//! quarter, so a weight of a word may be a little out of date.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The maximum number of stems whose counts are kept, of all stores together. Arbitrary: they take some megabytes.
const MOST: usize = 100_000;

/// The counts of several stores, each known by the parts that a reader sees.
#[derive(Default)]
pub(crate) struct Counts {
    inner: Mutex<HashMap<Vec<i64>, OfStore>>,
}

/// The counts of a store.
struct OfStore {
    /// How many documents it had when the first of them was counted.
    documents: i64,
    by_stem: HashMap<String, i64>,
}

impl OfStore {
    /// Returns whether the counts still hold for a store of `documents` documents.
    fn holds(&self, documents: i64) -> bool {
        let quarter = self.documents / 4;
        (self.documents - quarter..=self.documents + quarter).contains(&documents)
    }
}

impl Counts {
    /// Returns those of `stems` that are known, with their counts.
    pub fn known<'s>(&self, parts: &[i64], documents: i64, stems: &[&'s str]) -> HashMap<&'s str, i64> {
        let stores = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(store) = stores.get(parts).filter(|store| store.holds(documents)) else {
            return HashMap::new();
        };
        stems.iter().filter_map(|stem| Some((*stem, *store.by_stem.get(*stem)?))).collect()
    }

    /// Remembers the counts of stems.
    pub fn remember(&self, parts: &[i64], documents: i64, counts: impl Iterator<Item = (String, i64)>) {
        let mut stores = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.values().map(|store| store.by_stem.len()).sum::<usize>() >= MOST {
            stores.clear();
        }
        let new = || OfStore { documents, by_stem: HashMap::new() };
        let store = stores.entry(parts.to_vec()).or_insert_with(new);
        if !store.holds(documents) {
            *store = new();
        }
        store.by_stem.extend(counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_hold_until_the_store_has_grown_by_a_quarter() {
        let counts = Counts::default();
        counts.remember(&[1, 2], 1000, [("maple".to_owned(), 7)].into_iter());
        let known = |parts: &[i64], documents| counts.known(parts, documents, &["maple", "oak"]).len();
        assert_eq!((known(&[1, 2], 1250), known(&[1, 2], 1251), known(&[1, 3], 1000)), (1, 0, 0));
        counts.remember(&[1, 2], 2000, std::iter::empty());
        assert_eq!(known(&[1, 2], 2000), 0);
    }
}
