//! Exact vector search. The search scans int8 codes in memory, and then computes exact scores of the best few rows from
//! their stored vectors.
//!
//! A process keeps one [`VectorIndex`] of the embeddings of its project's chunks, built from the f16 vectors in the
//! database. A search scans all codes instead of following a graph. For 100,000 codes, this takes one to two
//! milliseconds, or less with a filter, and there is no graph to build, lock or tune. Codes lose a little precision
//! (each vector has one scale). So a caller asks for several times as many hits as it needs, and orders them exactly
//! with [`rescore`].
//!
//! A scan reads half of each code, which gives an upper bound of the score. Only rows whose bound reaches the score of
//! the worst hit so far are scored with their whole codes. For 40 hits, one row in a hundred is scored if there are
//! 100,000 rows, and one row in a thousand if there are a million. The hits are the same as if every row were scored
//! (the documentation of `codes` states the probability). But a scan reads only half as much memory, and with a million
//! rows most of its time is spent on reading. Scans that read a quarter of each code, two bits for each dimension, took
//! twice as long, because unpacking takes more time than reading less saves.
//!
//! Rows are stored in blocks, so that no rows are copied when the index grows. With 384 dimensions, a row takes about
//! 410 bytes. Equal scores are ordered by chunk id, so the result depends neither on the order of the rows nor on the
//! number of threads.
//!
//! The index doesn't load or update itself: the storage engine loads it and applies the changes of other processes. The
//! module doesn't know about kinds and scopes; it has only a label for each row, and filters.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use best::{Best, Ranked, Split};
use block::{BLOCK, Block};
use codes::{Query, dot};
pub use codes::{decode_f16, encode_f16};

use tiro_base::error::Result;

mod best;
mod block;
mod codes;
#[cfg(test)]
mod tests;

/// A scan uses another thread for each further batch of this many rows. Arbitrary: scanning them takes about ten times
/// as long as starting a thread.
const ROWS_PER_THREAD: usize = 32 * 1024;

/// The maximum number of labels that [`VectorIndex::search_groups`] can distinguish.
pub const MAX_GROUPS: usize = 256;

/// The ids and the label of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorRow {
    /// The chunk. An index has only one row for each chunk.
    pub chunk: i64,
    /// The memory that the chunk belongs to.
    pub memory: i64,
    /// The session that the memory belongs to; 0 for none.
    pub session: i64,
    /// A label that the caller chooses, to get separate hits for each label.
    pub group: u8,
}

/// A row that a search found, with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The chunk found.
    pub chunk: i64,
    /// The memory that the chunk belongs to.
    pub memory: i64,
    /// The dot product with the query: approximate from a search, exact after [`rescore`].
    pub score: f32,
}

