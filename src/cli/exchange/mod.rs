//! Subcommands that exchange memories with a team's server.

pub mod connect;
pub mod sync;
