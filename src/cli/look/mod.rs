//! Subcommands that read the project's memory.

pub mod context;
pub mod find;
pub mod list;
pub mod log;
pub mod search;
pub mod sessions;
pub mod show;
pub mod why;
