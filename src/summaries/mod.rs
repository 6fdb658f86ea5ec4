//! Makes and stores summaries of ranges of messages, segments, sessions, quarters and commits.
//!
//! [`make`] makes a summary: a model writes it if the user named a provider for summaries, otherwise it is made of
//! chosen sentences. [`queue`] asks a model again after a failure. [`sessions`] keeps one memory that represents each
//! session. [`levels`] opens a summary down to its messages.

mod deadline;
pub(crate) mod enqueue;
pub(crate) mod estimate;
mod keep;
pub(crate) mod levels;
pub(crate) mod make;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod of_commits;
pub(crate) mod quarters;
pub(crate) mod queue;
pub(crate) mod segments;
pub(crate) mod sessions;
pub(crate) mod wanted;
