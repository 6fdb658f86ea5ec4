//! The tuned numbers that this crate or the crates above it read, by subject.

pub mod contexts;
pub mod gate;
pub mod summaries;
