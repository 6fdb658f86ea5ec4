//! Searches by words and by meaning, and the text index.

mod candidates;
pub(crate) mod counts;
mod dense;
mod entry;
pub(crate) mod index;
mod lexical;
pub(crate) mod places;
mod replacements;
pub(crate) mod vocabulary;
