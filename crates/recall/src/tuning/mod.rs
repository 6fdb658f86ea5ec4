//! The tuned numbers that this crate or the crates above it read, by subject.

pub mod ephemeral;
pub mod ranking;
pub mod stash;
