//! Numbers that were tuned, and are read in this crate or by those above it, by subject.

pub mod freshness;
pub mod links;
