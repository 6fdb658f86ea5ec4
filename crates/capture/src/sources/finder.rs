//! Finds the project of a directory.

use std::path::{Path, PathBuf};

use tiro_base::error::{Context, Error, Kind, Result};
use tiro_git::{Discovered, Repository, Trust};

/// Finds the project of a directory. Registers nothing.
#[derive(Clone, Default)]
pub struct Finder {
    /// The directory that the user named as the project.
    pub named: Option<PathBuf>,
    /// The directories whose repositories the user trusts, as the option `git.trusted` has them.
    pub trusted: Vec<String>,
    /// The user who ran `sudo`.
    pub sudo_user: Option<u32>,
    /// The home directory, which is never a project itself.
    pub home: Option<PathBuf>,
}

impl Finder {
    /// Returns which repositories are trusted. This looks at the disk.
    pub fn trust(&self) -> Trust {
        let trusted = self.trusted.iter().map(String::as_str);
        Trust::new(self.named.as_deref()).and_of(self.sudo_user).and_in(trusted, self.home.as_deref())
    }

    /// Returns the canonical path that identifies the project of `directory`. Returns `None` for `/` and the home
    /// directory.
    ///
    /// In a repository, this is the git common directory. Otherwise, it is the directory itself.
    pub fn place(&self, directory: &Path) -> Result<Option<PathBuf>> {
        Ok(self.place_and_repository(directory)?.map(|(place, _)| place))
    }

    /// Returns the result of [`Finder::place`], and the repository that contains `directory`.
    pub fn place_and_repository(&self, directory: &Path) -> Result<Option<(PathBuf, Option<Repository>)>> {
        let directory = directory
            .canonicalize()
            .context(Kind::NoProject, || format!("cannot open `{}`", directory.display()))?;
        let (place, work_dir, repository) = match Repository::find(&directory, &self.trust())? {
            None => (directory.clone(), None, None),
            Some(Discovered::Broken(broken)) => (broken.common_dir, broken.work_dir, None),
            Some(Discovered::Repository(it)) => (it.common_dir(), it.work_dir(), Some(*it)),
        };
        let root = work_dir.unwrap_or(directory);
        Ok(self.refuse_everything(&root).is_ok().then_some((place, repository)))
    }

    /// Errors with [`Kind::NoProject`] if `root` is `/` or the home directory. Such a project would contain everything.
    pub fn refuse_everything(&self, root: &Path) -> Result<()> {
        let home = self.home.as_deref().and_then(|home| home.canonicalize().ok());
        let what = match () {
            () if root.parent().is_none() => "the root of the file system",
            () if home.as_deref() == Some(root) => "the home directory",
            () => return Ok(()),
        };
        Err(Error::new(Kind::NoProject, format!("{what} is not a project")).hint(
            "start in a repository or a separate directory, or name one with --project or TIRO_PROJECT",
        ))
    }
}

/// Returns the root of the project that is identified by `place`.
pub fn root_of(place: &Path) -> PathBuf {
    match place.parent() {
        Some(root) if place.ends_with(".git") => root.to_owned(),
        _ => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_and_the_home_are_refused_with_a_way_out() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let finder = Finder { home: Some(home.clone()), ..Finder::default() };
        for root in [Path::new("/"), &home] {
            let error = finder.refuse_everything(root).unwrap_err();
            assert_eq!(error.kind(), Kind::NoProject);
            assert!(error.way_out().unwrap().contains("--project"));
        }
        assert!(finder.refuse_everything(&home.join("work")).is_ok());
    }
}
