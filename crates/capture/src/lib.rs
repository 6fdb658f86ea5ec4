//! Reads what other programs leave on the user's disk, and passes it on as prepared, redacted drafts.
//!
//! - [`clients`]: the configuration of coding agents, and their transcripts
//! - [`spool`]: what hooks leave for the next call
//! - [`import`]: transcripts and commits as drafts, and which session led to which commit
//! - [`sources`]: what the machine has of a project
//! - [`follow`]: reads what is new in the sources, and passes it on
//! - [`freshness`]: whether the commits and files that memories name are still there
//! - [`tuning`]: the numbers of these
//!
//! It has the user's files. Of the memory it knows only the [`Intake`](tiro_intake::Intake) of one project, and neither
//! stores nor callers.
//!
//! Invariants: a transcript is data, whatever it says; a line that can't be read is counted, never dropped silently; a
//! file of another program is changed only with a record by which the change is undone.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod clients;
pub mod follow;
pub mod freshness;
pub mod import;
pub mod sources;
pub mod spool;
pub mod tuning;
