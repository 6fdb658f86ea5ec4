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

/// A hit may answer the question if its evidence is at least this value. The evidence is the share of the question's
/// words that the hit contains, weighted by rarity, plus [`COSINE_AS_EVIDENCE`] times its cosine. Chosen on 7
/// conversations and checked on 8 others and on a history of 4,000 commits; the results of the check are in brackets.
/// 0.7% of 439 questions with an answer are denied one (1.0% of 710). In most of these cases, none of the ten best hits
/// has the answer. Of questions about other people's lives, 93% of 220 (86% of 330) are denied. Of 20 questions in
/// other words than the answer, 3 are denied. With 1.3, these numbers are 1.1% (1.4%), 95% (89%) and 9; with 1.5, they
/// are 1.8% (2.8%), 96% (92%) and 10.
pub const ANSWERING: f64 = 1.15;

/// The value of [`ANSWERING`] for a commit. The messages of commits are short, and two programs change in similar ways.
/// Measured on a history of 4,000 commits: none of 210 lines of its changelog is denied an answer, and 64% of 150 lines
/// from the log of another program are denied. With 1.15 it is 41%; with 1.6 it is 75%, and one of the 210 is denied.
pub const ANSWERING_COMMIT: f64 = 1.45;

/// The weight of a hit's cosine in its evidence, compared with the share of the question's words. A logistic regression
/// on the questions of [`ANSWERING`] gives 2.9. With 2 to 4, the results are nearly the same. The distance of the best
/// cosine to the others, the size of the store and the number of words did not improve the results.
pub const COSINE_AS_EVIDENCE: f64 = 3.0;

/// The additional evidence that a hit needs if the question contains a name that no memory contains. The regression of
/// [`COSINE_AS_EVIDENCE`] gives 0.62. Without this number, and with a bound of 1.35, as many answers are denied, but
/// only 83% (80%) of the questions about other people's lives, and 8 of the 20 questions in other words.
pub const UNKNOWN_NAME: f64 = 0.6;

/// The value of [`ANSWERING`] if only words count, because the meaning of the hit or of the question is not known. On
/// the same questions, searched without a model, 1.4% (1.3%) of the questions with an answer are denied one, and 83%
/// (75%) of the questions about other people's lives are denied.
pub const ANSWERING_BY_WORDS: f64 = 0.15;

/// The value of [`UNKNOWN_NAME`] if only words count. Measured with [`ANSWERING_BY_WORDS`].
pub const UNKNOWN_NAME_BY_WORDS: f64 = 0.2;

/// If a question names a speaker, and the share and the cosine of another speaker's best message are together higher by
/// more than this value than those of the named speaker's best message, the question is not answered. Measured on the
/// questions of [`ANSWERING`]. Of questions that name the wrong one of two people, 15% of 108 (12% of 129) are noticed,
/// and 1.4% (1.3%) instead of 0.7% (1.0%) of all questions with an answer are denied one. With 0.4, it is 20% (16%) and
/// 3.0% (1.8%); with 0.1, it is 43% (43%) and 8.2% (5.6%).
pub const LEAD_OF_OTHERS: f64 = 0.5;

/// A noted memory is near a new text if it contains at least this share of the text's words.
pub const NEAR_SHARE: f64 = 0.6;

/// A noted memory is near a new text if its cosine with the text is at least this value.
pub const NEAR_COSINE: f64 = 0.55;

/// A noted memory that begins with the same word as a new text is near it if its cosine with the text is at least this
/// value.
pub const SAME_SUBJECT_COSINE: f64 = 0.45;

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
