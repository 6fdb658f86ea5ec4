//! Reads the sources and the summary: words, numbers, negations, and the passages that support each sentence.

pub(super) mod functions;
pub(super) mod index;
pub(super) mod negatives;
pub(super) mod quantities;
pub(super) mod statements;
pub(super) mod tokens;
