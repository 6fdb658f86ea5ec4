//! The tuned numbers of this crate. They are those of SQLite's engine, so that both find the same.

/// No looser tier is tried once each large group has at least this many candidates. Measured with [`TIERS`].
pub const ENOUGH: usize = 20;

/// The maximum number of chunks that a search by words takes as few: if scope and filter admit no more, the best of all
/// of them are found. Arbitrary.
pub const FEW_CHUNKS: usize = 5_000;

/// A group is large if it has at least this share of the documents. Arbitrary. Smaller groups are searched separately.
pub const LARGE_GROUP: f64 = 0.2;

/// A group with fewer candidates than this is searched again by itself. Arbitrary.
pub const LITTLE: usize = 40;

/// The document counts of a tier's words may always add up to this number, even if the tier's share allows only a
/// smaller sum. Arbitrary.
pub const LEAST_DOCUMENTS: i64 = 4_000;

/// The maximum number of words that are looked for in a large store although no document contains them yet. Arbitrary.
pub const MOST_UNMET: usize = 4;

/// The maximum number of words that are looked for in a large store. Arbitrary: if a query has more words, the rarest
/// decide which documents are found.
pub const MOST_WORDS: usize = 16;

/// A document of a small group must contain one of the query's rarest words. For each of these words, the documents
/// that contain it are counted. The sum of these counts is at most this share of all documents. Measured with
/// [`TIERS`].
pub const RARE_SHARE: f64 = 0.06;

/// The conditions that a document of a large store has to meet, the strictest first. Each condition has three numbers:
/// how many of the query's rarest words the document must contain, a share of all documents, and the maximum number of
/// words that count as the rarest. The share limits these words too: the sum of their document counts is at most this
/// share of all documents. Measured with SQLite's engine, by `evals latency` and `evals retrieval`.
pub const TIERS: [(usize, f64, usize); 3] = [(2, 0.15, 3), (2, 0.4, 5), (1, 0.12, MOST_WORDS)];
