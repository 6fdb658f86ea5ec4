//! Candidates of a search, by words and by meaning.

pub(super) mod dense;
pub(super) mod lexical;
pub(super) mod vocabulary;
