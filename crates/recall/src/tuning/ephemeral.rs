//! The numbers of the search in the texts of one call.
//!
//! Twelve questions about Tiro's own source (`ephemeral/tests.rs`) are too few to tell near values apart.

/// The share of the better neighbour's BM25 that is added to the BM25 of a chunk: an item that was cut is found by the
/// words of all its parts. Measured on twelve questions, searched by words: with 0, nine become eight; with 0.5, they
/// are nine as well.
pub const NEIGHBOUR_SHARE: f64 = 0.2;

/// The weight of the z-score of BM25. Arbitrary.
pub const LEXICAL: f64 = 1.0;

/// The weight of the z-score of the cosine with the query. Arbitrary: on twelve questions, searches with and without it
/// answer nine each, but not the same nine.
pub const SEMANTIC: f64 = 1.0;

/// How many of the best chunks by their words, and as many by their cosine, are compared. Those of the former without
/// an embedding are embedded first, as far as the deadline allows. Arbitrary.
pub const CANDIDATES: usize = 200;

/// How often the words of a file's path and of the items around a chunk count, compared with those of its text.
/// Arbitrary: on twelve questions, 0, 1 and 2 answer the same nine.
pub const HEADER_COUNT: u32 = 1;
