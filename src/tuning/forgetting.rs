//! Forgetting: how long what is no longer needed is kept, and how long other writers wait while memories are removed.

use std::time::Duration;

use crate::memory::Millis;

/// Milliseconds that the queue remembers finished entries, and that a summary outlives its next version: a week.
/// Arbitrary.
pub const KEPT: Millis = 7 * 24 * 60 * 60 * 1000;

/// Memories that one transaction forgets or brings back: a quarter of a second. Measured on conversations of 20,000
/// messages, which took some seconds at once, by `evals limits`.
pub const FORGOTTEN_AT_ONCE: usize = 5_000;

/// Time that other writers get between two transactions, at least and at most: a waiting process tries every tenth of a
/// second. Measured with [`FORGOTTEN_AT_ONCE`].
pub const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// Memories that one transaction of a purge removes: some tens of milliseconds. Measured with [`FORGOTTEN_AT_ONCE`].
pub const REMOVED_AT_ONCE: usize = 250;

/// Pages of the text index that one transaction of a purge merges: some tens of milliseconds. Measured with
/// [`FORGOTTEN_AT_ONCE`].
pub const MERGED_AT_ONCE: i64 = 64;

/// Percent of removed rows from which FTS5 merges a part of the text index by itself
/// (<https://sqlite.org/fts5.html#the_deletemerge_configuration_option>). Its default.
pub const DELETE_MERGE: i64 = 10;
