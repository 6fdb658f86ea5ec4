//! Functions on texts: counting tokens, finding words, cutting into chunks, and dividing into sentences.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! - [`tokens`]: the exact number of tokens of a text
//! - [`words`]: the forms of words in the text index, and the words that a query looks for
//! - [`chunk`]: the pieces of a text that are embedded, and the text that is indexed for each piece
//! - [`blocks`]: the prose, lists, code and sentences of a message
//!
//! This crate never opens a file, a store or a connection: every function takes values and returns values.
//!
//! Invariants: the same text always gives the same result; time is linear in the length of any text.

pub mod blocks;
pub mod chunk;
pub mod tokens;
pub mod tuning;
pub mod words;
