//! What decides which repository a directory lies in.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The git directories above a directory, as they were found. A repository that is made, removed or cloned again changes
/// them, also where that was still going on.
pub(super) struct Around {
    directory: PathBuf,
    found: Vec<Option<GitDir>>,
}

/// What is at `.git`, and which of its parts are there: without one it is no repository.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GitDir {
    number: (u64, u64),
    /// A number is given again once its file is gone.
    made: Option<SystemTime>,
    parts: [bool; 3],
}

impl Around {
    /// Looks above `directory`, a canonical path.
    pub(super) fn of(directory: &Path) -> Around {
        let found = directory.ancestors().map(git_dir).collect();
        Around { directory: directory.to_owned(), found }
    }

    /// The directory that it was looked above.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether all is as it was; so it is taken to be where the directory itself is gone, as a work tree that was removed.
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
