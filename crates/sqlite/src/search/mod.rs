//! Candidates of a search, by words and by meaning.

pub(super) mod admitted;
mod candidates;
pub(super) mod dense;
pub(super) mod lexical;
pub(super) mod stems;
pub(super) mod vector_cache;
pub(super) mod vocabulary;
