//! The repositories around a directory. Tiro watches them to notice when the directory comes to lie in another
//! repository.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The `.git` entries that were found in a directory and above it. These entries change as soon as a repository
/// begins to be created, removed or cloned again.
pub(super) struct Around {
    directory: PathBuf,
    found: Vec<Option<GitDir>>,
}

/// An entry `.git`, and which parts of a repository it contains. A folder without all these parts is not a repository
/// yet.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GitDir {
    number: (u64, u64),
    /// The creation time. The inode number alone is not enough, because it can be reused once its file is removed.
    made: Option<SystemTime>,
    parts: [bool; 3],
}

impl Around {
    /// Looks in `directory`, a canonical path, and in all folders above it.
    pub(super) fn of(directory: &Path) -> Around {
        let found = directory.ancestors().map(git_dir).collect();
        Around { directory: directory.to_owned(), found }
    }

    /// Returns the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether the entries are still the same. Also returns true if the directory itself was removed, as when a
    /// work tree is deleted.
    pub(super) fn is_same(&self) -> bool {
        !self.directory.exists() || self.directory.ancestors().map(git_dir).eq(self.found.iter().copied())
    }
}

fn git_dir(directory: &Path) -> Option<GitDir> {
    let path = directory.join(".git");
    let found = path.symlink_metadata().ok()?;
    let has = |part: &str| path.join(part).symlink_metadata().is_ok();
    Some(GitDir {
        number: number(&found),
        made: found.created().ok(),
        parts: ["HEAD", "objects", "refs"].map(has),
    })
}

#[cfg(unix)]
fn number(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
