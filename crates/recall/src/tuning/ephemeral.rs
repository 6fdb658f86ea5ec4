//! The tuned numbers for searching the texts of one call.
//!
//! Twelve questions about Tiro's own source (`ephemeral/tests.rs`) are too few to distinguish similar values.

/// The share of the better neighbour's BM25 that is added to the BM25 of a chunk, so that an item that was cut is found
/// by the words of all its parts. Measured on twelve questions with a search by words: nine are answered, and with 0,
/// only eight. With 0.5, nine are answered too.
pub const NEIGHBOUR_SHARE: f64 = 0.2;

/// The weight of the z-score of BM25. Arbitrary.
pub const LEXICAL: f64 = 1.0;

/// The weight of the z-score of the cosine with the query. Arbitrary: with and without it, nine of twelve questions are
/// answered, but not the same nine.
pub const SEMANTIC: f64 = 1.0;

/// This many chunks with the best BM25 are compared, and this many with the best cosine. If chunks with the best BM25
/// have no embedding, they are embedded first, as far as the deadline allows. Arbitrary.
pub const CANDIDATES: usize = 200;

/// The words of a file's path and of the items around a chunk count this many times, and the words of the chunk's text
/// count once. Arbitrary: with 0, 1 and 2, the same nine of twelve questions are answered.
pub const HEADER_COUNT: u32 = 1;
