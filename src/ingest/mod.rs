//! Follows transcripts that clients write, and commits.
//!
//! Hooks leave references; a call follows them before it answers ([`catch_up`]), an import follows all at once
//! ([`commits`], [`sessions`]). Each stores how far it came ([`cursor`], [`history`]). Commits are then linked to the
//! sessions that made them ([`link`]).

pub(crate) mod catch_up;
pub(crate) mod commits;
pub(crate) mod cursor;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod imported;
mod in_time;
pub(crate) mod link;
mod pauses;
pub(crate) mod pointer;
pub(crate) mod reading;
pub(crate) mod sessions;
mod share;
