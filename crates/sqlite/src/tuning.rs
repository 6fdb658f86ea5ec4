//! The tuned numbers of this crate.

use std::time::Duration;

/// FTS5 merges a part of the text index by itself as soon as this percentage of the part's rows is removed
/// (<https://sqlite.org/fts5.html#the_deletemerge_configuration_option>). The default of FTS5.
pub const DELETE_MERGE: i64 = 10;

/// The maximum number of pages of the text index that one transaction of a purge merges, which takes some tens of
/// milliseconds. Measured by hand.
pub const MERGED_AT_ONCE: i64 = 64;

/// The maximum number of memories that one transaction of a purge removes, which takes some tens of milliseconds.
/// Measured by hand.
pub const REMOVED_AT_ONCE: usize = 250;

/// The maximum number of memories that one transaction forgets or restores, which takes a quarter of a second.
/// Measured by hand.
pub const FORGOTTEN_AT_ONCE: usize = 5_000;

/// The shortest and the longest pause between two transactions; during a pause, other writers get their turn. The
/// longest pause is enough because a waiting process tries again every tenth of a second. Arbitrary.
pub const TURN: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
