//! Stores what transcripts and commits say, once, and follows the new ones.
//!
//! What is read becomes drafts in `import`, which is pure; here the sources are found and read, and the drafts stored.
//! Hooks leave references to transcripts and commits, and each call follows these references before it answers
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
