//! Turns the histories that other programs keep, such as git and the clients, into drafts of memories.
//!
//! A draft is a memory before redaction, without an id. These modules are pure: they take values and return values.
//! Reading the sources and storing the drafts is done in [`follow`](crate::follow).

mod clean;
pub mod correlate;
mod entry;
pub mod evidence;
mod fields;
mod fingerprint;
mod formats;
mod gist;
pub mod git;
pub mod messages;
mod session;
mod shell;
pub mod specstory;
#[cfg(test)]
mod tests;
pub mod transcript;
mod typed;
