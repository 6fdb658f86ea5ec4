//! The numbers of contexts: segments, tiers, shares of the budget, importance, and the weights of conversations.

use tiro_base::memory::Millis;

/// A segment with at least this many messages ends at the end of its current turn. Arbitrary. Tiers and summaries
/// change only by whole segments.
pub const SEGMENT: usize = 20;

/// The minimum number of messages of a segment: a summary of fewer messages could hardly leave anything out. Arbitrary.
pub const SHORTEST_SEGMENT: usize = 8;

/// The maximum number of messages of a segment, which ends there even in the middle of a turn. Arbitrary.
pub const LONGEST_SEGMENT: usize = 30;

/// The shortest silence that ends a segment, in milliseconds: half an hour. Arbitrary.
pub const SILENCE: Millis = 30 * 60 * 1000;

/// A message begins a new topic if it has at least this many characteristic words and the segment before it contains
/// none of them. Arbitrary.
pub const NEW_WORDS: usize = 6;

/// The recent tier ends at this distance from the end of the last closed segment, in messages. Shown by `evals tiers`.
pub const RECENT_MESSAGES: usize = 10;

/// The medium tier ends at this distance from the end of the last closed segment, in messages. Shown by `evals tiers`.
pub const MEDIUM_MESSAGES: usize = 50;

/// The long tier ends at this distance from the end of the last closed segment, in messages. Shown by `evals tiers`.
pub const LONG_MESSAGES: usize = 100;

/// The length of a summary of the medium tier, as a share of its messages' tokens. Measured by `evals tiers`: the tiers
/// alone keep 10% of the evidence, and 9% of the tokens. With a search of 4,000 tokens in addition, more than 90% of
/// the evidence is kept.
pub const MEDIUM_SHARE: f64 = 0.30;

/// The length of a summary of the long tier, as a share of its messages' tokens. Measured with [`MEDIUM_SHARE`].
pub const LONG_SHARE: f64 = 0.15;

/// The length of a summary of the ancient tier, as a share of its messages' tokens. Measured with [`MEDIUM_SHARE`].
pub const ANCIENT_SHARE: f64 = 0.05;

/// The smallest budget, in tokens, for which the full shares below apply. For a smaller budget, the shares shrink
/// with the square root of the budget. Shown by `evals budget`.
pub const AMPLE: f64 = 8000.0;

/// The share of the budget for everything that doesn't depend on the question. Shown by `evals budget`.
pub const STABLE_SHARE: f64 = 0.5;

/// The share that key facts may take of the part that doesn't depend on the question. Arbitrary.
pub const FACTS_SHARE: f64 = 0.15;

/// The share of the budget for summaries (`context.summary_ratio`). Shown by `evals budget` and `evals tiers`.
pub const SUMMARIES_SHARE: f64 = 0.3;

/// The share of the remaining budget that the messages after the last closed segment may take. The remaining budget is
/// the budget without the part that doesn't depend on the question. Arbitrary.
pub const OPEN_SHARE: f64 = 0.25;

/// The closed segments are shown message by message, without summaries, if they take at most this fraction of the
/// budget. Measured on a conversation of 5,500 tokens with a budget of 8,000: with 3/4, the context had summaries
/// although it also had most of the messages.
pub const WHOLE: (usize, usize) = (7, 8);

/// The maximum number of earlier messages that a search may add to a context (`context.vector_search_limit`). Shown
/// by `evals tiers`.
pub const SEARCHED_MESSAGES: usize = 200;

/// The weight of recency in a message's importance (`context.weight_recency`). It is low, because recent messages have
/// their own share of the budget. Shown by `evals tiers`.
pub const WEIGHT_RECENCY: f64 = 0.05;

/// The weight of a message's relevance to the question (`context.weight_semantic`). Shown by `evals tiers`.
pub const WEIGHT_SEMANTIC: f64 = 1.0;

/// The weight of the entities that a message has in common with the conversation (`context.weight_entity`). Shown by
/// `evals tiers`.
pub const WEIGHT_ENTITY: f64 = 0.05;

/// The weight of the user's mark, and of the importance that the author of a message gave it (`context.weight_user`).
/// Arbitrary.
pub const WEIGHT_USER: f64 = 0.2;

/// A message of any age enters a context if its importance is at least this value (`context.importance_threshold`).
/// Arbitrary.
pub const IMPORTANCE_THRESHOLD: f64 = 0.5;

/// The number of messages after which recency halves within a conversation. Arbitrary.
pub const HALF_LIFE_MESSAGES: i64 = 200;

/// The number of the best messages whose neighbours are added to fill the rest of a budget. Shown by `evals budget`.
pub const WITH_NEIGHBOURS: usize = 60;

/// The number of the best snippets that are shown with their neighbours. Arbitrary.
pub const SNIPPETS_WITH_NEIGHBOURS: usize = 5;

/// The factor by which the weight of a conversation is multiplied before it is added to the scores of the
/// conversation's messages. Measured by `evals budget`: all values from 0.1 to 0.4 give about the same.
pub const SESSION_WEIGHT: f64 = 0.2;

/// The number of a conversation's best messages whose scores determine the conversation's weight. Arbitrary.
pub const WEIGHING_MESSAGES: usize = 3;

/// The part of a conversation's weight that decays with its age; the rest is constant. Arbitrary.
pub const AGEING: f64 = 0.3;

