//! The versions of a folder in a repository's history, written to a working directory without the repository's index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::calls;

/// A folder of a repository, as it was written last.
pub struct Trees {
    repository: PathBuf,
    folder: String,
    target: PathBuf,
    /// The blob of each written file, by path.
    written: BTreeMap<String, String>,
}

/// A commit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Trees {
    /// Prepares to write versions of `folder` below `target`.
    pub fn new(repository: &Path, folder: &str, target: &Path) -> Trees {
        Trees {
            repository: repository.to_owned(),
            folder: folder.trim_end_matches('/').to_owned(),
            target: target.to_owned(),
            written: BTreeMap::new(),
        }
    }

    /// Returns the last `count` commits on the main line that changed the folder, oldest first.
    pub fn commits(&self, count: usize) -> Result<Vec<Commit>> {
        let count = format!("-{count}");
        let arguments = ["log", "--first-parent", "-m", &count, "--format=%H %s", "--", &self.folder];
        let log = calls::git(&self.repository, &arguments)?;
        let commit = |line: &str| {
            let (id, subject) = line.split_once(' ')?;
            Some(Commit { id: id.to_owned(), subject: subject.to_owned() })
        };
        let mut commits: Vec<Commit> = log.lines().filter_map(commit).collect();
        commits.reverse();
        if commits.is_empty() {
            bail!("no commit of `{}` changed `{}`", self.repository.display(), self.folder);
        }
        Ok(commits)
    }

    /// Writes the folder as it is in `commit`. Files that did not change are left alone. Returns the paths of the regular
    /// files.
    pub fn write(&mut self, commit: &str) -> Result<Vec<String>> {
        let listed = self.git(&["ls-tree", "-r", "-z", commit, "--", &self.folder])?;
        let listed = String::from_utf8(listed).context("a path is not UTF-8")?;
        let mut now = BTreeMap::new();
        for entry in listed.split_terminator('\0') {
            let (about, path) =
                entry.split_once('\t').context("`git ls-tree` printed a line without a tab")?;
            let fields: Vec<&str> = about.split(' ').collect();
            if let [mode, "blob", blob] = fields[..]
                && mode.starts_with("100")
            {
                now.insert(path.to_owned(), blob.to_owned());
            }
        }
        for path in self.written.keys().filter(|path| !now.contains_key(*path)) {
            std::fs::remove_file(self.target.join(path)).with_context(|| format!("removing `{path}`"))?;
        }
        for (path, blob) in now.iter().filter(|(path, blob)| self.written.get(*path) != Some(blob)) {
            let file = self.target.join(path);
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&file, self.git(&["cat-file", "blob", blob])?)
                .with_context(|| format!("writing `{path}`"))?;
        }
        self.written = now;
        Ok(self.written.keys().cloned().collect())
    }

    /// Returns the output of a git command, as bytes.
    fn git(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.repository).args(["-c", "safe.directory=*"]).args(arguments);
        let output = command.output().context("starting git")?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("`git {}` failed: {}", arguments.join(" "), error.trim());
        }
        Ok(output.stdout)
    }
}
