//! Makes summaries and keeps them: of ranges of messages, segments, sessions, quarters and commits.
//!
//! [`make`] makes one, by a model where the user named a provider and else by choosing sentences; [`queue`] asks a model
//! again for those that it failed at; [`sessions`] keeps one memory for each session; [`levels`] goes from a summary down to
//! its messages.

pub(crate) mod enqueue;
pub(crate) mod estimate;
mod keep;
pub(crate) mod levels;
pub(crate) mod make;
pub(crate) mod messages;
pub(crate) mod of_commits;
pub(crate) mod quarters;
pub(crate) mod queue;
pub(crate) mod segments;
pub(crate) mod sessions;
pub(crate) mod wanted;
