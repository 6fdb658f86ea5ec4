//! The numbers that were tuned: weights, shares, half-lives and thresholds, by subject.
//!
//! Each number is in the crate that reads it. The numbers here are read by the program itself. They determine how an
//! assistant's window is divided in a consultation, and which memories are forgotten by a query. docs/tuning.md lists
//! the numbers of all crates.
//!
//! A number belongs to the tuned numbers if another value would change which memories are found, shown or kept, or how
//! long users and processes wait for this. Each doc comment states the number's unit and the basis of the number:
//!
//! - *measured*: values were compared, and the figures are given;
//! - *shown by* a command: that command shows what another value would change, but no comparison is on record;
//! - *arbitrary*: nothing measures it.
//!
//! To change a number, run its command before and after the change, and report both figures. A number that follows from
//! others is computed from them.
//!
//! The sizes of the transactions of forgetting (`sqlite/tuning.rs`) were chosen after a single measurement by hand,
//! with a conversation of 20,000 messages. Forgetting the conversation in a single transaction blocked other writers
//! for some seconds. Purging it in a single transaction blocked them for 16 to 30 s. No command repeats these
//! measurements. `tests/it/forgets.rs` tests that other processes can write between the transactions.
//!
//! Limits that protect against large or hostile input, deadlines, and batch sizes are not here, but next to the code
//! that enforces them. Defaults that users can change are options (`config/options.rs`). If the default of an option
//! was tuned, the option takes it from here.
//!
//! The commands:
//!
//! | short | command | measures |
//! |---|---|---|
//! | `evals retrieval` | `cargo run --release -p evals -- retrieval --suite DIR --out RUN.jsonl` | evidence among the first 10 hits, on LoCoMo |
//! | `evals commits` | `cargo run --release -p evals -- commits --repo bat --suite DIR --out RUN.jsonl` | commits for lines of a changelog, first 10 |
//! | `evals budget` | `cargo run --release -p evals -- budget --suite DIR --budgets 1000,2000,4000,8000` | evidence kept by a context across conversations |
//! | `evals tiers` | `cargo run --release -p evals -- tiers --suite DIR --every 4` | tokens saved and evidence kept within one long conversation |
//! | `evals summaries` | `cargo run --release -p evals -- summaries --suite DIR` | words of answers kept by summaries |
//! | `evals gate` | `cargo run --release -p evals -- gate --suite DIR` | true and false summaries by a model that are accepted |
//! | `evals join` | `cargo run --release -p evals -- join --works 100 --seed 601`; with `--repo DIR` for the lines of real commits | precision and recall of the sessions linked to commits |
//! | `evals latency` | `cargo run --release -p evals -- latency --docs 100000` | time of searches and contexts |

use tiro_base::memory::Millis;

/// The share of the window that is kept free for the answer, if the provider sets no `max_output`. Arbitrary: 25,000 of
/// 200,000 tokens.
pub const ANSWER_SHARE: f64 = 1.0 / 8.0;

/// The share of the window that is kept free for later turns when files get their places. Arbitrary.
pub const GROWTH_SHARE: f64 = 1.0 / 8.0;

/// The length of the summary that replaces earlier turns when they no longer fit, as a share of these turns' tokens.
/// Arbitrary.
pub const SHORTENED_SHARE: f64 = 0.1;

/// The minimum number of tokens of the summary that replaces earlier turns. Arbitrary.
pub const SHORTENED_TOKENS: usize = 400;

/// The maximum number of tokens for statements of other assistants in the session. Arbitrary: a page.
pub const OTHERS_TOKENS: usize = 800;

/// How many exchanges with other assistants are shown. Arbitrary.
pub const OTHERS: usize = 4;

/// The share of the window that the results of functions may take in a turn. Arbitrary.
pub const RESULTS_SHARE: f64 = 1.0 / 8.0;

/// The window, in tokens, of a model that neither the catalogue nor the configuration knows. Arbitrary: most models
/// have a larger window.
pub const UNKNOWN_WINDOW: usize = 32_768;

/// The largest number of tokens of a model's own tokenizer that correspond to one o200k token. Services that use o200k
/// count exactly. For other services, this estimate is meant to be high enough even for code. It is used until the
/// model reports its own count. Arbitrary.
pub const TOKENS_OF_OTHERS: f64 = 1.35;

/// The maximum number of tokens of the memory that represents an exchange. Arbitrary: as long as a standard summary.
pub const EXCHANGE_TOKENS: usize = 200;

/// The time for which the queue remembers a finished entry, and for which a summary is kept after a newer version
/// replaced it, in milliseconds: a week. Arbitrary.
pub const KEPT: Millis = 7 * 24 * 60 * 60 * 1000;

/// If memories are forgotten by a query, each hit is forgotten whose score is at least this share of the best hit's
/// score. Arbitrary.
pub const MATCHING_SHARE: f64 = 0.5;

/// If memories are forgotten by a query, only hits are forgotten that contain at least this share of the query's words.
/// Similarity alone does not prove what the user means, because a search returns the most similar memory even if none
/// fits. Arbitrary.
pub const NAMED_SHARE: f64 = 0.5;
