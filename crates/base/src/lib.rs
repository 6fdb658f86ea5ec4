//! The types and functions that every other crate of Tiro uses.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! - what is stored: [`memory`], [`mod@thread`]; who may access it: [`scope`]; which memories a search finds:
//!   [`filter`]
//! - errors: [`error`]; marks around retrieved text that show that it is data: [`envelope`]
//! - values: [`times`], [`money`], [`budget`] (tokens), [`humanize`] (numbers in words)
//! - files and folders: [`mod@file`]; files and folders that only this user can access: [`private`]
//! - bytes that become text: [`encoding`]; work on several threads: [`parallel`]
//!
//! This crate never opens a store, a repository, a connection or a configuration. The crate has no rules of redaction:
//! the program sets the function that removes secrets from errors ([`error::redact_by`]).
//!
//! Invariants: an error shows only Tiro's own words, on one line; an id depends only on what it names; the present time
//! (`now`) is always an argument.

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
