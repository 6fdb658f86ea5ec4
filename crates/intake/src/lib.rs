//! What passes between the side that has a user's files and the side that has the memory.
//!
//! - [`Intake`] and [`ReadIntake`]: what the side with the files gives and asks
//! - [`Capture`]: what the side with the memory asks about the files
//! - [`prepare`]: makes of a draft what may pass: redacted, with its id, divided and counted
//!
//! Both sides are in one process today. Nothing that passes is a file, a repository or a store, so that they can be on
//! two machines.
//!
//! This crate opens nothing and keeps nothing.
//!
//! Invariants: every text that passes to the memory is redacted before; each intake is of one project, so no method takes
//! a scope.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

mod capture;
mod intake;
pub mod prepare;
mod session;

pub use self::capture::{Capture, Freshness, Gone, Standing, Subject};
pub use self::intake::{Intake, Prompt, ReadIntake};
pub use self::session::session_id;
