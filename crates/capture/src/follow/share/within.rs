//! Finds out whether directories lie in a project and not in another project inside it.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::follow::link::WorkTrees;
use crate::sources::{Finder, Sources};

/// Knows which directories lie in a project.
pub struct Within<'a> {
    finder: &'a Finder,
    work_trees: &'a WorkTrees,
    /// The path that identifies the project, see [`Finder::place`].
    own: Option<PathBuf>,
    /// Roots of this project that no longer exist, in addition to those of `work_trees`.
    formerly: Vec<PathBuf>,
    /// Roots of other projects, including roots that no longer exist. They may lie inside this project.
    others: Vec<PathBuf>,
    known: HashMap<String, Whose>,
}

/// The project to which a directory belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The directory belongs to this project.
    Ours,
    /// The directory belongs to another repository or project.
    Others,
    /// The directory exists, but belongs to no known project.
    Nobodys,
    /// The directory no longer exists, and nothing shows to which project it belonged.
    Gone,
}

impl<'a> Within<'a> {
    /// Returns an instance for the project at `work_trees`. `others` are roots of other projects, including roots that
    /// no longer exist.
    pub fn new(sources: &'a Sources, work_trees: &'a WorkTrees, others: &[PathBuf]) -> Within<'a> {
        let (finder, own) = (&sources.machine.finder, sources.place(&work_trees.root));
        let others = others.to_vec();
        Within { finder, work_trees, own, formerly: Vec::new(), others, known: HashMap::new() }
    }

    /// Returns the project's work trees.
    pub fn work_trees(&self) -> &'a WorkTrees {
        self.work_trees
    }

    /// Adds a root of this project that no longer exists.
    pub fn add_former(&mut self, root: PathBuf) {
        self.formerly.push(root);
    }

    /// Adds a root of another project that no longer exists.
    pub fn add_others(&mut self, root: PathBuf) {
        self.others.push(root);
    }

    /// Returns whether `directory` lies in the project.
    pub fn has(&mut self, directory: &str) -> bool {
        self.whose(directory) == Whose::Ours
    }

    /// Returns whether `directory` lies in another project.
    pub fn is_others(&mut self, directory: &str) -> bool {
        self.whose(directory) == Whose::Others
    }

    /// Returns the project to which `directory` belongs.
    pub fn whose(&mut self, directory: &str) -> Whose {
        if directory.is_empty() {
            return Whose::Nobodys;
        }
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let whose = self.find(Path::new(directory));
        self.known.insert(directory.to_owned(), whose);
        whose
    }

    fn find(&mut self, directory: &Path) -> Whose {
        let Ok(there) = directory.canonicalize() else { return self.find_gone(&plain(directory)) };
        let (ours, others) = (innermost(&self.work_trees.roots(), &there), innermost(&self.others, &there));
        match self.finder.place_and_repository(&there) {
            Ok(Some((place, _))) if self.own.as_ref() == Some(&place) => Whose::Ours,
            // The path that identifies a repository is its git directory.
            Ok(Some((place, repository))) if repository.is_some() || place != there => Whose::Others,
            // A repository that can't be opened has no memory of its own, so its directory belongs to this project.
            Err(_) if ours > 0 => Whose::Ours,
            Err(_) => Whose::Others,
            Ok(_) if ours > 0 && ours >= others => Whose::Ours,
            Ok(_) if others > 0 => Whose::Others,
            Ok(_) => Whose::Nobodys,
        }
    }

    fn find_gone(&mut self, directory: &Path) -> Whose {
        let former =
            innermost(&self.work_trees.formerly, directory).max(innermost(&self.formerly, directory));
        let others = innermost(&self.others, directory);
        if former.max(others) > innermost(&self.work_trees.roots(), directory) {
            return if former >= others { Whose::Ours } else { Whose::Others };
        }
        // The directory is gone, so the nearest existing folder above it decides.
        let there = directory.ancestors().skip(1).find(|above| above.exists());
        match there.and_then(Path::to_str).map(|there| self.whose(there)) {
            Some(whose @ (Whose::Ours | Whose::Others)) => whose,
            _ => Whose::Gone,
        }
    }

    /// Returns whether `directory` lies below a root of the project. It may lie in another project there.
    pub fn may_have(&mut self, directory: &str) -> bool {
        let path = plain(Path::new(directory));
        let is_beneath = |path: &Path| {
            innermost(&self.work_trees.roots(), path) + innermost(&self.work_trees.formerly, path) > 0
        };
        is_beneath(&path) || path.canonicalize().is_ok_and(|real| is_beneath(&real))
    }

    /// Returns whether the project lies below `directory`.
    pub fn is_beneath(&self, directory: &str) -> bool {
        if directory.is_empty() {
            // An empty path would count as a folder above every path.
            return false;
        }
        let directory = Path::new(directory);
        let canonical = directory.canonicalize();
        let directory = canonical.as_deref().unwrap_or(directory);
        self.work_trees.roots().iter().any(|root| root.starts_with(directory))
    }
}

/// Returns the number of components of the longest path in `roots` that contains `path`. Returns 0 if none contains it.
fn innermost(roots: &[PathBuf], path: &Path) -> usize {
    let roots = roots.iter().filter(|root| path.starts_with(root));
    roots.map(|root| root.components().count()).max().unwrap_or_default()
}

/// Returns `path` with `.` and `..` resolved, without reading the file system.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
