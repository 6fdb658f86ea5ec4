//! Stores memories and finds them again.
//!
//! - [`remember`]: the write path, which turns a draft into data that a store accepts
//! - [`store_intake`]: the interface to a store for the side with a user's files
//! - [`retrieve`]: the read path, from a question to ranked hits
//! - [`stash`]: order and merging of stashed segments
//! - [`ephemeral`]: an index of the texts of one call
//! - [`tuning`]: the tuned numbers of this crate
//!
//! This crate uses stores and encoders. It knows nothing of processes, projects and callers.
//!
//! Invariants:
//!
//! - A text is redacted before any other step.
//! - Scope and filter are applied before the best candidates are chosen.
//! - Ties are broken by id.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod ephemeral;
pub mod remember;
pub mod retrieve;
pub mod stash;
pub mod store_intake;
pub mod tuning;
