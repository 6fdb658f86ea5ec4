//! Links commits to the sessions that led to them, each with a confidence. These functions are pure.
//!
//! A session is linked only if there is evidence: one of its calls made the commit, or the commit contains lines that
//! the session wrote. A session's change to a file counts fully for the next commit that changes the file. For later
//! commits, a line of the change counts only if this next commit left the line out. Lines that were reverted before the
//! commit don't count. It is no evidence that a session was active at the time, or that it read the file. A commit by
//! another author is linked to a session only if a call of this session made it, or if the session ran on another
//! machine, whose user is not known.
//!
//! A line is no evidence if many sessions wrote it or the file contains it more than once. If several sessions wrote a
//! line of the commit, the line counts for the session with the most lines in the commit.
//!
//! The confidence is between 0 and 1. The constants in [`tuning`](crate::tuning) define the confidence of each kind of
//! evidence. If the confidence is below [`LEAST_CONFIDENCE`](tiro_store::tuning::LEAST_CONFIDENCE), no link is made.

mod evidence;
mod facts;
mod replaced;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, SECOND};
pub use facts::{Call, Change, ChangedLines, Commit, Here};
pub use replaced::{Replaced, Seen, replaced, same_change};
