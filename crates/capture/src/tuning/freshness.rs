//! How long it may take to tell whether what a memory names is still there.

use std::time::Duration;

/// How long one answer may read git to find out which commits are reachable, if that is not known yet. This is long
/// enough for about 40,000 commits; the next answer continues. Measured by the ignored test
/// `a_page_of_hits_takes_milliseconds`.
pub const FRESHNESS_PATIENCE: Duration = Duration::from_millis(400);
