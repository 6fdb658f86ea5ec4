//! Reads the sources and the summary: words, numbers, negations, and which passages support which sentence.

pub(super) mod functions;
pub(super) mod index;
pub(super) mod negatives;
pub(super) mod quantities;
pub(super) mod statements;
pub(super) mod tokens;
