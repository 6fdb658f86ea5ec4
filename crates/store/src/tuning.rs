//! The tuned numbers that several engines read, or crates above the store.

use tiro_base::memory::Millis;

/// How long after its expiry a text of the stash is removed, in milliseconds: a week. Until then, the text is only
/// hidden, so a clock that is wrong for some days removes nothing. Arbitrary.
pub const GRACE: Millis = 7 * 24 * 60 * 60 * 1000;

/// Old texts are removed only if the clock is at most this much later than everything in the store, in milliseconds: 30
/// days. A clock that is later may have jumped. Arbitrary. A consequence is that a store that was not used for a month
/// removes nothing until something is stored.
pub const TRUSTED: Millis = 30 * 24 * 60 * 60 * 1000;

/// The lowest confidence of a link. Arbitrary. A trigger in the schema also refuses any lower confidence
/// (`migrations/0007_weak_links.sql`), so a lower value here would change nothing.
pub const LEAST_CONFIDENCE: f64 = 0.5;

/// A page of changes for a peer ends when its texts and embeddings have this many bytes. Arbitrary: about as much as a page
/// of a backup.
pub const PAGE_OF_CHANGES: usize = 8 << 20;

/// The text index is merged again once it has grown by this factor. With this factor, all merges together write at most
/// four times the size of the index. Shown by `evals latency`: searches take a quarter less time if the index is a
/// single segment.
pub const INDEX_GROWTH: f64 = 1.25;

/// A store with at least this many documents is large. In a smaller store, every word of a query is looked for, and the
/// text index isn't merged. Words get their weights from a larger store that is searched at the same time. Measured by
/// `evals retrieval`: 5,000 finds 76.1% of the evidence, and 25,000 finds 76.2%.
pub const LARGE_STORE: i64 = 5_000;

/// A turn's context in the text index consists of the words of this many turns before it, and of as many turns after
/// it. Measured with [`COLUMNS`].
pub const NEIGHBOURS: i64 = 2;

/// The parameter b of BM25, which decides how much a text's length counts. The value of FTS5.
pub const BM25_B: f64 = 0.75;

/// The parameter k1 of BM25, which limits how much the repetitions of a word count. The value of FTS5.
pub const BM25_K1: f64 = 1.2;

/// The weights of a word in the columns of the text index: facets, speaker, header, text, context. Measured by `evals
/// retrieval`: header and speaker raise recall from 53% to 64%, and the context of two turns on each side raises it
/// further, to 78%.
pub const COLUMNS: [f64; 5] = [0.0, 0.1, 1.0, 1.0, 0.5];

/// The lowest weight of a word, as in FTS5.
pub const LEAST_WEIGHT: f64 = 1e-6;

/// The maximum size of the compressed texts that a project keeps for its threads, in bytes. A file whose copy was
/// removed is sent whole when it changes. Arbitrary: source code compresses to about a third, so this size is enough
/// for about 190 MB of source code.
pub const BLOB_BYTES: i64 = 64 << 20;

/// The maximum number of cached token counts; the oldest are removed first. Arbitrary: this many counts take about 8
/// MB.
pub const TOKEN_COUNTS: i64 = 100_000;

/// No looser tier is tried once each large group has at least this many candidates. Measured with [`TIERS`].
pub const ENOUGH: usize = 20;

/// The maximum number of chunks that a search by words takes as few: if scope and filter admit no more, the best of all
/// of them are found. Arbitrary: reading this many chunks one after the other takes SQLite about five milliseconds.
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
/// share of all documents.
///
/// Measured with SQLite by `evals latency`, with 100,000 messages: a search takes 3.2 ms of processor time, compared with 10.8 ms if
/// every word is looked for. Measured by `evals retrieval` with the same shares: for the search by words, recall at 10
/// is 72.2%, compared with 72.8% if every word is looked for.
pub const TIERS: [(usize, f64, usize); 3] = [(2, 0.15, 3), (2, 0.4, 5), (1, 0.12, MOST_WORDS)];
