//! The interface between the side that has a user's files and the side that has the memory.
//!
//! - [`Intake`] and [`ReadIntake`]: calls of the side with the files to the memory
//! - [`Capture`]: calls of the side with the memory to the files
//! - [`prepare`]: prepares a draft for the memory: redacts it, gives it an id, divides it into chunks, and counts its
//!   tokens
//!
//! Both sides are in one process today. No file, repository or store passes through the interface, so the two sides
//! could be on two machines.
//!
//! This crate opens no files and keeps no state.
//!
//! Invariants: every text is redacted before it passes to the memory; each intake belongs to one project, so no method
//! takes a scope.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

mod capture;
mod intake;
mod lines;
pub mod prepare;
mod session;

pub use self::capture::{Capture, Freshness, Gone, Standing, Subject};
pub use self::intake::{Intake, Prompt, ReadIntake};
pub use self::lines::{LineOrigin, LineOrigins, LineRun, LinesAsked, OriginCommit};
pub use self::session::session_id;
