//! Reads texts, whatever they are about.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! - [`tokens`]: how many tokens a text has, exactly
//! - [`words`]: the forms of words in the text index, and what a query looks for
//! - [`chunk`]: the pieces that are embedded, and the text that is indexed for each
//! - [`blocks`]: a message as prose, lists, code and sentences
//!
//! This crate never opens a file, a store or a connection: every function takes values and returns values.
//!
//! Invariants: the same text gives the same bytes; time is linear in the length of any text.

pub mod blocks;
pub mod chunk;
pub mod tokens;
pub mod tuning;
pub mod words;
