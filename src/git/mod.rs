//! Reads git repositories: which repository contains a path, its history, what each commit changed.
//!
//! `gix` parses packs, deltas, trees and configuration files; the `git` program is never run. Others may have written a
//! repository, and its configuration can name programs (`core.fsmonitor`, `diff.external`, `textconv`,
//! `filter.*.process`, hooks, credential helpers, `core.sshCommand`). None of them can run: a handful of values are
//! read from the configuration, without includes, and blobs are compared as they are stored, without filters or
//! external diffs. Environment variables such as `GIT_DIR` are ignored.
//!
//! `discover` finds a repository and checks that it may be trusted. Its control files are opened as regular files below
//! its directory, never through links. Errors never quote the content of a file or the message of a library.
//!
//! No size is trusted: control files, messages, blobs, trees and diffs are read up to stated limits, and the answer
//! counts what was left out. A damaged or missing object makes only that object unavailable.
//!
//! It does not write objects or references (it writes one file, the project's id, see [`identity`]), it reads neither
//! the work tree nor the index, and it does not talk to remotes.

mod ancestry;
mod commit;
mod details;
mod diff;
mod discover;
mod graph;
mod heads;
mod hooks;
pub mod identity;
mod objects;
mod reflog;
mod repository;
mod sha;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use ancestry::Reach;
pub use commit::{CommitDetail, Moment};
pub use details::{Outcome, Reader};
pub use diff::changes::{ChangeKind, Changes, FileChange, Lines, PatchId};
pub use diff::hunks::line_hash;
pub use discover::Trust;
pub use graph::GraphPart;
pub use reflog::{Action, Reflog};
pub use repository::{Found, Repository, Tip, Tips};
pub use sha::Sha;
pub use walk::{History, Known, Listed, Stop};
