//! Summaries: their length, the worth of sentences and words, and the quality that a model's answer needs.
//!
//! A word is worth more the rarer it is among the sentences. A factor multiplies the worth of a word, or of the words of a
//! sentence. `evals summaries` shows the effect of the numbers from [`LENGTH_SHARE`] to [`LEAST_OF_TOPIC`].

use crate::memory::Millis;

/// Share of the sources' tokens that a summary has, at most. Measured by `evals summaries`: it keeps six of ten words that
/// answers need.
pub const LENGTH_SHARE: f64 = 0.22;

/// Tokens of a brief summary: two sentences. Arbitrary.
pub const BRIEF_TOKENS: usize = 50;

/// Tokens of a standard summary, at least and at most: a paragraph. Arbitrary.
pub const STANDARD_TOKENS: (usize, usize) = (80, 300);

/// Tokens of a detailed summary, at least and at most: a page and a half. Arbitrary.
pub const DETAILED_TOKENS: (usize, usize) = (160, 1500);

/// Sentences of a brief summary, at most. Arbitrary.
pub const BRIEF_SENTENCES: usize = 2;

/// Tokens added to those of a sentence before its gain is divided by them; without them short sentences always win.
/// Shown by `evals summaries`.
pub const SENTENCE_COST: f64 = 4.0;

/// Factor on a name or a number. Shown by `evals summaries`.
pub const NAME: f64 = 2.0;

/// Factor on a word that occurs more than once. Shown by `evals summaries`.
pub const REPEATED: f64 = 1.5;

/// Factor on a sentence that states a decision, a result or an open task. Arbitrary.
pub const DECISION: f64 = 1.3;

/// Factor on a question of the last message, which has no answer yet. Arbitrary.
pub const OPEN_QUESTION: f64 = 1.2;

/// Factor on any other question. Arbitrary.
pub const QUESTION: f64 = 0.5;

/// Factor on text in brackets. Arbitrary.
pub const ASIDE: f64 = 0.5;

/// Factor on a line of code, of a table or of a log. Arbitrary.
pub const CODE: f64 = 0.3;

/// Factor on the output of a tool. Arbitrary.
pub const TOOL: f64 = 0.4;

/// Factor on instructions of the client. Arbitrary.
pub const SYSTEM: f64 = 0.3;

/// Factor on a sentence of one word. Arbitrary.
pub const FRAGMENT: f64 = 0.3;

/// Factor on a short greeting, thanks or praise. Arbitrary.
pub const GREETING: f64 = 0.4;

/// Factor on a sentence that begins with a reference to the sentence before. Arbitrary.
pub const REFERENCE: f64 = 0.7;

/// Factor on a sentence of a source that has no word of the focus. Arbitrary.
pub const OFF_FOCUS: f64 = 0.2;

/// Factor on a sentence without a word of the focus, in a source that has one. Arbitrary.
pub const NEAR_FOCUS: f64 = 0.7;

/// Factor on a sentence with words of the focus, before one is added for each of them. Arbitrary.
pub const ON_FOCUS: f64 = 2.0;

/// Factor on a number in a brief: the same number means something else each time. Arbitrary.
pub const NUMBER_IN_BRIEF: f64 = 0.5;

/// Added to the factor on the last sentence of a brief, and in proportion to earlier ones: outcomes are stated late.
/// Arbitrary.
pub const LATE_IN_BRIEF: f64 = 0.3;

/// Sources from which a detailed summary is divided by topic: two segments. Arbitrary.
pub const SOURCES_FOR_TOPICS: usize = 40;

/// Tokens from which a detailed summary is divided by topic. Measured by `evals summaries`: of 600 tokens the headings cost
/// half a percent of answers' words, of 1,300 nothing measurable.
pub const TOKENS_FOR_TOPICS: usize = 1000;

/// Topics of such a summary, at most. Measured with [`TOKENS_FOR_TOPICS`].
pub const TOPICS: usize = 4;

/// Sentences of each topic, at least. Measured with [`TOKENS_FOR_TOPICS`].
pub const LEAST_OF_TOPIC: usize = 4;

/// Quality, from 0 to 1, that a model's summary needs. Arbitrary.
pub const LEAST_QUALITY: f64 = 0.8;

/// Quality that the chosen sentences are taken to have, at least, when a brief is compared with them. Arbitrary: it rejects
/// a brief that says next to nothing.
pub const LEAST_CHOSEN: f64 = 0.5;

/// Share of a summary's words that occur in its sources, below which it is off topic. A model that rephrases keeps well
/// above half of them; otherwise arbitrary.
pub const ON_TOPIC: f64 = 0.5;

/// Least weight, for quality, of a word in a sentence that states a decision. Arbitrary.
pub const DECISION_WORD: f64 = 0.3;

/// Share of the tokens in which the best attainable is computed: prose needs the rest to join names and to name speakers.
/// Arbitrary.
pub const DENSE: f64 = 0.8;

/// Total weight of names, numbers and decisions, for quality, below which every word counts. Arbitrary.
pub const FEW_NAMES: f64 = 3.0;

/// Sources that have more than this share of the words that the best source has in common with a sentence are cited.
/// Arbitrary.
pub const CITED_SHARE: f64 = 0.7;

/// Words that a model writes for ten tokens. Arbitrary; it decides how often an answer is too long.
pub const WORDS_OF_TEN_TOKENS: usize = 6;

/// Messages from which a context across conversations summarises one (`summary.threshold`). Arbitrary.
pub const THRESHOLD: usize = 8;

/// Tokens of a conversation's summary in a context across conversations, at most; with fewer left none is begun. Arbitrary.
pub const ACROSS_TOKENS: usize = 60;

/// Conversations that one context across conversations summarises, at most. Shown by `evals budget`.
pub const ACROSS_SESSIONS: usize = 6;

/// Weight of a conversation, as a share of the best, from which `get_context_summary` summarises it. Arbitrary.
pub const RELATED_WEIGHT: f64 = 0.5;

/// Score of a conversation's best message, as a share of the best of all, from which `get_context_summary` summarises it.
/// Arbitrary.
pub const RELATED_SCORE: f64 = 0.75;

/// Tokens of a summary in `get_context_summary` with fewer of which left none is begun. Arbitrary.
pub const RELATED_TOKENS: usize = 40;

/// Conversations that `get_context_summary` summarises, at most. Arbitrary.
pub const RELATED_SESSIONS: usize = 8;

/// Tokens of a segment's summary, at least: a short sentence. Arbitrary.
pub const SEGMENT_TOKENS: usize = 24;

/// Key facts of a segment, at most. Arbitrary.
pub const FACTS_OF_SEGMENT: usize = 3;

/// Milliseconds of silence after which a session counts as ended: half an hour. Arbitrary.
pub const SESSION_ENDED: Millis = 30 * 60 * 1000;

/// Conversations of a quarter from which it is summarised. Arbitrary: one conversation has a summary already.
pub const QUARTER_SESSIONS: usize = 2;

/// Tokens of a quarter's summary, at most: a page. Arbitrary.
pub const QUARTER_TOKENS: usize = 600;
