//! Refuses a repository in which something other than a file stands where a file is read.
//!
//! Opening a pipe waits until somebody writes to it, which may be never, and a repository can come from anywhere. So
//! what is read on the way to a repository and when it is opened is looked at before it is opened: a look doesn't
//! wait. What takes a file's place later, and among the loose objects, is not looked for.

use std::fs;
use std::path::Path;

use crate::error::{Error, Kind, Result};

/// What is read in a git directory, where it is there.
const FILES: [&str; 10] = [
    "HEAD",
    "config",
    "config.worktree",
    "packed-refs",
    "commondir",
    "gitdir",
    "shallow",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
];

/// The folders of a git directory all of whose files may be read.
const FOLDERS: [&str; 3] = ["refs", "objects/pack", "objects/info/commit-graphs"];

/// Looks at whatever a search for a repository that begins in `start` may open.
pub(super) fn before_search(start: &Path) -> Result<()> {
    start.ancestors().try_for_each(before_opening)
}

/// Looks at the files of the repository whose work tree or git directory `path` is.
pub(super) fn before_opening(path: &Path) -> Result<()> {
    let dot_git = path.join(".git");
    is_file(&dot_git)?;
    let elsewhere = dot_git.is_file().then(|| gix::discover::path::from_gitdir_file(&dot_git).ok()).flatten();
    for git_dir in [Some(path), Some(&dot_git), elsewhere.as_deref()].into_iter().flatten() {
        // A folder that is no git directory may hold whatever it likes.
        if !git_dir.join("HEAD").exists() {
            continue;
        }
        git_directory(git_dir)?;
        if let Some(Ok(common_dir)) = gix::discover::path::from_plain_file(&git_dir.join("commondir")) {
            git_directory(&git_dir.join(common_dir))?;
        }
    }
    Ok(())
}

fn git_directory(path: &Path) -> Result<()> {
    FILES.iter().try_for_each(|name| is_file(&path.join(name)))?;
    FOLDERS.iter().try_for_each(|name| folder(&path.join(name)))
}

/// Looks at the files in the folder `path` and in those beneath it.
fn folder(path: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => {}
            Ok(kind) if kind.is_dir() => folder(&entry.path())?,
            _ => is_file(&entry.path())?,
        }
    }
    Ok(())
}

/// Refuses what is there and neither a file nor a folder, nor a link to one.
fn is_file(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let message = format!("`{}` is a pipe, a device or a socket instead of a file", path.display());
            Err(Error::new(Kind::Git, message).hint(
                "reading it could wait for ever; find out where the repository comes from, and remove it",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::super::Repository;
    use super::super::tests::Fixture;
    use super::*;

    /// Puts a pipe in the place of `path`.
    #[expect(clippy::disallowed_methods, reason = "it runs `mkfifo`")]
    fn pipe(path: &Path) {
        let _ = fs::remove_file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    /// Opening a pipe in the place of a file waited for a writer that never came.
    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_and_does_not_hang() {
        let places = [
            ".git/HEAD",
            ".git/config",
            ".git/packed-refs",
            ".git/commondir",
            ".git/refs/heads/main",
            ".git/refs/tags/deep/down",
            ".git/objects/info/alternates",
            ".git/objects/pack/pack-0.idx",
            ".git",
        ];
        for place in places {
            let fixture = Fixture::new();
            fixture.commit("a.txt", "a", "Begin");
            let path = fixture.path.join(place);
            if place == ".git" {
                fs::remove_dir_all(&path).unwrap();
            }
            pipe(&path);
            let within = fixture.path.join("src");
            fs::create_dir(&within).unwrap();
            for start in [fixture.path.clone(), within] {
                let (sender, answer) = channel();
                let opening = move || {
                    let found = Repository::discover(&start)
                        .and_then(|found| found.map_or(Ok(0), |repository| Ok(repository.tips()?.len())));
                    let _ = sender.send(found.map_err(|error| error.to_string()));
                };
                std::thread::spawn(opening);
                let found = answer.recv_timeout(Duration::from_secs(20));
                let error = found.unwrap_or_else(|_| panic!("{place}: it hangs")).unwrap_err();
                assert!(error.contains(place) && error.contains("pipe"), "{place}: {error}");
            }
        }
    }

    #[test]
    fn a_worktree_of_a_repository_with_a_pipe_is_refused_too() {
        let fixture = Fixture::new();
        fixture.commit("a.txt", "a", "Begin");
        let worktree = fixture.path.with_file_name("worktree");
        fixture.git(&["worktree", "add", "-q", worktree.to_str().unwrap()]);
        assert!(Repository::discover(&worktree).unwrap().is_some());
        pipe(&fixture.path.join(".git/packed-refs"));
        let error = Repository::discover(&worktree).map(drop).unwrap_err().to_string();
        assert!(error.contains("packed-refs"), "{error}");
    }
}
