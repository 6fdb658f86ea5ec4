//! Reads git repositories: which repository contains a path, what its history is, and what each commit changed.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! `gix` parses packs, deltas, trees and configuration files; the `git` program is never run. A repository may come
//! from a stranger, and its configuration can name programs (`core.fsmonitor`, `diff.external`, `textconv`,
//! `filter.*.process`, hooks, credential helpers, `core.sshCommand`). Such programs are never run. Only a handful of
//! values are read from the configuration, and included files are not read. Blobs are compared as they are stored,
//! without filters or external diffs. Two values are read from the user's own configuration and the files that it
//! includes ([`Repository::hooks`], [`excludes()`]). Environment variables such as `GIT_DIR` are ignored.
//!
//! The module `discover` finds a repository and checks that it may be trusted. The control files of a repository are
//! opened only if they are regular files below its directory, never through links. Errors never quote the content of a
//! file or the message of a library.
//!
//! Sizes that a repository states are not trusted. Control files, messages, blobs, trees and diffs are read up to fixed
//! limits, and the result says what was left out. If an object is damaged or missing, only that object is unavailable.
//!
//! This crate writes only one file, the project's id (see [`identity`]), and no objects or references. The crate does
//! not read git's index and does not talk to remotes. In the work tree, it reads only `.mailmap`.

mod ancestry;
mod authors;
mod blame;
mod commit;
mod details;
mod diff;
mod discover;
mod graph;
mod heads;
mod hooks;
pub mod identity;
mod mailmap;
mod objects;
mod reflog;
mod repository;
mod revision;
mod sha;
mod trees;
mod walk;

#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use ancestry::Reach;
pub use blame::{BlameQuery, Blamed, LARGEST as LARGEST_BLAMED, Origin};
pub use commit::{Author, CommitDetail, Moment};
pub use details::{CommitReader, Outcome};
pub use diff::changes::{ChangeKind, Changes, FileChange, Lines, PatchId};
pub use diff::hunks::line_hash;
pub use discover::{Trust, excludes};
pub use graph::GraphPart;
pub use mailmap::Mailmap;
pub use reflog::{Action, Reflog};
pub use repository::{Discovered, Repository, Tip, Tips};
pub use sha::Sha;
pub use trees::files::TreeFile;
pub use trees::named::{Around, Fate, MadeAt};
pub use walk::{History, KnownCommit, Listed, Stop};
