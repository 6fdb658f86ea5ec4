//! The numbers of forgetting: how long finished and replaced rows are kept, and how long other writers wait while
//! memories are removed.
//!
//! The sizes of transactions were chosen after measuring once, by hand, a conversation of 20,000 messages.
//! Forgetting the conversation in a single transaction blocked other writers for some seconds; purging it in a
//! single transaction blocked them for 16 to 30 s. No command repeats these measurements; `tests/it/forgets.rs`
//! tests that other processes can write between the transactions.

use std::time::Duration;

use crate::memory::Millis;

/// How long the queue remembers a finished entry, and how long a summary is kept after a newer version replaced it, in
/// milliseconds: a week. Arbitrary.
pub const KEPT: Millis = 7 * 24 * 60 * 60 * 1000;

/// How long after its expiry a text of the stash is removed, in milliseconds: a week. Until then only the stash hides it, so a
/// clock that was wrong for some days removes nothing. Arbitrary.
pub const GRACE: Millis = 7 * 24 * 60 * 60 * 1000;

/// How much later than everything in a store the clock may be, in milliseconds, so that what is old is removed: 30 days. If
/// it is later, the clock may have jumped. Arbitrary: a store that was not used for a month removes nothing until something is
/// stored.
pub const TRUSTED: Millis = 30 * 24 * 60 * 60 * 1000;

/// Forgetting by query forgets each hit whose score is at least this share of the best hit's score. Arbitrary.
pub const MATCHING_SHARE: f64 = 0.5;

/// Forgetting by query forgets only hits with at least this share of the query's words: similarity alone is no proof of
/// what the user means, and a search returns the most similar memory even if none fits. Arbitrary.
pub const NAMED_SHARE: f64 = 0.5;

/// The maximum number of memories that one transaction forgets or restores, which takes a quarter of a second.
/// Measured by hand.
pub const FORGOTTEN_AT_ONCE: usize = 5_000;

/// The shortest and the longest pause between two transactions, in which other writers get their turn. The longest
/// suffices because a waiting process tries again every tenth of a second. Arbitrary.
pub const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// The maximum number of memories that one transaction of a purge removes, which takes some tens of milliseconds.
/// Measured by hand.
pub const REMOVED_AT_ONCE: usize = 250;

/// The maximum number of pages of the text index that one transaction of a purge merges, which takes some tens of
/// milliseconds. Measured by hand.
pub const MERGED_AT_ONCE: i64 = 64;

/// FTS5 merges a part of the text index by itself once this percentage of the part's rows is removed
/// (<https://sqlite.org/fts5.html#the_deletemerge_configuration_option>). The default of FTS5.
pub const DELETE_MERGE: i64 = 10;
