//! Everything Tiro reads from git: which repository a path belongs to, its history, what each commit changed.
//!
//! Objects are read in this process through `gix`; the `git` program is never run. A repository is data written by
//! others and its configuration can name programs (`core.fsmonitor`, `diff.external`, `textconv`,
//! `filter.*.process`, hooks, credential helpers, `core.sshCommand`). None can run: the repository is opened
//! without system or user configuration, without includes and without reading the environment (so `GIT_DIR` is
//! ignored too), and blobs are compared as they are stored, which needs neither filters nor external diffs.
//!
//! Nothing here trusts sizes: messages, blobs, trees and diffs are read up to stated limits, and what was left out
//! is counted. A damaged or absent object costs the answer that one object. A pipe in the place of a file is
//! refused before it is opened.
//!
//! It is not: a writer of objects or references (the one file written is the project's id, see [`identity`]), a
//! reader of the work tree or the index, a client of remotes.

mod ancestry;
mod changes;
mod commit;
mod details;
mod diff;
mod digest;
mod entries;
mod guard;
mod hooks;
pub mod identity;
mod names;
mod reflog;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

use gix::bstr::ByteSlice;

use crate::error::{Context, Error, Kind, Result};

pub use ancestry::Reach;
pub use changes::{ChangeKind, Changes, FileChange, IsIgnored, Lines, PatchId};
pub use commit::{CommitDetail, Message, Moment};
pub use details::{Outcome, Reader};
pub use digest::Digest;
pub use hooks::Hooks;
pub use reflog::Reflog;
pub use walk::{History, Known, Listed, Tip, Unreadable};

/// The name of a git object: its SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha([u8; 20]);

impl Sha {
    /// Returns the 20 bytes of the name.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    fn object_id(&self) -> gix::ObjectId {
        gix::ObjectId::Sha1(self.0)
    }
}

impl From<&gix::oid> for Sha {
    fn from(id: &gix::oid) -> Sha {
        let mut bytes = [0; 20];
        bytes.copy_from_slice(id.as_bytes());
        Sha(bytes)
    }
}

/// Prints all 40 hexadecimal digits.
impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads the full name only: an abbreviation is a question to a repository.
impl FromStr for Sha {
    type Err = Error;

    fn from_str(text: &str) -> Result<Sha> {
        gix::ObjectId::from_hex(text.as_bytes()).map(|id| Sha::from(id.as_ref())).map_err(|_| {
            Error::bad_input(format!("`{text}` is not a full commit id of 40 hexadecimal digits"))
        })
    }
}

/// Where a repository stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch checked out, also before its first commit; `None` when detached.
    pub branch: Option<String>,
    /// The commit checked out; `None` before the first commit, and when the reference is broken.
    pub commit: Option<Sha>,
}

/// An opened repository; shareable between threads, references are read afresh at every call.
pub struct Repository {
    inner: gix::ThreadSafeRepository,
    ancestry: Mutex<ancestry::Ancestry>,
}

impl Repository {
    /// Returns the repository that `path` lies in, looking upwards to the root of the file system, or `None`.
    ///
    /// Finds linked worktrees, submodules (each a repository of its own) and bare repositories; a path inside
    /// `.git` belongs to that repository. Like git, the search stops at the border of a file system.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if `path` does not exist, [`Kind::Git`] if what was found cannot be opened (damaged
    /// configuration, a format that is not SHA-1, a pipe in the place of a file).
    pub fn discover(path: &Path) -> Result<Option<Repository>> {
        let directory =
            path.canonicalize().context(Kind::BadInput, || format!("cannot open `{}`", path.display()))?;
        let start = if directory.is_dir() { &directory } else { directory.parent().unwrap_or(&directory) };
        guard::before_search(start)?;
        let found = match gix::discover::upwards(start) {
            Ok((found, _trust)) => found,
            Err(error) => {
                use gix::discover::upwards::Error as Upwards;
                return match error.downcast_any_ref::<Upwards>() {
                    Some(Upwards::NoTrustedGitRepository { .. }) | None => Err(error)
                        .context(Kind::Git, || {
                            format!("cannot look for a repository at `{}`", path.display())
                        }),
                    Some(_) => Ok(None),
                };
            }
        };
        let (git_dir, work_dir) = found.into_repository_and_work_tree_directories();
        Repository::open(work_dir.as_deref().unwrap_or(&git_dir)).map(Some)
    }

