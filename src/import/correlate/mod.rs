//! Links commits to the sessions that led to them, with a confidence. Pure.
//!
//! Only evidence counts: a call of the session made the commit, or the commit contains lines that the session wrote. A
//! change of a file counts fully for the first later commit of that file; for further commits only its lines count that
//! the first one left out. Lines that were reverted before the commit don't count. That a session was active at the
//! time or read the file is no evidence. A commit of another author belongs to no session here, unless a call of one
//! made it.
//!
//! A line that many sessions wrote, or that the file contains more than once, is no evidence. If several sessions wrote
//! a line of the commit, it counts for the one with most lines in the commit.
//!
//! The confidence is between 0 and 1. Its values are in [`tuning::links`](crate::tuning::links); below
//! [`LEAST_CONFIDENCE`](crate::tuning::links::LEAST_CONFIDENCE) there is no link.

mod evidence;
mod facts;
mod replaced;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, SECOND};
pub use facts::{Call, Change, ChangedLines, Commit, Here};
pub use replaced::{Replaced, Seen, replaced, same_change};
