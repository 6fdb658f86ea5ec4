//! An opened repository: where it lies, what is checked out, where its branches point.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::commit;
use super::discover::refs::{self, Packed};
use super::discover::{self, Location, Trust};
use super::graph::Graph;
use super::objects::Objects;
use super::sha::Sha;
use crate::error::{Context, Error, Kind, Result};

/// Where a repository stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The branch checked out, also before its first commit; `None` when detached.
    pub branch: Option<String>,
    /// The commit checked out; `None` before the first commit, and when the reference is broken.
    pub commit: Option<Sha>,
}

/// Where a walk begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The branch, or `None` for a detached `HEAD`.
    pub branch: Option<String>,
    /// The commit it points at.
    pub sha: Sha,
}

/// Where a history begins, and what of that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Tips {
    /// The commit checked out first, then the other branches by name.
    pub found: Vec<Tip>,
    /// Which references were left out, and why.
    pub faults: Vec<String>,
}

/// What was found around a path.
pub enum Found {
    /// A repository.
    Repository(Box<Repository>),
    /// One that can't be read.
    Broken(Broken),
}

/// A repository that can't be read, but is the one that it says: its objects or references have another format, or its
/// configuration has a mistake.
#[derive(Debug)]
pub struct Broken {
    /// The directory that all its worktrees share, canonical.
    pub common_dir: PathBuf,
    /// The root of the work tree, canonical, or `None` in a bare repository.
    pub work_dir: Option<PathBuf>,
    /// Why it can't be read.
    pub error: Error,
}

/// An opened repository; shareable between threads, references are read afresh at every call.
pub struct Repository {
    pub(super) location: Location,
    pub(super) objects: Arc<Objects>,
    pub(super) packed: Packed,
    pub(super) graph: Mutex<Graph>,
    pub(super) refs: Mutex<KeptRefs>,
}

/// What references and reflogs named when they were read last.
#[derive(Default)]
pub(super) struct KeptRefs {
    pub(super) stamp: String,
    pub(super) tips: Arc<Vec<Sha>>,
    /// `None` until somebody asks.
    pub(super) logged: Option<Arc<Vec<Sha>>>,
}

/// Bytes of the list of commits that end a shallow history, at most: 400,000 commits.
const SHALLOW_LIMIT: u64 = 16 << 20;

/// The largest tree on the way to a file, in bytes.
const TREE_LIMIT: u64 = 16 << 20;

impl Repository {
    /// Returns the repository that `path` lies in, looking upwards to the root of the file system, or `None`.
    ///
    /// Finds linked worktrees and submodules (each a repository of its own); a path inside `.git` belongs to the
    /// repository whose `.git` that is. A bare repository is found where `trust` names it. Like git, the search stops at
    /// the border of a file system.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if `path` does not exist, [`Kind::Git`] if what was found cannot be opened (damaged
    /// configuration, a format that is not SHA-1, a link or a pipe in the place of a file) or is refused: it belongs to
    /// another user, or names a git directory that does not name it back.
    pub fn discover(path: &Path, trust: &Trust) -> Result<Option<Repository>> {
        match Repository::find(path, trust)? {
            None => Ok(None),
            Some(Found::Repository(repository)) => Ok(Some(*repository)),
            Some(Found::Broken(broken)) => Err(broken.error),
        }
    }

    /// Does what [`Repository::discover`] does, and says where a repository is that can't be read.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if `path` does not exist, [`Kind::Git`] if what was found is refused.
    pub fn find(path: &Path, trust: &Trust) -> Result<Option<Found>> {
        let directory =
            path.canonicalize().context(Kind::BadInput, || format!("cannot open `{}`", path.display()))?;
        let start = if directory.is_dir() { &directory } else { directory.parent().unwrap_or(&directory) };
        Ok(discover::search(start, trust)?.map(|location| match &location.trouble {
            None => Found::Repository(Box::new(Repository::at(location))),
            Some(trouble) => Found::Broken(Broken {
                common_dir: location.common.path().to_owned(),
                error: trouble.error(),
                work_dir: location.work_dir,
            }),
        }))
    }

