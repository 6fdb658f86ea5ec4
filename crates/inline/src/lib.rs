//! Decides how a prompt of a thread contains the caller's files: which are sent, which the assistant has already, and

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//! which don't fit and are searched instead.
//!
//! The rules:
//!
//! 1. The first call orders files by tokens and path, and fills the room for files. What doesn't fit overflows, and from
//!    then on the places of files are fixed.
//! 2. A file keeps its place. It moves only if all inline files together don't leave room for further changes any more,
//!    because files have grown or the window is smaller. Then the largest files move; each move is reported.
//! 3. A new file goes inline if it fits and the places are not fixed yet; otherwise it overflows.
//! 4. An inline file is sent again only if it changed: as a diff against the copy that the assistant has if that is
//!    shorter, otherwise whole. If outdated copies and diffs take more than a third of the window, a new epoch begins, and
//!    all files are sent whole.
//!
//! Everything here is pure. All comparisons are of the redacted text. Reading files and recording turns is done by
//! `consult`.

mod diff;
mod frame;
mod plan;
mod prompt;
#[cfg(test)]
mod tests;
pub mod tuning;

#[cfg(test)]
pub use self::diff::apply;
pub use self::frame::quote;
pub use self::plan::{FileState, Full, Moved, Plan, Room, Seen, Sending, Why, plan};
pub use self::prompt::{INSTRUCTIONS, Said, said, text};
