//! Passes the content of transcripts and commits to the memory of a project, each piece once, and follows new content.
//!
//! This module finds and reads the sources. The drafts are made by [`import`](crate::import), which is pure, and passed
//! on by this module. Hooks leave references to transcripts and commits, and each call follows these references before
//! it answers ([`catch_up`]). An import reads everything at once ([`commits`], [`sessions`]). Calls and imports both
//! store their progress ([`cursor`], [`history`]). Commits are then linked to the sessions that made them ([`link`]).

pub mod catch_up;
pub mod commits;
pub mod cursor;
pub mod documents;
pub mod graph;
pub mod history;
mod in_time;
pub mod line_origins;
pub mod link;
mod pauses;
pub mod pointer;
pub mod reading;
pub mod sessions;
mod share;
