//! Everything that a process has open, and the steps that several operations share.
//!
//! - [`config`]: options, providers, keys; the only module that reads the environment, the home and the working
//!   directory
//! - [`project`], [`engine`], [`caller`]: the open project, the open resources of the process, and the caller
//! - [`principals`]: who may use a server over HTTP, by personal keys
//! - [`ask`]: asks models within limits
//! - [`consult`]: a thread with an assistant
//! - [`summaries`]: makes and stores summaries
//! - [`assembly`]: chooses the passages of a context
//! - [`exchange`]: tells a team's server what changed, and learns what changed there
//! - [`own_files`]: the side with the user's files, in this process
//! - [`idle`]: the work between calls
//! - [`tuning`]: the tuned numbers of this crate
//!
//! This crate contains no operations. The crates above it read the arguments and shape the answers.
//!
//! Invariants:
//!
//! - Every call of a store carries the scope of its caller.
//! - Nothing is sent to a model that the user did not name for the purpose.
//! - A request's highest cost is reserved before the request is made.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]

pub mod ask;
pub mod assembly;
pub mod caller;
pub mod config;
pub mod consult;
pub mod engine;
pub mod exchange;
pub mod idle;
pub mod own_files;
pub mod principals;
pub mod project;
pub mod summaries;
pub mod tuning;
