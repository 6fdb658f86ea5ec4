//! Manages summaries of ranges of messages, segments, sessions, quarters and commits. It reads their sources, has the
//! summaries made, and stores them.
//!
//! The text comes from `summarize`, which opens no store. [`make`] decides how the text is made: a model writes it if
//! the user named a provider for summaries, otherwise it consists of chosen sentences. [`queue`] asks a model again
//! after a failure. [`sessions`] keeps one memory that represents each session. [`levels`] opens a summary down to its
//! messages.

mod deadline;
pub mod enqueue;
pub mod estimate;
mod keep;
pub mod known;
pub mod levels;
pub mod make;
pub mod messages;
pub mod notes;
pub mod of_commits;
pub mod quarters;
pub mod queue;
pub mod segments;
pub mod sessions;
pub mod wanted;
