//! The numbers of the search in the texts of one call.

/// The share of the better neighbour's BM25 that is added to the BM25 of a chunk: an item that was cut is found by the
/// words of all its parts. Measured by the test `questions_about_this_repository_find_the_functions_that_answer`.
pub const NEIGHBOUR_SHARE: f64 = 0.2;

/// The weight of the z-score of BM25. Measured with [`NEIGHBOUR_SHARE`].
pub const LEXICAL: f64 = 1.0;

/// The weight of the z-score of the cosine with the query. Measured with [`NEIGHBOUR_SHARE`].
pub const SEMANTIC: f64 = 1.0;

/// How many of the best chunks by their words, and as many by their cosine, are compared. Those of the former without
/// an embedding are embedded first, which takes about two seconds for all of them. Arbitrary.
pub const CANDIDATES: usize = 200;

/// How often the words of a file's path and of the items around a chunk count, compared with those of its text.
/// Arbitrary.
pub const HEADER_COUNT: u32 = 1;
