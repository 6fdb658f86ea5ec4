//! The pure part of the stash: ordering the results of a search, and merging segments.

pub mod merge;
pub mod profile;
