//! Whom the user trusts with what a repository may do that an honest one hardly ever does.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// What the user said of repositories: by naming one, and by `git.trusted`.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    named: Option<PathBuf>,
    trusted: Vec<PathBuf>,
    beneath: Vec<PathBuf>,
    users: Vec<u32>,
}

impl Trust {
    /// Returns the trust in what this process's user owns. `named` is the directory that the user named as the project:
    /// it may be a bare repository.
    pub fn new(named: Option<&Path>) -> Trust {
        let named = named.and_then(|named| named.canonicalize().ok());
        Trust { named, users: own_user(), ..Trust::default() }
    }

    /// Adds directories whose repositories are taken as they are; `/*` at the end stands for all beneath. Those that
    /// aren't there, and relative ones, name nothing.
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

    /// Adds another user whose repositories are taken for one's own: who called `sudo`.
    pub fn and_of(mut self, user: Option<u32>) -> Trust {
        // As git does: only root acts for another.
        self.users.extend(user.filter(|_| self.users == [0]));
        self
    }

    /// Returns the trust that may open a repository known already: as if the user had named `place`.
    pub fn naming(&self, place: &Path) -> Trust {
        Trust { named: place.canonicalize().ok(), ..self.clone() }
    }

    /// Whether the repository in the canonical `directory` is taken as it is.
    pub(super) fn covers(&self, directory: &Path) -> bool {
        let is_beneath = |above: &PathBuf| directory.starts_with(above) && directory != above;
        self.trusted.iter().any(|trusted| trusted == directory) || self.beneath.iter().any(is_beneath)
    }

    /// Whether the user named the canonical `directory` itself.
    pub(super) fn names(&self, directory: &Path) -> bool {
        self.named.as_deref() == Some(directory)
    }

    /// Whether what `metadata` is of belongs to the user.
    #[cfg(unix)]
    pub(super) fn owns(&self, metadata: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.users.contains(&metadata.uid())
    }

    /// Whether what `metadata` is of belongs to the user; taken for granted where owners can't be told.
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
