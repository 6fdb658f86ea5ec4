//! Gathers and reads files of the user, so that another model can read them.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! A caller names files and folders. [`gather()`] finds the files, [`Roots::read`] reads one of them, and
//! [`Roots::image`] reads an image. A file is opened only if the path policy allows it (`policy.rs`), even if the
//! caller named it. The policy can't be bypassed, because no function here takes a path of the operating system. Files
//! may come from anyone and can change at any time. So each file is opened once and checked through its handle, and
//! read up to a limit. Pipes and devices are never read.
//!
//! The text of documents such as PDF files is extracted in a separate process (`documents/`), because the parsers are
//! large and the documents may be hostile.
//!
//! This crate doesn't redact or store texts. The layers above decide which files belong in a prompt.

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

/// The limits of looking for files and reading them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest text file, in bytes.
    pub file_bytes: u64,
    /// The largest document, in bytes.
    pub document_bytes: u64,
    /// The maximum number of entries of folders that are looked at.
    pub entries: usize,
    /// The maximum depth of a walk, in folders.
    pub depth: usize,
    /// The time when looking for files ends; `None` if there is no limit.
    pub until: Option<Instant>,
    /// Whether what git ignores is left out. `.ignore` and `.tiroignore` always apply.
    pub without_ignored: bool,
}

/// Limits that protect against large folders and files. Arbitrary: source files have less than a megabyte, and
/// repositories have fewer than a hundred thousand files.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: 1_000_000,
            document_bytes: 32_000_000,
            entries: 100_000,
            depth: 64,
            until: None,
            without_ignored: true,
        }
    }
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The path of the file in the form in which answers show it: relative to the project's root with `/` between
    /// names, or absolute.
    pub path: String,
    /// The metadata of the file.
    pub stat: Stat,
    /// How it is read.
    pub form: Form,
    /// The path by which the file is opened.
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