    /// Opens the repository whose work tree or git directory `path` is.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if it is no repository or cannot be opened.
    pub fn open(path: &Path) -> Result<Repository> {
        guard::before_opening(path)?;
        let failed = || format!("cannot open the repository `{}`", path.display());
        let inner = gix::open::Options::isolated()
            .config_overrides(OVERRIDES)
            .open(path)
            .context(Kind::Git, failed)
            .map_err(|error| error.hint("check it with `git fsck`; only SHA-1 repositories are supported"))?;
        Ok(Repository { inner, ancestry: Mutex::default() })
    }

    /// Returns the directory that all worktrees of the repository share, canonical.
    pub fn common_dir(&self) -> PathBuf {
        let local = self.local();
        local.common_dir().canonicalize().unwrap_or_else(|_| local.common_dir().to_path_buf())
    }

    /// Returns the root of the work tree, or `None` in a bare repository.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.local().workdir().map(|path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
    }

    /// Returns whether the repository has no work tree.
    pub fn is_bare(&self) -> bool {
        self.local().workdir().is_none()
    }

    /// Returns whether the history ends early because the clone was made with `--depth`.
    pub fn is_shallow(&self) -> bool {
        self.local().is_shallow().unwrap_or(false)
    }

    /// Returns whether this is a worktree made by `git worktree add`, sharing another's history.
    pub fn is_worktree(&self) -> bool {
        matches!(self.local().kind(), gix::repository::Kind::LinkedWorkTree)
    }

    /// Returns whether there is nothing to import: no branch has a commit.
    pub fn is_empty(&self) -> bool {
        self.tips().is_ok_and(|tips| tips.is_empty())
    }

    /// Returns the branch and the commit checked out.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if `HEAD` cannot be read.
    pub fn head(&self) -> Result<Head> {
        let local = self.local();
        let head = local.head().context(Kind::Git, || "cannot read `HEAD`".to_owned())?;
        let branch = head.referent_name().map(|name| name.shorten().to_str_lossy().into_owned());
        let commit = local.head_id().ok().map(|id| Sha::from(id.detach().as_ref()));
        Ok(Head { branch, commit })
    }

    /// Returns the local branches and their commits, by name; a broken branch is left out.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the references cannot be read at all.
    pub fn branches(&self) -> Result<Vec<(String, Sha)>> {
        let failed = || "cannot read the branches".to_owned();
        let local = self.local();
        let references = local.references().context(Kind::Git, failed)?;
        let mut branches: Vec<(String, Sha)> = references
            .local_branches()
            .context(Kind::Git, failed)?
            .peeled()
            .context(Kind::Git, failed)?
            .filter_map(|reference| {
                let reference = reference.ok()?;
                let name = reference.name().shorten().to_str_lossy().into_owned();
                Some((name, Sha::from(reference.try_id()?.detach().as_ref())))
            })
            .collect();
        branches.sort();
        Ok(branches)
    }

    /// Returns where the history begins: the commit checked out first, then the other branches by name.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the references cannot be read.
    pub fn tips(&self) -> Result<Vec<Tip>> {
        let head = self.head()?;
        let first = head.commit.map(|sha| Tip { branch: head.branch.clone(), sha });
        let others = self.branches()?.into_iter().filter(|(name, _)| Some(name) != head.branch.as_ref());
        Ok(first.into_iter().chain(others.map(|(name, sha)| Tip { branch: Some(name), sha })).collect())
    }

    /// Returns whether the object is in this clone; false tells that a commit was rewritten away and collected.
    pub fn contains(&self, sha: &Sha) -> bool {
        self.local().has_object(sha.object_id())
    }

    /// Returns the blob at `path` in the commit checked out, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if a tree on the way cannot be read.
    pub fn blob_at_head(&self, path: &str) -> Result<Option<Sha>> {
        match self.head()?.commit {
            Some(commit) => self.blob_at(&commit, path),
            None => Ok(None),
        }
    }

    /// Returns the blob at `path` in `commit`, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the commit or a tree on the way cannot be read.
    pub fn blob_at(&self, commit: &Sha, path: &str) -> Result<Option<Sha>> {
        let failed = || format!("cannot look up `{path}` in commit `{commit}`");
        let local = self.local();
        let tree = local
            .find_commit(commit.object_id())
            .and_then(|commit| commit.tree())
            .context(Kind::Git, failed)?;
        let entry = tree.lookup_entry_by_path(path).context(Kind::Git, failed)?;
        Ok(entry.filter(|entry| !entry.mode().is_tree()).map(|entry| Sha::from(entry.object_id().as_ref())))
    }

    fn local(&self) -> gix::Repository {
        self.inner.to_thread_local()
    }
}

/// Settings that a repository must not choose: the file that ends a shallow history, which could be a pipe that
/// never answers, and the largest object decoded.
const OVERRIDES: [&str; 2] = ["gitoxide.core.shallowFile=shallow", "gitoxide.objects.allocLimit=536870912"];
