//! The numbers of summaries: their length, the worth of sentences and words, and the quality that a model's answer
//! needs.
//!
//! The rarer a word is among the sentences, the more it is worth. A "factor" below multiplies the worth of one word, or
//! of all words of a sentence. `evals summaries` shows the effect of the numbers from [`LENGTH_SHARE`] to
//! [`LEAST_OF_TOPIC`].

use crate::memory::Millis;

/// How many tokens a summary may have, as a share of its sources' tokens and within the limits of its level. Measured
/// by `evals summaries`: a summary of this length keeps six of ten words that answers need.
pub const LENGTH_SHARE: f64 = 0.22;

/// The maximum number of tokens of a brief summary: enough for two sentences. Arbitrary.
pub const BRIEF_TOKENS: usize = 50;

/// The fewest and the most tokens of a standard summary, a paragraph. Arbitrary.
pub const STANDARD_TOKENS: (usize, usize) = (80, 300);

/// The fewest and the most tokens of a detailed summary, up to a page and a half. Arbitrary.
pub const DETAILED_TOKENS: (usize, usize) = (160, 1500);

/// The maximum number of sentences of a brief summary. Arbitrary.
pub const BRIEF_SENTENCES: usize = 2;

/// How many tokens are added to those of a sentence before its gain is divided by the sum. Without them, short
/// sentences would always win. Shown by `evals summaries`.
pub const SENTENCE_COST: f64 = 4.0;

/// The factor on a name or a number. Shown by `evals summaries`.
pub const NAME: f64 = 2.0;

/// The factor on a word that occurs more than once. Shown by `evals summaries`.
pub const REPEATED: f64 = 1.5;

/// The factor on a sentence that states a decision, a result or an open task. Arbitrary.
pub const DECISION: f64 = 1.3;

/// The factor on a question in the last message, which has no answer yet. Arbitrary.
pub const OPEN_QUESTION: f64 = 1.2;

/// The factor on any other question. Arbitrary.
pub const QUESTION: f64 = 0.5;

/// The factor on text in square brackets. Arbitrary.
pub const ASIDE: f64 = 0.5;

/// The factor on a line of code, of a table or of a log. Arbitrary.
pub const CODE: f64 = 0.3;

/// The factor on the output of a tool. Arbitrary.
pub const TOOL: f64 = 0.4;

/// The factor on instructions of the client. Arbitrary.
pub const SYSTEM: f64 = 0.3;

/// The factor on a sentence of one word. Arbitrary.
pub const FRAGMENT: f64 = 0.3;

/// The factor on a short sentence that greets, thanks or praises. Arbitrary.
pub const GREETING: f64 = 0.4;

/// The factor on a sentence that begins with a word such as "this", which refers to the sentence before. Arbitrary.
pub const REFERENCE: f64 = 0.7;

/// The factor on a sentence if its whole source has no word of the focus. Arbitrary.
pub const OFF_FOCUS: f64 = 0.2;

/// The factor on a sentence that has no word of the focus while another sentence of its source has one. Arbitrary.
pub const NEAR_FOCUS: f64 = 0.7;

/// The factor on a sentence with words of the focus is this plus the number of these words. Arbitrary.
pub const ON_FOCUS: f64 = 2.0;

/// The factor on a number in a brief summary. It is low because the same number means something else in each place.
/// Arbitrary.
pub const NUMBER_IN_BRIEF: f64 = 0.5;

/// In a brief summary, the rate of a sentence in the last source is raised by this share, since outcomes tend to be
/// stated late. For earlier sources, the share is lower in proportion to their place. Arbitrary.
pub const LATE_IN_BRIEF: f64 = 0.3;

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

/// The lowest quality, from 0 to 1, with which a model's summary is accepted. Arbitrary.
pub const LEAST_QUALITY: f64 = 0.8;

/// When a model's brief summary is compared with chosen sentences, their quality counts as at least this. Arbitrary.
/// Without this limit, a brief summary that says next to nothing would be accepted if the chosen sentences say little.
pub const LEAST_CHOSEN: f64 = 0.5;

/// A summary is off topic if less than this share of its words occurs in its sources. Arbitrary, but a model's summary
/// that rephrases its sources stays well above this.
pub const ON_TOPIC: f64 = 0.5;

/// The lowest weight, for the quality, of a word in a sentence that states a decision. Arbitrary.
pub const DECISION_WORD: f64 = 0.3;

/// The best attainable quality is computed for this share of the summary's tokens: prose needs the rest to join names
/// and to name speakers. Arbitrary.
pub const DENSE: f64 = 0.8;

/// If the total weight of names, numbers and words of decisions is below this, every word counts for the quality.
/// Arbitrary.
pub const FEW_NAMES: f64 = 3.0;

/// A source is cited for a sentence if the total weight of the words that they share is more than this share of the
/// highest such weight of any source. Arbitrary.
pub const CITED_SHARE: f64 = 0.7;

/// How many words a model is assumed to write in ten tokens. Requests state the length in words, so this decides how
/// often an answer is too long. Arbitrary.
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

/// The maximum number of key facts of a segment. Arbitrary.
pub const FACTS_OF_SEGMENT: usize = 3;

/// How long a session must be silent before it counts as ended, in milliseconds: half an hour. Arbitrary.
pub const SESSION_ENDED: Millis = 30 * 60 * 1000;

/// A quarter is summarised only if it has at least this many conversations. Arbitrary: a single conversation
/// already has a summary.
pub const QUARTER_SESSIONS: usize = 2;

/// The maximum number of tokens of a quarter's summary: a page. Arbitrary.
pub const QUARTER_TOKENS: usize = 600;