/// The time after which the share [`AGEING`] of a conversation's weight has halved, in milliseconds: 90 days.
/// Arbitrary.
pub const HALF_LIFE: Millis = 90 * 24 * 3600 * 1000;

/// The part of [`SUMMARIES_SHARE`] that summaries get in a context across conversations, where they compete with
/// messages of other conversations. Measured by `evals budget`: with 0.1 instead of a third, 4,000 tokens contain 1.5
/// percentage points more of the user's messages that are evidence.
pub const SUMMARIES_ACROSS: f64 = 0.1;

/// A context across conversations leaves out what scores below this share of the best score, even if there is room.
/// Measured by `evals budget` on one conversation of two people, with a budget of 4,000 tokens: without this bound a
/// context has 3,970 tokens, with 0.4 half of the contexts have fewer than 1,560, with 0.5 820, and the contexts contain
/// 91% and 89% of the evidence.
pub const LEAST_RELEVANCE: f64 = 0.35;

/// The value that replaces [`LEAST_RELEVANCE`] if it is sure that the question means one of the best hits. Measured by
/// `evals week` on a repository with sessions of an agent: contexts with this value have 1,590 tokens instead of 2,290,
/// and contain the same answers.
pub const SURE_RELEVANCE: f64 = 0.65;

/// If one of the best hits contains more than this share of the question's words, weighted by their rarity, the
/// question probably means this hit, and surely if it contains all of them. Arbitrary.
pub const SURE_SHARE: f64 = 0.75;

/// Such a hit scores at least this share of the best score. Arbitrary.
pub const SURE_SCORE: f64 = 0.65;

/// The fewest words of a question that can name what it means. Arbitrary.
pub const SURE_WORDS: usize = 5;

/// The maximum number of tokens that are shown of the last reply to a request that the question means. Arbitrary: most
/// replies that conclude something are shorter.
pub const REPLY: usize = 600;

/// A long message that scores at least this share of the best score is shown whole, if there is room. Arbitrary.
pub const SHOWN_WHOLE: f64 = 0.8;

/// A message with more tokens is never shown whole across conversations. Arbitrary: it is mostly code or a pasted
/// document, and would take the whole budget.
pub const LONGEST_WHOLE: i64 = 1500;

/// The user's standing instructions and preferences may take at most this share of the budget of a context across
/// conversations. Arbitrary. In chats with an assistant, all of them together take 130 to 350 tokens.
pub const STANDING_SHARE: f64 = 0.15;

/// Commits may take at most this share of the tokens of a context across conversations, and of each beginning of the
/// context, as long as there are messages. Arbitrary.
pub const COMMIT_SHARE: f64 = 0.25;

/// Good commits take this share of the tokens of a context across conversations, and of each beginning of the context,
/// even if messages have better scores. Arbitrary.
pub const LEAST_COMMIT_SHARE: f64 = 0.1;

/// A commit is good if its score is at least this share of the best score of all hits. Arbitrary.
pub const GOOD_COMMIT: f64 = 0.6;

/// A commit is left out of a context if its score is below this share of the best score of all hits. In contexts made
/// from the histories of hyperfine and click, most commits with lower scores had nothing to do with the question.
pub const LEAST_COMMIT: f64 = 0.5;

/// The amount by which the score of a hit is lowered for each token that the hit takes in a context, so that a context
/// shows many short messages and not a few long ones. Measured by `evals budget` on chats of a user with an assistant:
/// with 0, 4,000 tokens contain 72% of the user's messages that are evidence, with 0.001 78%, with 0.0015 79%, with
/// 0.002 79%. Conversations of two people keep the same evidence with 0 and with 0.001.
pub const LENGTH: f64 = 0.0015;

/// A message with at most this many tokens is shown whole in a context, unless it is a long answer. Measured with
/// [`LENGTH`]: with 150, 300, 400 and 500, 4,000 tokens contain 72%, 79%, 80% and 81% of the user's messages that are
/// evidence.
pub const WHOLE_MESSAGE: usize = 400;

/// The maximum number of tokens that a context shows of a longer message before other messages had their turn: as many
/// as a chunk has.
pub const PASSAGE: usize = 150;

/// The maximum number of tokens that a context shows of an assistant's long answer before other messages had their
/// turn. Measured with [`LENGTH`]: with 100 instead of 150, contexts of 8,000 tokens contain one percentage point more
/// of the user's messages that are evidence.
pub const ANSWER_PASSAGE: usize = 100;

/// The value that replaces [`WHOLE_MESSAGE`] if the question asks for an order of events. Measured with [`LENGTH`]:
/// with 300, a context of 4,000 tokens names more of the wanted events than with 400.
pub const WHOLE_EVENT: usize = 300;

/// The maximum number of tokens that are shown of a longer message if the question asks for an order of events, because
/// many short lines answer such a question. Measured with [`LENGTH`]: a context of 4,000 tokens names 70% of the wanted
/// events. With 150, it names 62%.
pub const EVENT: usize = 60;

/// The first summary in a context across conversations comes after at least this many tokens. Measured by `evals
/// budget`: with a smaller number, a summary takes the room of messages that answer the question.
pub const SUMMARIES_FROM: f64 = 1000.0;

/// The rest of a budget is filled with the beginning of the next passage if at least this many tokens are left.
/// Arbitrary: a short sentence and its frame.
pub const LEAST_PASSAGE: usize = 24;
