//! Small repositories for tests, made by the real `git` in a clean environment with fixed dates.
#![expect(clippy::disallowed_methods, reason = "it runs `git`")]
#![allow(
    missing_docs,
    clippy::missing_docs_in_private_items,
    clippy::new_without_default,
    reason = "only tests use it"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tiro_base::error::Result;

use super::*;

/// A repository in a temporary directory, on which the real `git` is run.
pub struct Fixture {
    pub(crate) root: tempfile::TempDir,
    /// The work tree.
    pub path: PathBuf,
}

impl Fixture {
    pub fn new() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("repo");
        std::fs::create_dir(&path).unwrap();
        let fixture = Fixture { root, path };
        fixture.git(&["init", "-q", "-b", "main"]);
        fixture
    }

    /// Runs git in the work tree and returns what it printed.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.path, args, b"")
    }

    pub fn git_in(&self, dir: &Path, args: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("git")
            .args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"])
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Bob"), ("GIT_COMMITTER_EMAIL", "bob@example.org")])
            .envs([("GIT_AUTHOR_DATE", "1700000000 +0100"), ("GIT_COMMITTER_DATE", "1700000500 +0000")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("these tests need `git`");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes a file and commits everything.
    pub fn commit(&self, path: &str, content: impl AsRef<[u8]>, message: &str) -> Sha {
        self.write(path, content);
        self.commit_all(message)
    }

    pub fn commit_all(&self, message: &str) -> Sha {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub fn head(&self) -> Sha {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Stores a commit object that consists of a tree line, a parent line and then the bytes `rest`.
    pub fn raw_commit(&self, rest: &[u8]) -> Sha {
        let tree = self.git(&["rev-parse", "HEAD^{tree}"]);
        let parent = self.head();
        let object = [format!("tree {tree}\nparent {parent}\n").as_bytes(), rest].concat();
        let sha: Sha = self.raw("commit", &object).parse().unwrap();
        self.git(&["update-ref", "HEAD", &sha.to_string()]);
        sha
    }

    pub fn repository(&self) -> Repository {
        discover(&self.path).unwrap().unwrap()
    }

    pub fn detail(&self, sha: &Sha) -> CommitDetail {
        self.repository().reader(&|_| false).commit(sha).unwrap()
    }

    /// Stores an object without git's checks, so that it can be invalid, and returns its name.
    pub fn raw(&self, kind: &str, content: &[u8]) -> String {
        self.git_in(&self.path, &["hash-object", "-t", kind, "-w", "--literally", "--stdin"], content)
    }

    /// Returns the file of an object.
    pub fn object(&self, id: &str) -> PathBuf {
        self.path.join(".git/objects").join(&id[..2]).join(&id[2..])
    }

    pub fn cloned_as(&self, name: &str, args: &[&str]) -> Repository {
        let source = format!("file://{}", self.path.display());
        self.git_in(self.root.path(), &[&["clone", "-q"], args, &[&source, name]].concat(), b"");
        discover(&self.root.path().join(name)).unwrap().unwrap()
    }
}

/// Finds the repository of `path` as if the user had named `path` as the project.
pub fn discover(path: &Path) -> Result<Option<Repository>> {
    Repository::discover(path, &Trust::new(Some(path)))
}
