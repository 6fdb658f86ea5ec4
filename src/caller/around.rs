//! The repositories around a directory, to notice when another one contains it.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The `.git` entries above a directory, as they were found. They change when a repository is created, removed or
/// cloned again, and also while that is still under way.
pub(super) struct Around {
    directory: PathBuf,
    found: Vec<Option<GitDir>>,
}

/// The entry `.git`, and which parts of a repository it has. Without all of them it is no repository yet.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GitDir {
    number: (u64, u64),
    /// The creation time, since an inode number is used again after its file was removed.
    made: Option<SystemTime>,
    parts: [bool; 3],
}

impl Around {
    /// Looks at all folders above `directory`, a canonical path.
    pub(super) fn of(directory: &Path) -> Around {
        let found = directory.ancestors().map(git_dir).collect();
        Around { directory: directory.to_owned(), found }
    }

    /// Returns the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether the entries are the same. True if the directory itself was removed, such as a deleted work tree.
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
