//! Decides how a prompt of a thread contains the caller's files.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//! Each file is sent, or the assistant already has it, or it doesn't fit and is searched instead.
//!
//! The rules:
//!
//! 1. The first call orders files by tokens and path, and fills the room for files. If some files don't fit, they
//!    overflow, and from then on the places of files are fixed.
//! 2. A file keeps its place. Files move only if all inline files together no longer leave room for further changes,
//!    because files have grown or the window is smaller. Then the largest files move. Each move is reported.
//! 3. A new file goes inline if it fits and the places are not fixed yet; otherwise it overflows.
//! 4. An inline file is sent again only if it changed. A changed file is sent as a diff against the copy that the
//!    assistant has, or as a whole if the whole file is shorter. If outdated copies and diffs take more than a third of
//!    the window, a new epoch begins, and all files are sent whole.
//!
//! Everything in this crate is pure. All comparisons use the redacted texts. The module `consult` reads files and
//! records turns.

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
