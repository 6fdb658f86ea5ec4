//! Which long lists of vectors have an index, as far as a process knows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many vectors a list must have to get a graph. Measured: 100,000 vectors of 384 dimensions take an exact search 95
/// ms, and a graph 16 ms; building it takes 16 to 23 s.
const MANY: i64 = 50_000;

/// How long it is believed that a list is short, or has no graph yet.
const BELIEVED: Duration = Duration::from_secs(60);

/// When it was read which lists of a part have graphs, and their labels.
type Known = (Instant, Vec<i16>);

/// Which lists have graphs, as far as this process knows.
pub(crate) struct Graphs {
    /// The labels whose lists have a graph, by part and space, and when that was read.
    known: Mutex<HashMap<(i64, String), Known>>,
    /// [`MANY`], or less in tests.
    many: AtomicI64,
}

impl Default for Graphs {
    fn default() -> Graphs {
        Graphs { known: Mutex::default(), many: AtomicI64::new(MANY) }
    }
}

impl Graphs {
    /// Returns how many vectors a list must have to get a graph.
    pub fn many(&self) -> i64 {
        self.many.load(Ordering::Relaxed)
    }

    /// Lets lists with so many vectors have graphs, and forgets what is known.
    #[cfg(test)]
    pub fn begin_at(&self, many: i64) {
        self.many.store(many, Ordering::Relaxed);
        self.forget();
    }

    /// Forgets what is known.
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the labels whose lists have a graph, if that was read lately.
    pub fn known(&self, part: i64, space: &str) -> Option<Vec<i16>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, labels) = known.get(&(part, space.to_owned()))?;
        (read.elapsed() < BELIEVED).then(|| labels.clone())
    }

    /// Remembers the labels whose lists have a graph.
    pub fn remember(&self, part: i64, space: &str, labels: Vec<i16>) {
        /// More are forgotten at once. Arbitrary: some megabytes.
        const MOST: usize = 100_000;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert((part, space.to_owned()), (Instant::now(), labels));
    }
}
