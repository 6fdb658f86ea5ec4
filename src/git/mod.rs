//! Everything Tiro reads from git: which repository a path belongs to, its history, what each commit changed.
//!
//! Packs, deltas, trees and configuration files are taken apart by `gix`; the `git` program is never run. A repository
//! is data written by others and its configuration can name programs (`core.fsmonitor`, `diff.external`, `textconv`,
//! `filter.*.process`, hooks, credential helpers, `core.sshCommand`). None can run: of the configuration a handful of
//! values are read, without includes, and blobs are compared as they are stored, which needs neither filters nor
//! external diffs. The environment is not read, so `GIT_DIR` is ignored.
//!
//! Where a repository lies, and whether it is what it says, is told by `place`; its control files are opened by us, as
//! regular files beneath its directory and never through links. An error says what is wrong in our words: nothing that
//! stands in a file is in it, nor what a library says.
//!
//! Nothing here trusts sizes: control files, messages, blobs, trees and diffs are read up to stated limits, and what was
//! left out is counted. A damaged or absent object costs the answer that one object.
//!
//! It is not: a writer of objects or references (the one file written is the project's id, see [`identity`]), a
//! reader of the work tree or the index, a client of remotes.

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
pub use commit::{CommitDetail, Message, Moment, Unreadable};
pub use details::{Outcome, Reader};
pub use diff::changes::{ChangeKind, Changes, FileChange, IsIgnored, Lines, PatchId};
pub use diff::digest::Digest;
pub use diff::hunks::line_hash;
pub use discover::Trust;
pub use graph::GraphPart;
pub use hooks::Hooks;
pub use reflog::{Action, Move, Reflog};
pub use repository::{Broken, Found, Head, Repository, Tip, Tips};
pub use sha::Sha;
pub use walk::{History, Known, Listed, Stop};
