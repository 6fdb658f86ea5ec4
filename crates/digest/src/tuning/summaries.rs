//! The numbers of summaries: their length, and the worth of sentences and words. The numbers for the checks of a
//! model's answer are in `gate`.
//!
//! A word that is rarer among the sentences is worth more. A "factor" below multiplies the worth of one word, or of all
//! words of a sentence. `evals summaries` shows the effect of the numbers from [`LENGTH_SHARE`] to [`LEAST_OF_TOPIC`].

use tiro_base::memory::Millis;

/// The number of tokens that a summary may have, as a share of its sources' tokens, within the limits of its level.
/// Measured by `evals summaries`: a summary of this length keeps six of ten words that answers need.
pub const LENGTH_SHARE: f64 = 0.22;

/// The maximum number of tokens of a brief summary: enough for two sentences, even for the long sentences of
/// conversations with an assistant. Arbitrary.
pub const BRIEF_TOKENS: usize = 90;

/// The minimum and the maximum number of tokens of a standard summary, which is a paragraph. Arbitrary.
pub const STANDARD_TOKENS: (usize, usize) = (80, 300);

/// The minimum and the maximum number of tokens of a detailed summary, which is up to a page and a half. Arbitrary.
pub const DETAILED_TOKENS: (usize, usize) = (160, 1500);

/// The maximum number of sentences of a brief summary. Arbitrary.
pub const BRIEF_SENTENCES: usize = 2;

/// The number of tokens that is added to the tokens of a sentence before the sentence's gain is divided by the sum.
/// Without this addition, short sentences would always win. Shown by `evals summaries`.
pub const SENTENCE_COST: f64 = 8.0;

/// The factor on a name or a number. Shown by `evals summaries`.
pub const NAME: f64 = 2.5;

/// The factor on a word that occurs more than once. Shown by `evals summaries`.
pub const REPEATED: f64 = 1.5;

/// The factor on a sentence that states a decision, a result or an open task. Arbitrary.
pub const DECISION: f64 = 1.3;

/// The factor on a sentence that a later message corrected. Arbitrary.
pub const CORRECTED: f64 = 0.3;

/// The factor on a sentence of a document that a person pasted. Arbitrary.
pub const PASTED: f64 = 0.3;

/// The factor on a question in the last message, which has no answer yet. Arbitrary.
pub const OPEN_QUESTION: f64 = 1.2;

/// The factor on any other question. Arbitrary.
pub const QUESTION: f64 = 0.5;

/// The factor on text in square brackets. Arbitrary.
pub const ASIDE: f64 = 0.5;

/// The factor on a sentence of one word. Arbitrary.
pub const FRAGMENT: f64 = 0.3;

/// The factor on a short sentence that greets, thanks or praises. Arbitrary.
pub const GREETING: f64 = 0.4;

/// The factor on a sentence that begins with a word such as "this", which refers to the previous sentence. Arbitrary.
pub const REFERENCE: f64 = 0.7;

/// The factor on a sentence if its whole source contains no word of the focus. Arbitrary.
pub const OFF_FOCUS: f64 = 0.2;

/// The factor on a sentence that contains no word of the focus while another sentence of its source contains one.
/// Arbitrary.
pub const NEAR_FOCUS: f64 = 0.7;

/// The factor on a sentence with words of the focus is this number plus the number of these words. Arbitrary.
pub const ON_FOCUS: f64 = 2.0;

/// The factor on a number in a brief summary. It is low because the same number means something else in each place.
/// Arbitrary.
pub const NUMBER_IN_BRIEF: f64 = 0.5;

/// In a brief summary, the rate of a sentence in the last source is raised by this share, because outcomes are mostly
/// stated late. For earlier sources, the share is lower in proportion to their place. Arbitrary.
pub const LATE_IN_BRIEF: f64 = 0.3;

/// If the assistant's messages have at least this many bytes on average, the conversation counts as one of a user with
/// an assistant, and its summary is an account of exchanges. Messages between two people have some 140 bytes on
/// average, and an assistant's answers have some 4,000. Arbitrary: a number between these two.
pub const LONG_ANSWER: usize = 500;

