//! An opened repository: its directories, the commit that is checked out, and its branches.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::commit;
use super::discover::refs::{self, Packed};
use super::discover::{self, Location, Trust};
use super::graph::Graph;
use super::objects::{Handle, Objects};
use super::sha::Sha;
use super::trees::words::Words;
use tiro_base::error::{Context, Error, Kind, Result};

/// The branch and the commit that are checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch that is checked out, even if it has no commit yet; `None` when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit that is checked out; `None` before the first commit, and when the reference is broken.
    pub commit: Option<Sha>,
}

/// A commit from which a walk of the history starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The branch that points at the commit, or `None` for a detached `HEAD`.
    pub branch: Option<String>,
    /// The commit.
    pub sha: Sha,
}

/// The commits from which a walk of the whole history starts.
#[derive(Clone, Debug, Default)]
pub struct Tips {
    /// First the commit that is checked out, then the commits of the other branches, in the order of their names.
    pub found: Vec<Tip>,
    /// Which references were left out, and why, in words.
    pub faults: Vec<String>,
}

/// The repository that was found to contain a path.
pub enum Discovered {
    /// A repository that can be read.
    Repository(Box<Repository>),
    /// A repository that can't be read.
    Broken(Broken),
}

/// A trustworthy repository that can't be read: its objects or references have a format that is not supported, or its
/// configuration has a mistake.
#[derive(Debug)]
pub struct Broken {
    /// The canonical path of the directory that all worktrees of the repository share.
    pub common_dir: PathBuf,
    /// The canonical path of the root of the work tree, or `None` in a bare repository.
    pub work_dir: Option<PathBuf>,
    /// Why the repository can't be read.
    pub error: Error,
}

/// An opened repository. Threads can share it. References are read anew at every call.
pub struct Repository {
    /// Where its files are.
    pub(super) location: Location,
    /// Its objects.
    pub(super) objects: Arc<Objects>,
    /// Its packed references.
    pub(super) packed: Packed,
    /// The commits that were read.
    pub(super) graph: Mutex<Graph>,
    /// The references that were read.
    pub(super) refs: Mutex<KeptRefs>,
    /// The paths and words of the commit that was last compared with an earlier one.
    pub(super) words: Mutex<Option<Words>>,
}

/// The commits that references and reflogs named when they were last read.
#[derive(Default)]
pub(super) struct KeptRefs {
    /// A text that identifies the state of the files of the references.
    pub(super) stamp: String,
    /// The commits that references name.
    pub(super) tips: Arc<Vec<Sha>>,
    /// The commits that the reflogs name; `None` until [`Repository::reflog_commits`] is called.
    pub(super) logged: Option<Arc<Vec<Sha>>>,
}

/// The maximum number of bytes of the file `shallow`: 400,000 commits.
const SHALLOW_LIMIT: u64 = 16 << 20;

/// The largest tree that is read while a path is looked up, in bytes.
const TREE_LIMIT: u64 = 16 << 20;

impl Repository {
    /// Returns the repository that contains `path`, or `None` if no repository does. Looks in each directory from
    /// `path` up to the root of its file system, as git does.
    ///
    /// Inside a linked worktree or a submodule, the result is the worktree or the submodule, not the repository around
    /// it. A path inside `.git` belongs to the repository of that `.git`. A bare repository is found only if `trust`
    /// names it.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if `path` does not exist. [`Kind::Git`] if the repository cannot be opened (damaged
    /// configuration, a format other than SHA-1, a link or a pipe in place of a file). [`Kind::Git`] also if the
    /// repository is refused, because it belongs to another user or because it points to a git directory that does not
    /// point back to the repository.
    pub fn discover(path: &Path, trust: &Trust) -> Result<Option<Repository>> {
        match Repository::find(path, trust)? {
            None => Ok(None),
            Some(Discovered::Repository(repository)) => Ok(Some(*repository)),
            Some(Discovered::Broken(broken)) => Err(broken.error),
        }
    }

    /// Like [`Repository::discover`], but returns a repository that can't be read as [`Discovered::Broken`] instead of an
    /// error.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if `path` does not exist. [`Kind::Git`] if the repository is refused.
    pub fn find(path: &Path, trust: &Trust) -> Result<Option<Discovered>> {
        let directory = path
            .canonicalize()
            .context(Kind::BadInput, || format!("cannot open `{}`", path.display()))
            .map_err(|error| {
                error.hint("repeat the call when the directory is there, or name another one")
            })?;
        let start = if directory.is_dir() { &directory } else { directory.parent().unwrap_or(&directory) };
        Ok(discover::search(start, trust)?.map(|location| match &location.unreadable {
            None => Discovered::Repository(Box::new(Repository::at(location))),
            Some(unreadable) => Discovered::Broken(Broken {
                common_dir: location.common.path().to_owned(),
                error: unreadable.error(),
                work_dir: location.work_dir,
            }),
        }))
    }

    /// Opens the repository with the common directory `common_dir`, which an earlier search returned.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the directory is not a repository, cannot be opened or is refused.
    pub fn open(common_dir: &Path, trust: &Trust) -> Result<Repository> {
        discover::known(common_dir, trust).map(Repository::at)
    }

