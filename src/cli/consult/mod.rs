//! The subcommands about assistants.

pub mod chat;
