//! Passes the content of transcripts and commits to the memory of a project, each once, and follows new ones.
//!
//! This module finds and reads the sources, and passes on the drafts that [`import`](crate::import), which is pure, makes
//! from them. Hooks
//! leave references to transcripts and commits, and each call follows these references before it answers
//! ([`catch_up`]). An import reads everything at once ([`commits`], [`sessions`]). Calls and imports both store how far
//! they came ([`cursor`], [`history`]). Commits are then linked to the sessions that made them ([`link`]).

pub mod catch_up;
pub mod commits;
pub mod cursor;
pub mod graph;
pub mod history;
mod in_time;
pub mod link;
mod pauses;
pub mod pointer;
pub mod reading;
pub mod sessions;
mod share;
