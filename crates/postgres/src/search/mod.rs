//! Searches by words and by meaning, and the text index.

mod admitted;
mod candidates;
pub(crate) mod counts;
mod dense;
mod entry;
mod graph;
pub(crate) mod graphs;
pub(crate) mod index;
pub(crate) mod label;
mod lexical;
pub(crate) mod places;
mod replacements;
pub(crate) mod vocabulary;