    /// Opens the repository whose common directory `common_dir` is, known from before.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if it is no repository, cannot be opened or is refused.
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
        }
    }

    /// Returns the directory that all worktrees of the repository share, canonical.
    pub fn common_dir(&self) -> PathBuf {
        self.location.common.path().to_owned()
    }

    /// Returns the root of the work tree, canonical, or `None` in a bare repository.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.location.work_dir.clone()
    }

    /// Returns whether the repository has no work tree.
    pub fn is_bare(&self) -> bool {
        self.location.work_dir.is_none()
    }

    /// Returns whether the history ends early because the clone was made with `--depth`.
    pub fn is_shallow(&self) -> bool {
        self.shallow().is_ok_and(|commits| !commits.is_empty())
    }

    /// Returns whether objects of another repository belong to this one (`git clone --shared` or `--reference`), which
    /// are not read: the user has not said that it is trusted.
    pub fn lacks_alternates(&self) -> bool {
        self.objects.lacks_alternates
    }

    /// Returns whether this is a worktree made by `git worktree add`, sharing another's history.
    pub fn is_worktree(&self) -> bool {
        self.location.is_linked()
    }

    /// Returns whether there is nothing to import: no branch has a commit.
    pub fn is_empty(&self) -> bool {
        self.tips().found.is_empty()
    }

    /// Returns the commits that end a shallow history.
    pub(super) fn shallow(&self) -> Result<Arc<HashSet<Sha>>> {
        let bytes = self.location.common.read("shallow", SHALLOW_LIMIT);
        let bytes = bytes.map_err(|fault| Error::new(Kind::Git, format!("the file `shallow` {fault}")))?;
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
        Ok(Arc::new(text.lines().filter_map(|line| line.trim().parse().ok()).collect()))
    }

    /// Returns the branch and the commit checked out.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if `HEAD` cannot be read.
    pub fn head(&self) -> Result<Head> {
        let head = refs::head(&self.location, &self.packed);
        if let Some(fault) = head.fault {
            return Err(Error::new(Kind::Git, format!("cannot read what is checked out: {fault}")));
        }
        let branch = head.name.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        Ok(Head { branch, commit: head.commit })
    }

    /// Returns where the history begins: the commit checked out first, then the other branches by name, at most 20,000.
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
            faults.push(format!("there are more branches than the {} that are read", refs::BRANCH_LIMIT));
        }
        let others = others.map(|(name, sha)| Tip { branch: Some(name), sha });
        Tips { found: first.into_iter().chain(others).collect(), faults }
    }

    /// Returns whether the object is in this clone; false tells that a commit was rewritten away and collected.
    pub fn contains(&self, sha: &Sha) -> bool {
        self.objects.handle().contains(&sha.object_id())
    }

    /// Returns the blob at `path` in the commit checked out, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if a tree on the way cannot be read.
    pub fn blob_at_head(&self, path: &str) -> Result<Option<Sha>> {
        match self.head()?.commit {
            Some(commit) => self.blob_at(&commit, path),
            None => Ok(None),
        }
    }

    /// Returns the blob at `path` in `commit`, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// [`Kind::Git`] if the commit or a tree on the way cannot be read.
    pub fn blob_at(&self, commit: &Sha, path: &str) -> Result<Option<Sha>> {
        let failed = |fault: String| {
            Error::new(Kind::Git, format!("cannot look up `{path}` in commit `{commit}`: {fault}"))
        };
        let mut objects = self.objects.handle();
        let mut buffer = Vec::new();
        let mut at = commit::read(&mut objects, commit, &mut buffer).map_err(failed)?.tree;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if at.is_empty_tree() {
                return Ok(None);
            }
            let read = objects.read(&at, gix::objs::Kind::Tree, TREE_LIMIT, &mut buffer);
            read.map_err(|fault| failed(fault.to_string()))?;
            let entries = gix::objs::TreeRefIter::from_bytes(&buffer, gix::hash::Kind::Sha1);
            let entry = entries.map_while(std::result::Result::ok).find(|entry| entry.filename == part);
            match entry {
                None => return Ok(None),
                Some(entry) if parts.peek().is_some() == entry.mode.is_tree() => at = entry.oid.to_owned(),
                Some(_) => return Ok(None),
            }
        }
        Ok(Some(Sha::from(at.as_ref())))
    }
}
