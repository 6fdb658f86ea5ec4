//! The exchange of memories with a team's server, for the command line.

pub mod connect;
pub mod sync;
