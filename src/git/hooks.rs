//! Finds the directory of a repository's hooks.

use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;

use super::discover::files::Folder;
use super::discover::settings;
use super::repository::Repository;

/// The maximum number of bytes that are read of the user's git configuration.
const LIMIT: u64 = 4 << 20;

/// The directory of a repository's hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// The directory: `core.hooksPath` if it is set, otherwise `hooks` in the common directory.
    pub directory: PathBuf,
    /// Whether the hook that was asked for is a file in the commit that is checked out.
    pub is_tracked: bool,
}

impl Repository {
    /// Returns where git looks for the hook `name`. `home` is the directory of the user's own git configuration.
    ///
    /// Only `core.hooksPath` is read from the user's configuration; files that it includes are not read.
    pub fn hooks(&self, name: &str, home: Option<&Path>) -> Hooks {
        let own = self.location.settings.hooks_path.clone();
        let files =
            home.into_iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]);
        let configured = own.or_else(|| files.filter_map(|file| hooks_path(&file)).next());
        let root = self.work_dir();
        let base = root.clone().unwrap_or_else(|| self.common_dir());
        let directory = match (&configured, home) {
            (None, _) => self.common_dir().join("hooks"),
            (Some(path), Some(home)) if path.starts_with("~/") => home.join(&path[2..]),
            (Some(path), _) => base.join(path),
        };
        let within =
            root.and_then(|root| directory.join(name).strip_prefix(root).ok()?.to_str().map(str::to_owned));
        let is_tracked = within.is_some_and(|path| self.blob_at_head(&path).is_ok_and(|blob| blob.is_some()));
        Hooks { directory, is_tracked }
    }
}

fn hooks_path(file: &Path) -> Option<String> {
    // Links are followed here: the file is the user's own, and often a link into a folder of dotfiles.
    let folder = Folder::new(file.parent()?.to_owned(), true);
    let config = settings::parse(&folder.read(file.file_name()?.to_str()?, LIMIT).ok()??)?;
    config.string("core.hooksPath").map(|value| value.to_str_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::tests::Fixture;

    #[test]
    fn hooks_are_where_the_nearest_configuration_says() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        let home = tempfile::tempdir().unwrap();
        let hooks = |home: &Path| fixture.repository().hooks("post-commit", Some(home));
        let common = fixture.repository().common_dir();
        assert_eq!(hooks(home.path()), Hooks { directory: common.join("hooks"), is_tracked: false });

        std::fs::write(home.path().join(".gitconfig"), "[core]\n\thooksPath = ~/hooks\n").unwrap();
        assert_eq!(hooks(home.path()).directory, home.path().join("hooks"));

        fixture.git(&["config", "core.hooksPath", ".husky"]);
        fixture.commit(".husky/post-commit", "#!/bin/sh\n", "hooks for all");
        let root = fixture.repository().work_dir().unwrap();
        assert_eq!(hooks(home.path()), Hooks { directory: root.join(".husky"), is_tracked: true });
    }
}
