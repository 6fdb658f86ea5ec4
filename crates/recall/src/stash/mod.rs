//! The stash, as far as it is pure: the order of what a search of it finds, and the merging of segments.

pub mod merge;
pub mod profile;
