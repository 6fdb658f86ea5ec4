//! Gathers and reads files of the user, so that another model can read them.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! A caller names files and folders. [`gather()`] finds the files, [`Roots::read`] reads one of them, and [`Roots::image`]
//! reads an image. Whatever is named, a file is opened only if the path policy allows it (`policy.rs`): there is one
//! gate, and no function here takes a path of the operating system. Files come from anywhere and change at any time, so
//! each is opened once and checked through its handle, is read up to a limit, and is never a pipe or a device.
//!
//! The text of documents such as PDF files is extracted in a process of its own (`documents/`), because their parsers
//! are large and the documents may be hostile.
//!
//! Nothing is redacted or stored here, and the layers above decide which files belong in a prompt.

mod budget;
mod documents;
mod folder;
mod form;
mod gather;
mod linked;
mod names;
mod plain;
mod policy;
mod read;
mod refusal;
mod rules;
mod skips;
#[cfg(all(test, unix))]
mod tests;

use std::time::Instant;

pub use self::{gather::Gathered, policy::PathTarget, read::Image};
pub use budget::{Allowance, Budget, Ending, Exhausted};
pub use documents::{Confinement, Extractor, Fault, Kind as DocumentKind, Note, attempt, confine, serve};
pub use gather::{Cut, gather, gather_changed};
pub use policy::{FilePath, Roots};
pub use read::{Read, Reading};
pub use refusal::Refusal;

use tiro_base::thread::Stat;

/// How much is looked at and read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest text file, in bytes.
    pub file_bytes: u64,
    /// The largest document, in bytes.
    pub document_bytes: u64,
    /// How many entries of folders are looked at.
    pub entries: usize,
    /// How many folders deep a folder is walked.
    pub depth: usize,
    /// When looking for files ends. `None` if it takes as long as it takes.
    pub until: Option<Instant>,
}

/// Bounds against large folders and files. Arbitrary: source files have less than a megabyte, and repositories less
/// than a hundred thousand files.
impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: 1_000_000, document_bytes: 32_000_000, entries: 100_000, depth: 64, until: None }
    }
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path as answers show it: relative to the project's root with `/` between names, or absolute.
    pub path: String,
    /// What it looked like.
    pub stat: Stat,
    /// How it is read.
    pub form: Form,
    /// The path by which it is opened.
    pub file: FilePath,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Text,
    /// As a document, whose text is extracted.
    Document(DocumentKind),
}
