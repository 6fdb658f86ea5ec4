//! What a process has open, and what several operations compose of it.
//!
//! - [`config`]: options, providers, keys; the only module that reads the environment, the home and the working directory
//! - [`project`], [`engine`], [`caller`]: what is open: a project, the process, and who calls
//! - [`ask`]: asks models within limits
//! - [`consult`]: a thread with an assistant
//! - [`summaries`]: makes and keeps summaries
//! - [`assembly`]: chooses what a context shows
//! - [`own_files`]: the side with the user's files, in this process
//! - [`idle`]: the work between calls
//! - [`tuning`]: the numbers of these
//!
//! It has no operation: arguments are read, and answers are shaped, in the crates above.
//!
//! Invariants: every call of a store carries the scope of its caller; nothing is sent to a model that the user did not name
//! for the purpose; a request's highest cost is reserved before it is made.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod ask;
pub mod assembly;
pub mod caller;
pub mod config;
pub mod consult;
pub mod engine;
pub mod idle;
pub mod own_files;
pub mod project;
pub mod summaries;
pub mod tuning;
