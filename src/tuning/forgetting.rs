//! Forgetting: how long finished and replaced rows are kept, and how long other writers wait while memories are
//! removed.
//!
//! The sizes of transactions were measured once, by hand, on a conversation of 20,000 messages: forgotten in one transaction
//! it blocked writers for some seconds, purged for 16 to 30 s. No command repeats that; `tests/it/forgets.rs` tests that
//! other processes write in between.

use std::time::Duration;

use crate::memory::Millis;

/// Milliseconds that the queue remembers finished entries, and that a summary outlives its next version: a week.
/// Arbitrary.
pub const KEPT: Millis = 7 * 24 * 60 * 60 * 1000;

/// A query forgets a hit if its score is at least this share of the best hit's score. Arbitrary.
pub const MATCHING_SHARE: f64 = 0.5;

/// Memories that one transaction forgets or restores: a quarter of a second. Measured by hand.
pub const FORGOTTEN_AT_ONCE: usize = 5_000;

/// Time that other writers get between two transactions, at least and at most: a waiting process tries every tenth of a
/// second. Arbitrary.
pub const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// Memories that one transaction of a purge removes: some tens of milliseconds. Measured by hand.
pub const REMOVED_AT_ONCE: usize = 250;

/// Pages of the text index that one transaction of a purge merges: some tens of milliseconds. Measured by hand.
pub const MERGED_AT_ONCE: i64 = 64;

/// Percent of removed rows from which FTS5 merges a part of the text index by itself
/// (<https://sqlite.org/fts5.html#the_deletemerge_configuration_option>). Its default.
pub const DELETE_MERGE: i64 = 10;