/// In a summary of exchanges, the worth of a word that only one sentence contains. If several sentences contain a word,
/// its worth is the logarithm of one more than the number of these sentences. Arbitrary.
pub const ONCE: f64 = 0.25;

/// The factor on a word that the summary of exchanges already contains. Arbitrary.
pub const AGAIN: f64 = 0.25;

/// The factor on a name or a number in a summary of exchanges. Arbitrary.
pub const KEY: f64 = 1.5;

/// If the assistant only answers questions, a sentence of an answer is quoted only if it contains at least this share of
/// the question's words. Arbitrary.
pub const ANSWERING: f64 = 0.3;

/// A request names what it is about if the number of its words that are neither common nor verbs of requests, plus the
/// number of its names, is at least this number. Arbitrary.
pub const SPECIFIC: usize = 3;

/// The maximum number of sentences that are quoted from an outcome. Arbitrary: few and right rather than many.
pub const MOST_CONCLUSIONS: usize = 3;

/// The maximum number of characters of a title. Arbitrary: a line of a list.
pub const TITLE: usize = 72;

/// A detailed summary is divided by topic only if it has at least this many sources: about two segments of messages.
/// Arbitrary.
pub const SOURCES_FOR_TOPICS: usize = 40;

/// A detailed summary is divided by topic only if it may have at least this many tokens. Measured by `evals
/// summaries`: in a summary of 600 tokens the headings displace half a percent of the words that answers need,
/// and in one of 1,300 tokens no measurable share.
pub const TOKENS_FOR_TOPICS: usize = 1000;

/// The maximum number of topics of a summary that is divided by topic. Measured with [`TOKENS_FOR_TOPICS`].
pub const TOPICS: usize = 4;

/// The minimum number of sentences of each topic. Measured with [`TOKENS_FOR_TOPICS`].
pub const LEAST_OF_TOPIC: usize = 4;

/// A source is cited for a sentence if the total weight of the words that both contain is more than this share of the
/// highest such weight of any source. Arbitrary.
pub const CITED_SHARE: f64 = 0.7;

/// The number of words that a model is assumed to write in ten tokens. Requests state the length in words, so this
/// number decides how often an answer is too long. Arbitrary.
pub const WORDS_OF_TEN_TOKENS: usize = 6;

/// A context across conversations summarises a conversation only if it has at least this many messages
/// (`summary.threshold`). Arbitrary.
pub const THRESHOLD: usize = 8;

/// In a context across conversations, the maximum number of tokens of each conversation's summary. If fewer are left,
/// no further summary is made. Arbitrary.
pub const ACROSS_TOKENS: usize = 60;

/// The maximum number of conversations that one context across conversations summarises. Shown by `evals budget`.
pub const ACROSS_SESSIONS: usize = 6;

/// `get_context_summary` summarises a conversation if its weight is at least this share of the highest weight.
/// Arbitrary.
pub const RELATED_WEIGHT: f64 = 0.5;

/// `get_context_summary` also summarises a conversation if the score of its best hit is at least this share of the
/// highest score. Arbitrary.
pub const RELATED_SCORE: f64 = 0.75;

/// The minimum number of tokens that a summary in `get_context_summary` may use. If fewer are left, no further
/// summary is made. Arbitrary.
pub const RELATED_TOKENS: usize = 40;

/// The maximum number of conversations that `get_context_summary` summarises. Arbitrary.
pub const RELATED_SESSIONS: usize = 8;

/// The smallest limit of tokens for a segment's summary: enough for a short sentence. Arbitrary.
pub const SEGMENT_TOKENS: usize = 24;

/// The time for which a session must be silent before it counts as ended, in milliseconds: half an hour. Arbitrary.
pub const SESSION_ENDED: Millis = 30 * 60 * 1000;

/// A quarter is summarised only if it has at least this many conversations. Arbitrary: a single conversation
/// already has a summary.
pub const QUARTER_SESSIONS: usize = 2;

/// The maximum number of tokens of a quarter's summary: a page. Arbitrary.
pub const QUARTER_TOKENS: usize = 600;
