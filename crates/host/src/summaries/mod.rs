//! Keeps summaries of ranges of messages, segments, sessions, quarters and commits: reads what they are of, has them
//! made, and stores them.
//!
//! The text comes from `summarize`, which opens no store. [`make`] decides how: a model writes it if the user named a
//! provider for summaries, otherwise it is made of chosen sentences. [`queue`] asks a model again after a failure. [`sessions`] keeps one memory that represents each
//! session. [`levels`] opens a summary down to its messages.

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
