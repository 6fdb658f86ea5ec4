//! Ranking: the weights of the parts of a score, the weights of words by their place, and the numbers of candidates.
//!
//! The optimum of the weights is flat: no weight matters within a factor of two (`evals retrieval`, `evals commits`).

use std::time::Duration;

/// Weight of BM25, as a share of the query's best. Measured by `evals retrieval`: adding scores finds 12 points more of the
/// evidence among the first 10 than adding ranks.
pub const LEXICAL: f64 = 1.0;

/// Weight of the cosine with the query. Measured with [`LEXICAL`].
pub const SEMANTIC: f64 = 1.0;

/// Weight of a speaker whom the query names. Shown by `evals retrieval`.
pub const SPEAKER: f64 = 0.1;

/// Weight of the user's mark, or of the author's importance from 0 to 1. Arbitrary.
pub const IMPORTANCE: f64 = 0.1;

/// The highest score that a memory can have: every part at its full weight.
pub const BEST_SCORE: f64 = LEXICAL + SEMANTIC + SPEAKER + IMPORTANCE;

/// Factor on BM25 and cosine of the memory that represents a whole session: it has words of everything that was said, and
/// would rank before the messages that answer. Shown by `evals retrieval`.
pub const CONVERSATION: f64 = 0.6;

/// Taken off the score, for the order only, for each better hit of the same session. Measured by `evals retrieval`: 0.6
/// sessions more among the first 10, for 0.1 points of recall.
pub const REPETITION: f64 = 0.02;

/// A hit may answer if it has at least this share of the query's words, weighed by rarity. Arbitrary.
pub const ANSWERING_SHARE: f64 = 0.4;

/// A hit may answer if its cosine is at least this. Arbitrary.
pub const ANSWERING_COSINE: f64 = 0.35;

/// Candidates of one group of kinds from one search, at most. Measured by `evals retrieval`: 40, 100 and 200 give the same
/// first ten.
pub const CANDIDATES: usize = 100;

/// The part of a search's budget for notices and the names of the sessions searched: the budget divided by this. Arbitrary.
pub const NOTICES: usize = 4;

/// The part of a search's budget for messages that are shown with their commits: the budget divided by this. Arbitrary.
pub const BESIDE_COMMITS: usize = 4;

/// Weight of recency in the score of a snippet, where the strategy counts relevance and recency. Arbitrary.
pub const SNIPPET_RECENCY: f64 = 0.2;

/// Milliseconds over which the recency of a snippet halves: 30 days. Arbitrary.
pub const SNIPPET_HALF_LIFE: i64 = 30 * 24 * 3600 * 1000;

/// Words of a query that are looked for, at most. Arbitrary: the longest question names few things, and a pasted log none.
pub const MOST_TERMS: usize = 48;

/// Commits that a query may name by their ids, at most. Arbitrary.
pub const MOST_COMMIT_IDS: usize = 8;

/// Identifiers of a query that are looked for as phrases, at most. Arbitrary.
pub const MOST_PHRASES: usize = 8;

/// Words of a phrase, at most: longer ones are paths or noise, whose words are looked for anyway. Arbitrary.
pub const LONGEST_PHRASE: usize = 8;

/// How long one answer reads git to find out which commits are reachable, where that is not known yet: about 40,000
/// commits. The next answer continues. Measured by the ignored test `a_page_of_hits_takes_milliseconds`.
pub const FRESHNESS_PATIENCE: Duration = Duration::from_millis(400);

/// Weights of a word in the columns of the text index: facets, speaker, header, text, context. Measured by `evals
/// retrieval`: header and speaker raise recall from 53 to 64, the context of two turns on each side to 78.
pub const COLUMNS: [f64; 5] = [0.0, 0.1, 1.0, 1.0, 0.5];

/// BM25's saturation of a word's frequency, as in FTS5.
pub const BM25_K1: f64 = 1.2;

/// BM25's normalisation by length, as in FTS5.
pub const BM25_B: f64 = 0.75;

/// The least weight of a word, as in FTS5.
pub const LEAST_WEIGHT: f64 = 1e-6;

/// Tokens of a chunk, at most (o200k): a hit shows one chunk, and with its header a chunk fits the embedder's 256 tokens in
/// most scripts. Shown by `evals retrieval`.
pub const CHUNK_TOKENS: usize = 150;

/// Tokens that neighbouring chunks share, so that a sentence at the border is whole in one of them. Arbitrary.
pub const CHUNK_OVERLAP: usize = 16;

/// Turns on each side whose words are the context of a turn in the text index. Measured with [`COLUMNS`].
pub const NEIGHBOURS: i64 = 2;

/// Words of a neighbouring turn that are context. Arbitrary: most of a turn, little of a long answer.
pub const NEIGHBOUR_WORDS: usize = 80;

/// Documents from which a store counts as large: below, every word of a query is looked for, words weigh as in a larger
/// store that is searched with it, and the text index isn't merged. Measured by `evals retrieval`: with 5,000 instead of
/// 25,000, 76.1 instead of 76.2% of the evidence.
pub const LARGE_STORE: i64 = 5_000;

/// Factor by which the text index grows before it is merged again: all merges together write at most four times the
/// size of the index. Shown by `evals latency`: in one segment, searches take three quarters of the time.
pub const INDEX_GROWTH: f64 = 1.25;

/// The conditions that a document of a large store has to meet, strictest first: it holds this many of the rarest words,
/// which together occur in at most this share of the documents, and of which there are at most this many.
///
/// Measured by `evals latency` with 100,000 messages: 3.2 ms of processor time instead of 10.8; by `evals retrieval` at the
/// same shares: recall at 10 by words 72.2 instead of 72.8 with every word.
pub const TIERS: [(usize, f64, usize); 3] = [(2, 0.15, 3), (2, 0.4, 5), (1, 0.12, MOST_WORDS)];

/// Documents that the words of a tier may occur in together, at least. Arbitrary.
pub const LEAST_DOCUMENTS: i64 = 4_000;

/// Words that are looked for in a large store, at most. Arbitrary: the rarest of more decide.
pub const MOST_WORDS: usize = 16;

/// Words that occur nowhere yet and are looked for in a large store, at most. Arbitrary.
pub const MOST_UNMET: usize = 4;

/// A document of a small group has to hold one of the rarest words, which together occur in at most this share of the
/// documents. Measured with [`TIERS`].
pub const RARE_SHARE: f64 = 0.06;

/// With this many candidates a large group is asked for no looser tier. Measured with [`TIERS`].
pub const ENOUGH: usize = 20;

/// A group is large from this share of the documents. Arbitrary: smaller ones are asked for by their facet.
pub const LARGE_GROUP: f64 = 0.2;

/// A group with fewer candidates than this is asked for again, by its facet. Arbitrary.
pub const LITTLE: usize = 40;
