//! Turns histories that other programs keep into drafts of memories.
//!
//! A draft is what would be remembered, before redaction and without an id. These modules are pure: values in, values
//! out. Who reads the source (`git/`) and who stores the drafts (`remember/`) is composed in `ingest/`.

mod clean;
pub mod correlate;
mod entry;
pub mod evidence;
mod fields;
mod fingerprint;
mod formats;
mod gist;
pub mod git;
mod session;
mod shell;
#[cfg(test)]
mod tests;
pub mod transcript;
