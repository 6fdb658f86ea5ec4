//! Subcommands that read and change the project's memory.

pub mod add;
pub mod backup;
pub mod context;
pub mod export;
pub mod forget;
pub mod mark;
pub mod search;
pub mod sessions;
pub mod show;
pub mod stash;
pub mod summarize;
pub mod why;
