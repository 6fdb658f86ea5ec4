//! The numbers of forgetting: how long finished and replaced rows are kept, and how long other writers wait while
//! memories are removed.
//!
//! The sizes of transactions were chosen after measuring once, by hand, a conversation of 20,000 messages.
//! Forgetting the conversation in a single transaction blocked other writers for some seconds; purging it in a
//! single transaction blocked them for 16 to 30 s. No command repeats these measurements; `tests/it/forgets.rs`
//! tests that other processes can write between the transactions.

use tiro_base::memory::Millis;

/// How long the queue remembers a finished entry, and how long a summary is kept after a newer version replaced it, in
/// milliseconds: a week. Arbitrary.
pub const KEPT: Millis = 7 * 24 * 60 * 60 * 1000;

/// Forgetting by query forgets each hit whose score is at least this share of the best hit's score. Arbitrary.
pub const MATCHING_SHARE: f64 = 0.5;

/// Forgetting by query forgets only hits with at least this share of the query's words: similarity alone is no proof of
/// what the user means, and a search returns the most similar memory even if none fits. Arbitrary.
pub const NAMED_SHARE: f64 = 0.5;
