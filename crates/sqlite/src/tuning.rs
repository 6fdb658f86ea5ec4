//! The tuned numbers of this crate.

use std::time::Duration;

/// FTS5 merges a part of the text index by itself as soon as this percentage of the part's rows is removed
/// (<https://sqlite.org/fts5.html#the_deletemerge_configuration_option>). The default of FTS5.
pub const DELETE_MERGE: i64 = 10;

/// The maximum number of pages of the text index that one transaction of a purge merges, which takes some tens of
/// milliseconds. Measured by hand.
pub const MERGED_AT_ONCE: i64 = 64;

/// The maximum number of memories that one transaction of a purge removes, which takes some tens of milliseconds.
/// Measured by hand.
pub const REMOVED_AT_ONCE: usize = 250;

/// The maximum number of memories that one transaction forgets or restores, which takes a quarter of a second.
/// Measured by hand.
pub const FORGOTTEN_AT_ONCE: usize = 5_000;

/// The shortest and the longest pause between two transactions; during a pause, other writers get their turn. The
/// longest pause is enough because a waiting process tries again every tenth of a second. Arbitrary.
pub const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// No looser tier is tried once each large group has at least this many candidates. Measured with [`TIERS`].
pub const ENOUGH: usize = 20;

/// The maximum number of chunks that a search by words reads one after the other. If more chunks match, the search
/// takes the best of all chunks that contain the words. Arbitrary: reading this many chunks takes about five
/// milliseconds.
pub const FEW_CHUNKS: usize = 5_000;

/// A group is large if it has at least this share of the documents. Arbitrary. Smaller groups are searched separately,
/// by the word that marks their documents.
pub const LARGE_GROUP: f64 = 0.2;

/// A group with fewer candidates than this is searched again, by its facet. Arbitrary.
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
/// share of all documents.
///
/// Measured by `evals latency` with 100,000 messages: a search takes 3.2 ms of processor time, compared with 10.8 ms if
/// every word is looked for. Measured by `evals retrieval` with the same shares: for the search by words, recall at 10
/// is 72.2%, compared with 72.8% if every word is looked for.
pub const TIERS: [(usize, f64, usize); 3] = [(2, 0.15, 3), (2, 0.4, 5), (1, 0.12, MOST_WORDS)];
