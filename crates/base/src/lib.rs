//! What every other crate of Tiro speaks of.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! - what is stored: [`memory`], [`mod@thread`], [`filter`], and whose it is: [`scope`]
//! - what is said when something fails: [`error`]; retrieved text is marked as data: [`envelope`]
//! - values: [`times`], [`money`], [`budget`] (tokens), [`humanize`] (numbers in words)
//! - files and folders: [`mod@file`], and those that only this user can access: [`private`]
//! - bytes become text: [`encoding`]; work on several threads: [`parallel`]
//!
//! It never opens a store, a repository, a connection or a configuration, and knows no rule of redaction: the program says
//! what removes secrets from errors ([`error::redact_by`]).
//!
//! Invariants: an error shows only Tiro's own words, on one line; an id depends only on what it names; `now` is an argument.

pub mod budget;
pub mod encoding;
pub mod envelope;
pub mod error;
pub mod file;
pub mod filter;
pub mod humanize;
pub mod memory;
pub mod money;
pub mod parallel;
pub mod private;
pub mod scope;
pub mod thread;
pub mod times;
