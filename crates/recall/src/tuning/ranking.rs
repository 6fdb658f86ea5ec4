//! The numbers of ranking: the weights of the parts of a score, the weights of words by their place, and how many
//! candidates there are.
//!
//! The weights need not be exact: doubling or halving any one of them makes no difference that matters (`evals
//! retrieval`, `evals commits`).

/// The weight of BM25, which counts as a share of the query's best BM25. Measured by `evals retrieval`: if
/// scores are added, the first 10 hits contain 12 percentage points more of the evidence than if ranks are added.
pub const LEXICAL: f64 = 1.0;

/// The weight of the cosine with the query. Measured with [`LEXICAL`].
pub const SEMANTIC: f64 = 1.0;

/// The weight of a speaker whom the query names. Shown by `evals retrieval`.
pub const SPEAKER: f64 = 0.1;

/// The weight of the user's mark, or of the importance from 0 to 1 that the author of a memory gave it. Arbitrary.
pub const IMPORTANCE: f64 = 0.1;

/// The highest score that a memory can have: the sum of the full weights of all parts.
pub const BEST_SCORE: f64 = LEXICAL + SEMANTIC + SPEAKER + IMPORTANCE;

/// The factor by which BM25 and cosine are multiplied for a memory that represents a whole session. Such a memory
/// contains words from all parts of the session, and would otherwise rank before the messages that answer the query.
/// Shown by `evals retrieval`.
pub const CONVERSATION: f64 = 0.6;

/// The amount by which the score of an assistant's message is lowered if the message is longer than one chunk. A long
/// answer has many chunks, so one of them nearly always fits the query. Measured by `evals retrieval` on chats of a
/// user with an assistant (1,216 answers of 4,100 characters on average), with [`EXCHANGE`]: the first 10 hits contain
/// 58.7% of the evidence instead of 45.2%, and 14% of these hits are the assistant's instead of 73%. All values from
/// 0.2 to 0.5 give 58% to 60%. Conversations of two people have no such messages.
pub const ANSWER: f64 = 0.3;

/// The share of a long answer's BM25 and cosine that is added to the score of the user's message right before it.
/// Measured with [`ANSWER`]: without this share, the first 10 hits contain 54.0% of the evidence; with 0.2 57.8%, with
/// 0.4 59.1%.
pub const EXCHANGE: f64 = 0.3;

/// The value of [`ANSWER`] in a context across conversations. A context has room for dozens of messages, so the user's
/// messages come first. Measured by `evals budget` on chats of a user with an assistant, with [`EXCHANGE_IN_CONTEXT`]:
/// 4,000 tokens contain 78% of the user's messages that are evidence, instead of 75% with the weights of a search.
pub const ANSWER_IN_CONTEXT: f64 = 0.6;

/// The value of [`EXCHANGE`] in a context across conversations. Measured with [`ANSWER_IN_CONTEXT`].
pub const EXCHANGE_IN_CONTEXT: f64 = 0.4;

/// The amount by which the score of a commit is lowered if a program made it. Arbitrary: about the difference between
/// the best hit and the tenth.
pub const BOT: f64 = 0.3;

/// The expected cosine of a chunk whose BM25 is 0, and the increase of this cosine for the best BM25. The expected
/// cosine is used for a chunk that waits to be embedded. Measured on 1.2 million pairs of a question and a chunk: the
/// mean cosine rises from 0.25 to 0.40.
pub const EXPECTED_COSINE: (f64, f64) = (0.25, 0.15);

/// The amount by which a hit's score is lowered for each better hit of the same session. This affects only the order of
/// the hits. Measured by `evals retrieval`: the first 10 hits come from 0.6 more sessions, at the cost of 0.1
/// percentage points of recall.
pub const REPETITION: f64 = 0.02;

/// A hit may answer the query if it contains at least this share of the query's words, weighted by rarity. Measured
/// with [`ANSWERING_COSINE`].
pub const ANSWERING_SHARE: f64 = 0.5;

/// A hit may answer the query if its cosine is at least this value. Measured on three suites, with 505 questions about
/// 25 conversations. Each question was asked about its own conversation and about two others. With these two numbers,
/// one of the best ten hits may answer 95%, 92% and 97% of the questions that have an answer, and 28%, 30% and 17% of
/// those that have none. With 0.4 and 0.35, these numbers were 99%, 98% and 99%, and 47%, 56% and 38%.
pub const ANSWERING_COSINE: f64 = 0.42;

/// A noted memory is near a new text if it contains at least this share of the text's words.
pub const NEAR_SHARE: f64 = 0.6;

/// A noted memory is near a new text if its cosine with the text is at least this value.
pub const NEAR_COSINE: f64 = 0.6;

/// The maximum number of candidates of one group of kinds that one search returns. Measured by `evals retrieval`:
/// with 40, 100 and 200, the first ten hits are the same.
pub const CANDIDATES: usize = 100;

/// A search's budget divided by this number is the part for notices and for the names of the searched sessions.
/// Arbitrary.
pub const NOTICES: usize = 4;

/// A search's budget divided by this number is the part for messages that are shown with their commits. Arbitrary.
pub const BESIDE_COMMITS: usize = 4;

/// The weight of recency in the score of a snippet, if the strategy counts both relevance and recency. Arbitrary.
pub const SNIPPET_RECENCY: f64 = 0.2;

/// The time after which the recency of a snippet has halved, in milliseconds: 30 days. Arbitrary.
pub const SNIPPET_HALF_LIFE: i64 = 30 * 24 * 3600 * 1000;
