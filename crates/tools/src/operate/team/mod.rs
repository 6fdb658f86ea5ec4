//! The users of a server: their keys and teams, the projects that are shared with the teams, and the record of calls.

pub mod audit;
pub mod shares;
pub mod teams;
pub mod users;