    fn at(location: Location) -> Repository {
        let objects = Arc::new(Objects::new(location.common.within("objects")));
        Repository {
            location,
            objects,
            packed: Packed::default(),
            graph: Mutex::default(),
            refs: Mutex::default(),
            words: Mutex::default(),
        }
    }

    /// Returns the canonical path of the directory that all worktrees of the repository share.
    pub fn common_dir(&self) -> PathBuf {
        self.location.common.path().to_owned()
    }

    /// Returns the canonical path of the root of the work tree, or `None` in a bare repository.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.location.work_dir.clone()
    }

    /// Returns whether the history ends early because the clone was made with `--depth`.
    pub fn is_shallow(&self) -> bool {
        self.shallow().is_ok_and(|commits| !commits.is_empty())
    }

    /// Returns whether some objects are in another repository (after `git clone --shared` or `--reference`) and are not
    /// read. Such objects are read only if the user has declared this repository trusted.
    pub fn lacks_alternates(&self) -> bool {
        self.objects.lacks_alternates
    }

    /// Returns whether neither `HEAD` nor any branch has a commit.
    pub fn is_empty(&self) -> bool {
        self.tips().found.is_empty()
    }

    /// Returns the commits at which a shallow history ends. For a complete history there are none.
    pub(super) fn shallow(&self) -> Result<Arc<HashSet<Sha>>> {
        let bytes = self.location.common.read("shallow", SHALLOW_LIMIT);
        let bytes = bytes.map_err(|fault| Error::new(Kind::Git, format!("the file `shallow` {fault}")))?;
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        Ok(Arc::new(text.lines().filter_map(|line| line.trim().parse().ok()).collect()))
    }

    /// Returns the branch and the commit that are checked out.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if `HEAD` cannot be read.
    pub fn head(&self) -> Result<Head> {
        let head = refs::head(&self.location, &self.packed);
        if let Some(fault) = head.fault {
            return Err(Error::new(Kind::Git, format!("cannot read `HEAD`: {fault}")));
        }
        let branch = head.name.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        Ok(Head { branch, commit: head.commit })
    }

    /// Returns the commits from which a walk of the whole history starts. The first is the commit that is checked out.
    /// The commits of the other branches follow, sorted by the names of the branches. At most 20,000 are returned.
    pub fn tips(&self) -> Tips {
        let head = refs::head(&self.location, &self.packed);
        let branches = refs::branches(&self.location, &self.packed);
        let checked_out = head.name.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        let first = head.commit.map(|sha| Tip { branch: checked_out.clone(), sha });
        let others = branches.found.into_iter().filter(|(name, _)| Some(name) != checked_out.as_ref());
        let mut faults: Vec<String> = head.fault.into_iter().chain(branches.faults).collect();
        faults.sort();
        faults.dedup();
        if branches.partial {
            faults.push(format!("only the first {} branches are read", refs::BRANCH_LIMIT));
        }
        let others = others.map(|(name, sha)| Tip { branch: Some(name), sha });
        Tips { found: first.into_iter().chain(others).collect(), faults }
    }

    /// Returns whether the object is in this clone. After a commit is rewritten, the old commit stays until git's
    /// garbage collection removes it.
    pub fn contains(&self, sha: &Sha) -> bool {
        self.objects.handle().contains(&sha.object_id())
    }

    /// Returns the blob at `path` in the commit that is checked out, or `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if `HEAD`, its commit or a tree on the way cannot be read.
    pub fn blob_at_head(&self, path: &str) -> Result<Option<Sha>> {
        match self.head()?.commit {
            Some(commit) => self.blob_at(&commit, path),
            None => Ok(None),
        }
    }

    /// Returns the blob at `path` in `commit`, or `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the commit or a tree on the way cannot be read.
    pub fn blob_at(&self, commit: &Sha, path: &str) -> Result<Option<Sha>> {
        look_up(&mut self.objects.handle(), &mut Vec::new(), commit, path)
    }
}

/// Returns the blob at `path` in `commit`, or `None` if there is no such file. Errors as [`Repository::blob_at`] does.
pub(super) fn look_up(
    objects: &mut Handle,
    buffer: &mut Vec<u8>,
    commit: &Sha,
    path: &str,
) -> Result<Option<Sha>> {
    let failed = |fault: String| {
        Error::new(Kind::Git, format!("cannot look up `{path}` in commit `{commit}`: {fault}"))
    };
    let mut at = commit::read(objects, commit, buffer).map_err(failed)?.tree;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if at.is_empty_tree() {
            return Ok(None);
        }
        let read = objects.read(&at, gix::objs::Kind::Tree, TREE_LIMIT, buffer);
        read.map_err(|fault| failed(fault.to_string()))?;
        let entries = gix::objs::TreeRefIter::from_bytes(buffer, gix::hash::Kind::Sha1);
        let entry = entries.map_while(std::result::Result::ok).find(|entry| entry.filename == part);
        match entry {
            None => return Ok(None),
            Some(entry) if parts.peek().is_some() == entry.mode.is_tree() => at = entry.oid.to_owned(),
            Some(_) => return Ok(None),
        }
    }
    Ok(Some(Sha::from(at.as_ref())))
}
