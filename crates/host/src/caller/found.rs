//! The caller's open project, and the check that the disk still has the same project in its place. The check also watches the
//! repositories around the caller's directory. So it notices when the directory becomes part of another repository.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::config::Config;
use crate::project::{self, WritableProject};
use tiro_store::Store;

/// An open project, and the state of the disk that must stay the same for the project to remain valid.
#[derive(Clone)]
pub(super) struct FoundProject {
    pub project: Arc<WritableProject>,
    pub registered_in: Arc<dyn Store>,
    /// The git directory that contains the project's id, if there is such a directory.
    pub keeps_id: Option<PathBuf>,
    pub around: Arc<Around>,
}

impl FoundProject {
    /// Returns whether the disk still has this project in its place. Also returns false if the project's repository
    /// could not be read before, but can be read now. If the result is false, closes the project's store.
    pub fn holds(&self, config: &Config, named: Option<&Path>) -> bool {
        let id = &self.project.scope.project;
        let is_kept = self.keeps_id.as_ref().is_none_or(|place| project::keeps(place, id));
        let is_as_troubled = || {
            self.project.trouble.is_none() || project::is_in_trouble(self.around.directory(), config, named)
        };
        let is_same = is_kept && self.around.is_same() && is_as_troubled();
        let holds = is_same && self.registered_in.is_current() && self.project.store.is_current();
        if !holds {
            self.project.store.leave();
        }
        holds
    }
}

/// The `.git` entries that were found in a directory and above it. These entries change as soon as a repository is
/// being created, removed or cloned again.
pub(super) struct Around {
    directory: PathBuf,
    found: Vec<Option<GitDir>>,
}

/// An entry `.git`, and the parts of a repository that it contains. A folder without all these parts is not a
/// repository yet.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GitDir {
    number: (u64, u64),
    /// The creation time. The inode number alone is not enough, because it can be reused once its file is removed.
    made: Option<SystemTime>,
    parts: [bool; 3],
}

impl Around {
    /// Searches `directory`, a canonical path, and all folders above it.
    pub(super) fn of(directory: &Path) -> Around {
        let found = directory.ancestors().map(git_dir).collect();
        Around { directory: directory.to_owned(), found }
    }

    /// Returns the directory.
    fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether the entries are still the same. Also returns true if the directory itself was removed, as when a
    /// work tree is deleted.
    fn is_same(&self) -> bool {
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
