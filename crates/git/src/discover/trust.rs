//! The repositories that the user trusts although they look suspicious.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The user's statements about repositories: the directory that is the project, and the directories that the option
/// `git.trusted` lists.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    named: Option<PathBuf>,
    trusted: Vec<PathBuf>,
    beneath: Vec<PathBuf>,
    users: Vec<u32>,
}

impl Trust {
    /// Returns a trust that accepts only repositories of the user who runs this process. `named` is the directory that
    /// the user named as the project; it may be a bare repository.
    pub fn new(named: Option<&Path>) -> Trust {
        let named = named.and_then(|named| named.canonicalize().ok());
        Trust { named, users: own_user(), ..Trust::default() }
    }

    /// Returns a trust that accepts only repositories of the user with this number.
    #[cfg(test)]
    pub(super) fn of_user(user: u32) -> Trust {
        Trust { users: vec![user], ..Trust::default() }
    }

    /// Adds directories whose repositories are trusted without checks. A trailing `/*` stands for all directories below
    /// that path. Relative paths and directories that don't exist are skipped.
    pub fn and_in<'a>(
        mut self,
        directories: impl IntoIterator<Item = &'a str>,
        home: Option<&Path>,
    ) -> Trust {
        for directory in directories {
            let (directory, is_beneath) = match directory.strip_suffix("/*") {
                Some(directory) => (directory, true),
                None => (directory, false),
            };
            let path = match (directory.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ if directory.is_empty() && is_beneath => PathBuf::from("/"),
                _ => PathBuf::from(directory),
            };
            let Some(path) = path.canonicalize().ok().filter(|_| path.is_absolute()) else { continue };
            if is_beneath { self.beneath.push(path) } else { self.trusted.push(path) }
        }
        self
    }

    /// Adds the user who called `sudo`. Repositories of this user are then accepted too.
    pub fn and_of(mut self, user: Option<u32>) -> Trust {
        // As in git, this applies only to root: nobody else can act for another user.
        self.users.extend(user.filter(|_| self.users == [0]));
        self
    }

    /// Returns a copy of this trust in which `place` is the directory that the user named. The copy is used to open a
    /// repository that is already known.
    pub fn naming(&self, place: &Path) -> Trust {
        Trust { named: place.canonicalize().ok(), ..self.clone() }
    }

    /// Returns whether the repository in the canonical `directory` is trusted without checks.
    pub(super) fn covers(&self, directory: &Path) -> bool {
        let is_beneath = |above: &PathBuf| directory.starts_with(above) && directory != above;
        self.trusted.iter().any(|trusted| trusted == directory) || self.beneath.iter().any(is_beneath)
    }

    /// Returns whether the user named the canonical `directory` itself.
    pub(super) fn names(&self, directory: &Path) -> bool {
        self.named.as_deref() == Some(directory)
    }

    /// Returns whether the user owns the file with this `metadata`.
    #[cfg(unix)]
    pub(super) fn owns(&self, metadata: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.users.contains(&metadata.uid())
    }

    /// Always returns true, because file owners are unknown on this platform.
    #[cfg(not(unix))]
    pub(super) fn owns(&self, _: &Metadata) -> bool {
        true
    }
}

#[cfg(unix)]
fn own_user() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw()]
}

#[cfg(not(unix))]
fn own_user() -> Vec<u32> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_trusted_by_its_name_or_from_above() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        let (a, b) = (root.join("a"), root.join("a/b"));
        let trust = Trust::new(Some(&b)).and_in([a.to_str().unwrap(), "a/b", "/nowhere"], None);
        assert!(trust.covers(&a) && !trust.covers(&b) && !trust.covers(&root));
        assert!(trust.names(&b) && !trust.names(&a));
        let trust = Trust::new(None).and_in(["~/a/*"], Some(&root));
        assert!(!trust.covers(&a) && trust.covers(&b) && trust.covers(&b.join("c")));
    }
}
