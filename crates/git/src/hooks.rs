//! Finds the directory of a repository's hooks.

use std::path::{Path, PathBuf};

use super::discover::user;
use super::repository::Repository;

/// The directory of a repository's hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// The directory: `core.hooksPath` if it is set, otherwise `hooks` in the common directory.
    pub directory: PathBuf,
    /// Whether the hook is a file in the commit that is checked out.
    pub is_tracked: bool,
}

impl Repository {
    /// Returns where git looks for the hook `name`. `settings` are the files of the user's own git configuration, from the
    /// least important to the most important.
    pub fn hooks(&self, name: &str, settings: Vec<PathBuf>, home: Option<&Path>) -> Hooks {
        let common = self.common_dir();
        let root = self.work_dir();
        let base = root.as_deref().unwrap_or(&common);
        let directory = match (&self.location.settings.hooks_path, home) {
            (Some(path), Some(home)) if path.starts_with("~/") => home.join(&path[2..]),
            (Some(path), _) => base.join(path),
            (None, _) => match user::path("core.hooksPath", settings, home, &common) {
                Some(path) => base.join(path),
                None => common.join("hooks"),
            },
        };
        let within =
            root.and_then(|root| directory.join(name).strip_prefix(root).ok()?.to_str().map(str::to_owned));
        let is_tracked = within.is_some_and(|path| self.blob_at_head(&path).is_ok_and(|blob| blob.is_some()));
        Hooks { directory, is_tracked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn hooks_are_where_the_nearest_configuration_says() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a\n", "first");
        let home = tempfile::tempdir().unwrap();
        let hooks = |home: &Path| {
            fixture.repository().hooks("post-commit", vec![home.join(".gitconfig")], Some(home))
        };
        let common = fixture.repository().common_dir();
        assert_eq!(hooks(home.path()), Hooks { directory: common.join("hooks"), is_tracked: false });

        std::fs::write(home.path().join(".gitconfig"), "[core]\n\thooksPath = ~/hooks\n").unwrap();
        assert_eq!(hooks(home.path()).directory, home.path().join("hooks"));

        std::fs::write(home.path().join(".gitconfig"), "[include]\n\tpath = dotfiles\n").unwrap();
        std::fs::write(home.path().join("dotfiles"), "[core]\n\thooksPath = ~/included\n").unwrap();
        assert_eq!(hooks(home.path()).directory, home.path().join("included"));

        fixture.git(&["config", "core.hooksPath", ".husky"]);
        fixture.commit(".husky/post-commit", "#!/bin/sh\n", "hooks for all");
        let root = fixture.repository().work_dir().unwrap();
        assert_eq!(hooks(home.path()), Hooks { directory: root.join(".husky"), is_tracked: true });
    }
}
