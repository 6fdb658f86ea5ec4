//! Subcommands for a server that several users share: keys, teams, shared projects and the record of calls.

pub mod audit;
pub mod share;
pub mod teams;
pub mod user;
