//! Numbers that were tuned, and are read in this crate or by those above it, by subject.

pub mod ephemeral;
pub mod ranking;
pub mod stash;
