//! Contexts: segments, tiers, shares of the budget, importance, and the weights of conversations.

use crate::memory::Millis;

/// Messages after which a segment ends with the turn. Arbitrary: tiers and summaries change by whole segments.
pub const SEGMENT: usize = 20;

/// Messages of a segment, at least: fewer leave a summary nothing to omit. Arbitrary.
pub const SHORTEST_SEGMENT: usize = 8;

/// Messages of a segment, at most, where no turn ends. Arbitrary.
pub const LONGEST_SEGMENT: usize = 30;

/// Milliseconds of silence that end a segment: half an hour. Arbitrary.
pub const SILENCE: Millis = 30 * 60 * 1000;

/// Characteristic words of a message that make it a new topic, if the segment before has none of them. Arbitrary.
pub const NEW_WORDS: usize = 6;

/// Messages of the recent tier, counted from the end of the last closed segment. Shown by `evals tiers`.
pub const RECENT_MESSAGES: usize = 10;

/// The last message of the medium tier. Shown by `evals tiers`.
pub const MEDIUM_MESSAGES: usize = 50;

/// The last message of the long tier. Shown by `evals tiers`.
pub const LONG_MESSAGES: usize = 100;

/// Share of the tokens that summaries of the medium tier keep. Measured by `evals tiers`: alone, the tiers keep 10% of the
/// evidence in 9% of the tokens; with a search of 4,000 tokens, more than 90%.
pub const MEDIUM_SHARE: f64 = 0.30;

/// Share of the tokens that summaries of the long tier keep. Measured with [`MEDIUM_SHARE`].
pub const LONG_SHARE: f64 = 0.15;

/// Share of the tokens that summaries of the ancient tier keep. Measured with [`MEDIUM_SHARE`].
pub const ANCIENT_SHARE: f64 = 0.05;

/// Tokens of a budget above which the shares below apply in full; under it they shrink with the square root of the budget.
/// Shown by `evals budget`.
pub const AMPLE: f64 = 8000.0;

/// Share of the budget for everything that doesn't depend on the question. Shown by `evals budget`.
pub const STABLE_SHARE: f64 = 0.5;

/// Share of the stable part for key facts. Arbitrary.
pub const FACTS_SHARE: f64 = 0.15;

/// Share of the budget for summaries (`context.summary_ratio`). Shown by `evals budget` and `evals tiers`.
pub const SUMMARIES_SHARE: f64 = 0.3;

/// Share of the remaining budget for the messages after the last closed segment. Arbitrary.
pub const OPEN_SHARE: f64 = 0.25;

/// The share of the budget up to which the closed segments are shown message by message instead of by summaries, as a
/// fraction. Measured on a conversation of 5,500 tokens in 8,000: with 3/4 it got summaries and most of its messages.
pub const WHOLE: (usize, usize) = (7, 8);

/// Earlier messages that a search may bring into a context, at most (`context.vector_search_limit`). Shown by `evals tiers`.
pub const SEARCHED_MESSAGES: usize = 200;

/// Weight of recency in a message's importance (`context.weight_recency`): low, since recent messages have a share of the
/// budget. Shown by `evals tiers`.
pub const WEIGHT_RECENCY: f64 = 0.05;

/// Weight of the answer to the question (`context.weight_semantic`). Shown by `evals tiers`.
pub const WEIGHT_SEMANTIC: f64 = 1.0;

/// Weight of the entities that a message has in common with the conversation (`context.weight_entity`). Shown by `evals
/// tiers`.
pub const WEIGHT_ENTITY: f64 = 0.05;

/// Weight of the user's mark and of the author's importance (`context.weight_user`). Arbitrary.
pub const WEIGHT_USER: f64 = 0.2;

/// Importance from which a message of any age enters a context (`context.importance_threshold`). Arbitrary.
pub const IMPORTANCE_THRESHOLD: f64 = 0.5;

/// Messages over which recency halves within a conversation. Arbitrary.
pub const HALF_LIFE_MESSAGES: i64 = 200;

/// Messages whose neighbours fill the rest of a budget, best first. Shown by `evals budget`.
pub const WITH_NEIGHBOURS: usize = 60;

/// Snippets that are shown with their neighbours, best first. Arbitrary.
pub const SNIPPETS_WITH_NEIGHBOURS: usize = 5;

/// Factor on the weight of a conversation, which is added to the scores of its messages. Measured by `evals budget`:
/// flat from 0.1 to 0.4.
pub const SESSION_WEIGHT: f64 = 0.2;

/// Messages whose scores make up the weight of their conversation, best first. Arbitrary.
pub const WEIGHING_MESSAGES: usize = 3;

/// Share of a conversation's weight that falls with its age. Arbitrary.
pub const AGEING: f64 = 0.3;

/// Milliseconds over which that share halves: 90 days. Arbitrary.
pub const HALF_LIFE: Millis = 90 * 24 * 3600 * 1000;

/// Share of [`SUMMARIES_SHARE`] for summaries in a context across conversations, where messages of other conversations
/// compete with them. Shown by `evals budget`.
pub const SUMMARIES_ACROSS: f64 = 1.0 / 3.0;

/// Share of the budget that commits get before messages in a context across conversations. Arbitrary.
pub const COMMIT_SHARE: f64 = 0.25;

/// Share of a message's tokens that is shown of the oldest conversations; of the newest, all are. Arbitrary.
pub const OLDEST_DETAIL: f64 = 0.5;

/// Tokens of a message that are shown, at least, however old its conversation is: as many as a hit of a search. Arbitrary.
pub const LEAST_DETAIL: usize = 150;
