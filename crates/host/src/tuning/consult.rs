//! The numbers of consulting: how the window of an assistant is shared.

/// The share of the window that is kept free for the answer, if the provider sets no `max_output`. Arbitrary: 25,000 of
/// 200,000 tokens.
pub const ANSWER_SHARE: f64 = 1.0 / 8.0;

/// The share of the window that is kept free for later turns when files get their places. Arbitrary.
pub const GROWTH_SHARE: f64 = 1.0 / 8.0;

/// The share of the tokens of earlier turns that their summary keeps once they don't fit any more. Arbitrary.
pub const SHORTENED_SHARE: f64 = 0.1;

/// The fewest tokens that such a summary may take.
pub const SHORTENED_TOKENS: usize = 400;

/// The most tokens for what other assistants said in the session. Arbitrary: a page.
pub const OTHERS_TOKENS: usize = 800;

/// How many exchanges of other assistants are shown. Arbitrary.
pub const OTHERS: usize = 4;

/// The share of the window that results of functions may take in a turn. Arbitrary.
pub const RESULTS_SHARE: f64 = 1.0 / 8.0;

/// The window of a model that neither the catalogue nor the configuration knows, in tokens. Arbitrary: most models have
/// more.
pub const UNKNOWN_WINDOW: usize = 32_768;

/// How many tokens of a model's own tokenizer stand for one o200k token, at most. Services that use o200k count exactly.
/// The others are upper estimates for code, until a model reports its own count. Arbitrary.
pub const TOKENS_OF_OTHERS: f64 = 1.35;

/// The most tokens of the memory that stands for an exchange. Arbitrary: as long as a standard summary.
pub const EXCHANGE_TOKENS: usize = 200;