/// The rows that a search considers.
#[derive(Clone, Copy)]
pub enum Filter<'a> {
    /// Every row.
    All,
    /// The rows of these chunks. The chunks must be in ascending order. Unknown and repeated chunks are skipped. Such a
    /// search is faster than a scan if fewer than a tenth of the rows are listed.
    Chunks(&'a [i64]),
    /// The rows for which this function returns true. The function is called in no particular order, and only for rows
    /// that would otherwise be hits.
    Where(&'a (dyn Fn(&VectorRow) -> bool + Sync)),
}

/// The embeddings of one vector space, as int8 codes.
#[derive(Debug)]
pub struct VectorIndex {
    dimensions: usize,
    /// The blocks. All blocks are full except the last, which has at least one row.
    blocks: Vec<Block>,
    /// The place of every row, in the order of chunk ids.
    by_chunk: Vec<u32>,
}

impl VectorIndex {
    /// Returns an empty index for vectors of `dimensions` dimensions.
    pub fn new(dimensions: usize) -> VectorIndex {
        VectorIndex { dimensions, blocks: Vec::new(), by_chunk: Vec::new() }
    }

    /// Returns the number of rows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether it is empty")]
    pub fn len(&self) -> usize {
        self.by_chunk.len()
    }

    /// Adds the row of `entry.chunk`, or replaces it.
    ///
    /// # Panics
    ///
    /// If the vector doesn't have the dimensions of the index.
    pub fn insert(&mut self, entry: VectorRow, vector: &[f32]) {
        assert_eq!(vector.len(), self.dimensions, "vectors of one index have one length");
        let place = match self.place_of(entry.chunk) {
            Ok(place) => {
                let row = self.by_chunk[place] as usize;
                return self.blocks[row / BLOCK].set(row % BLOCK, entry, vector);
            }
            Err(place) => place,
        };
        self.by_chunk.insert(place, u32::try_from(self.len()).expect("fewer than 2^32 rows fit in memory"));
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Block::new(self.dimensions));
        }
        self.blocks.last_mut().expect("pushed above").push(entry, vector);
    }

    /// Removes the row of `chunk`. Returns whether there was such a row.
    pub fn remove(&mut self, chunk: i64) -> bool {
        let Ok(place) = self.place_of(chunk) else { return false };
        let row = self.by_chunk[place] as usize;
        let last = self.len() - 1;
        let moved = self.entry(last);
        if row != last {
            // The last row fills the gap.
            let moved_place = self.place_of(moved.chunk).expect("every row is in `by_chunk`");
            self.by_chunk[moved_place] = row as u32;
            let (head, tail) = self.blocks.split_at_mut(last / BLOCK);
            match head.get_mut(row / BLOCK) {
                Some(block) => block.copy_from(row % BLOCK, &tail[0], last % BLOCK),
                None => tail[0].copy_within(row % BLOCK, last % BLOCK),
            }
        }
        self.by_chunk.remove(place);
        let block = self.blocks.last_mut().expect("there is a last row");
        block.pop();
        if block.len() == 0 {
            self.blocks.pop();
        }
        true
    }

    /// Returns whether `chunk` has a row.
    #[cfg(test)]
    pub fn contains(&self, chunk: i64) -> bool {
        self.place_of(chunk).is_ok()
    }

    /// Returns the `k` rows nearest to `query` by approximate dot product, the nearest first.
    ///
    /// Uses up to `threads` threads if there are enough rows. If the query is not finite, every score is 0.
    ///
    /// # Panics
    ///
    /// If the query doesn't have the dimensions of the index.
    pub fn search(&self, query: &[f32], k: usize, filter: Filter<'_>, threads: usize) -> Vec<Hit> {
        self.scan(query, k, filter, threads, Split::No).pop().expect("one list is always made")
    }

    /// Returns the `k` nearest rows of each label below `groups`, all from one scan.
    ///
    /// # Panics
    ///
    /// If the query doesn't have the dimensions of the index, or `groups` is over [`MAX_GROUPS`].
    pub fn search_groups(
        &self,
        query: &[f32],
        k: usize,
        filter: Filter<'_>,
        threads: usize,
        groups: usize,
    ) -> Vec<Vec<Hit>> {
        assert!(groups <= MAX_GROUPS, "a label is a byte");
        self.scan(query, k, filter, threads, Split::ByGroup(groups))
    }

    fn scan(
        &self,
        query: &[f32],
        k: usize,
        filter: Filter<'_>,
        threads: usize,
        split: Split,
    ) -> Vec<Vec<Hit>> {
        assert_eq!(query.len(), self.dimensions, "a query has the dimensions of the index");
        let query = Query::new(query);
        let mut best = Best::new(k, split);
        if let Filter::Chunks(chunks) = filter {
            self.scan_chunks(&query, chunks, &mut best);
            return best.into_hits();
        }

        let accepts: &(dyn Fn(&VectorRow) -> bool + Sync) = match filter {
            Filter::Where(accepts) => accepts,
            _ => &|_| true,
        };
        let threads = threads.min(self.len() / ROWS_PER_THREAD).max(1);
        let next = AtomicUsize::new(0);
        // A thread that has finished a block takes the next block, so all threads end at about the same time.
        let scan_blocks = |best: &mut Best| {
            let mut bounds = [0.0; BLOCK];
            while let Some(block) = self.blocks.get(next.fetch_add(1, Relaxed)) {
                let bounds = &mut bounds[..block.len()];
                block.codes.bound(&query, bounds);
                best.offer_block(block, bounds, |row| block.codes.score(row, &query), accepts);
            }
        };
        std::thread::scope(|scope| {
            let scan = || {
                let mut best = Best::new(k, split);
                scan_blocks(&mut best);
                best
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(scan)).collect();
            scan_blocks(&mut best);
            for other in others {
                best.merge(other.join().expect("a scan panics only where `accepts` does"));
            }
        });
        best.into_hits()
    }

    fn scan_chunks(&self, query: &Query, chunks: &[i64], best: &mut Best) {
        debug_assert!(chunks.is_sorted(), "a filter's chunks are in ascending order");
        let mut from = 0;
        for chunk in chunks.chunk_by(|left, right| left == right).map(|same| same[0]) {
            // The next place is near the last one, so most of the search path is still in the cache.
            let is_before =
                |place: usize| self.by_chunk.get(place).is_some_and(|&row| self.chunk(row) < chunk);
            let mut step = 1;
            while is_before(from + step - 1) {
                from += step;
                step *= 2;
            }
            let ahead = &self.by_chunk[from..self.len().min(from + step - 1)];
            from += ahead.partition_point(|&row| self.chunk(row) < chunk);
            let Some(&row) = self.by_chunk.get(from).filter(|&&row| self.chunk(row) == chunk) else {
                continue;
            };
            let (block, row) = (&self.blocks[row as usize / BLOCK], row as usize % BLOCK);
            best.offer(block.entry(row), block.codes.score(row, query));
        }
    }

    /// Returns the place of the row of `chunk` in `by_chunk`. If there is no such row, the error is the place where the
    /// row would be.
    fn place_of(&self, chunk: i64) -> Result<usize, usize> {
        match self.by_chunk.last() {
            // Ids mostly come in ascending order.
            Some(&last) if self.chunk(last) < chunk => Err(self.len()),
            _ => self.by_chunk.binary_search_by_key(&chunk, |&row| self.chunk(row)),
        }
    }

    fn chunk(&self, row: u32) -> i64 {
        self.blocks[row as usize / BLOCK].chunks[row as usize % BLOCK]
    }

    fn entry(&self, row: usize) -> VectorRow {
        self.blocks[row / BLOCK].entry(row % BLOCK)
    }
}

/// Orders hits by the exact dot product of `query` with their stored vectors, and keeps the best `k`.
///
/// `vector_of` returns the [encoded](encode_f16) vector of a chunk. If `vector_of` returns `None`, or a vector with
/// another length than the query, the hit is left out.
///
/// # Errors
///
/// The first error that `vector_of` returns.
pub fn rescore(
    query: &[f32],
    hits: &[Hit],
    k: usize,
    mut vector_of: impl FnMut(i64) -> Result<Option<Vec<u8>>>,
) -> Result<Vec<Hit>> {
    let mut rescored = Vec::with_capacity(hits.len());
    for &hit in hits {
        let vector = vector_of(hit.chunk)?.and_then(|bytes| decode_f16(&bytes));
        if let Some(vector) = vector.filter(|vector| vector.len() == query.len()) {
            rescored.push(Ranked(Hit { score: dot(query, &vector), ..hit }));
        }
    }
    rescored.sort_unstable_by(|left, right| right.cmp(left));
    Ok(rescored.into_iter().take(k).map(|ranked| ranked.0).collect())
}
