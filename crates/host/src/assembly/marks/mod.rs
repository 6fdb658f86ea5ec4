//! Marks the passages of a context that no longer hold, or of which nobody knows whether they still hold.

pub mod stale;
pub mod superseded;
