//! Reads the user's own configuration of git.
//!
//! The arguments named `settings` are the files of this configuration, from the least important to the most important.
//! Files that they include are read too. If a file is included only for some repositories, the directory of the
//! repository decides whether it is read.

use std::path::{Path, PathBuf};

use gix::config::file::Metadata;
use gix::config::file::includes::{Options, conditional};
use gix::config::path::interpolate;
use gix::config::{File, Source};

/// Returns the file that `core.excludesFile` names in the user's or the system's configuration of git. If this setting
/// is missing, returns git's default file, or `None` if there is no home directory. The file may be missing.
///
/// The repository's own configuration is not read, because it could replace the user's file by another one. See
/// <https://git-scm.com/docs/gitignore>.
pub fn excludes(settings: Vec<PathBuf>, home: Option<&Path>, git_dir: &Path) -> Option<PathBuf> {
    path("core.excludesFile", settings, home, git_dir).or_else(ignore::gitignore::gitconfig_excludes_path)
}

/// Returns the path to which the last of `settings` sets `key`, with `~` replaced. Returns `None` if no file sets
/// `key`, or if a file can't be read.
pub(crate) fn path(
    key: &str,
    settings: Vec<PathBuf>,
    home: Option<&Path>,
    git_dir: &Path,
) -> Option<PathBuf> {
    let files = settings.into_iter().filter(|path| path.is_file()).map(|path| Metadata {
        path: Some(path),
        source: Source::User,
        ..Metadata::api()
    });
    let paths = || interpolate::Context { home_dir: home, ..interpolate::Context::default() };
    let repository = conditional::Context { git_dir: Some(git_dir), branch_name: None };
    let options = gix::config::file::init::Options {
        includes: Options::follow(paths(), repository),
        ..Default::default()
    };
    let config = File::from_paths_metadata(files, options).ok()??;
    config.path(key)?.interpolate(paths()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_list_is_found_in_a_file_that_the_configuration_includes() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        };
        let found = |git_dir: &str| {
            let settings = vec![at("config"), at(".gitconfig")];
            let found = path("core.excludesFile", settings, Some(home.path()), &at(git_dir));
            found.map(|path| path.strip_prefix(home.path()).unwrap().to_owned())
        };
        assert_eq!(found("work/a/.git"), None);

        write("config", "[core]\n\texcludesFile = ~/first-ignore\n");
        assert_eq!(found("work/a/.git").unwrap(), Path::new("first-ignore"));

        write("dotfiles/git", "[core]\n\texcludesfile = ~/ignore\n");
        write("dotfiles/work", "[core]\n\texcludesfile = ~/work-ignore\n");
        let included =
            "[include]\n\tpath = dotfiles/git\n[includeIf \"gitdir:~/work/\"]\n\tpath = dotfiles/work\n";
        write(".gitconfig", included);
        fs::create_dir_all(at("work/a/.git")).unwrap();
        fs::create_dir_all(at("b/.git")).unwrap();
        assert_eq!(found("work/a/.git").unwrap(), Path::new("work-ignore"));
        assert_eq!(found("b/.git").unwrap(), Path::new("ignore"));
        assert_eq!(found("no-repository").unwrap(), Path::new("ignore"));

        // Files that include each other and files that can't be parsed give no path.
        write("dotfiles/git", "[include]\n\tpath = ../.gitconfig\n");
        assert_eq!(found("b/.git"), None);
        write(".gitconfig", "[core\n");
        assert_eq!(found("b/.git"), None);
    }
}
