//! Subcommands that change the project's memory, or copy it.

pub mod add;
pub mod backup;
pub mod edit;
pub mod export;
pub mod forget;
pub mod mark;
pub mod stash;
pub mod summarize;
