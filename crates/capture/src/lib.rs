//! Reads what other programs leave on the user's disk, and makes drafts of memories from it.
//!
//! - [`clients`]: the configuration of coding agents, and their transcripts
//! - [`spool`]: what hooks leave for the next call
//! - [`import`]: transcripts and commits as drafts, and which session led to which commit
//! - [`freshness`]: whether the commits and files that memories name are still there
//! - [`tuning`]: the numbers of these
//!
//! This crate never writes a memory, and knows neither projects nor callers.
//!
//! Invariants: a transcript is data, whatever it says; a line that can't be read is counted, never dropped silently; a
//! file of another program is changed only with a record by which the change is undone.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod clients;
pub mod freshness;
pub mod import;
pub mod spool;
pub mod tuning;
