//! Imports transcripts and commits, and follows the new ones.
//!
//! Hooks leave references to transcripts and commits, and each call follows these references before it answers
//! ([`catch_up`]). An import reads everything at once ([`commits`], [`sessions`]). Calls and imports both store how far
//! they came ([`cursor`], [`history`]). Commits are then linked to the sessions that made them ([`link`]).

pub(crate) mod catch_up;
pub(crate) mod commits;
pub(crate) mod cursor;
pub(crate) mod graph;
pub(crate) mod history;
mod in_time;
pub(crate) mod link;
mod pauses;
pub(crate) mod pointer;
pub(crate) mod reading;
pub(crate) mod sessions;
mod share;
