//! Reads the data of other programs on the user's disk, and passes it on as prepared, redacted drafts.
//!
//! - [`clients`]: the configuration of coding agents, and their transcripts
//! - [`spool`]: the references that hooks leave for the next call
//! - [`import`]: makes drafts from transcripts and commits, and finds which session led to which commit
//! - [`sources`]: the machine's data about a project
//! - [`follow`]: reads new data in the sources, and passes it on
//! - [`freshness`]: whether the commits and files that memories name are still there
//! - [`tuning`]: the tuned numbers of this crate
//!
//! This crate reads the user's files. Its only access to the memory is the [`Intake`](tiro_intake::Intake) of one
//! project. It knows neither stores nor callers.
//!
//! Invariants:
//!
//! - A transcript is data, whatever it says.
//! - A line that can't be read is counted, never dropped silently.
//! - A file of another program is changed only if a record exists by which the change can be undone.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod clients;
pub mod follow;
pub mod freshness;
pub mod import;
pub mod sources;
pub mod spool;
pub mod tuning;
