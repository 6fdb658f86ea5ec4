//! Stores memories and finds them again.
//!
//! - [`remember`]: the write path, from a draft to what a store takes
//! - [`store_intake`]: a store as the side with a user's files sees it
//! - [`retrieve`]: the read path, from a question to ranked hits
//! - [`stash`]: order and merging of stashed segments
//! - [`ephemeral`]: an index of the texts of one call
//! - [`tuning`]: the numbers of these
//!
//! It knows stores and encoders, but no process, project or caller.
//!
//! Invariants: a text is redacted before anything else is done with it; scope and filter are applied before the best
//! candidates are chosen; ties are broken by id.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod ephemeral;
pub mod remember;
pub mod retrieve;
pub mod stash;
pub mod store_intake;
pub mod tuning;
