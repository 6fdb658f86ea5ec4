//! The path policy. The policy decides which files of the user may be read.
//!
//! [`Roots`] is the only way to a file. A caller passes a path as text and gets a [`FilePath`], which only `Roots` can
//! make. Bytes are read only from an [`Opened`] file, which only [`Roots::open`] can make. A path passes under three
//! conditions. The real place of the path, with all links followed, lies below the project's root or below a folder
//! that the user allowed. No name in the given path or in the real path says that the file contains secrets. The file
//! is not Tiro's own data. A hard link to a file with secrets is refused when it is opened, as far as its other name
//! can be found (`linked.rs`).
//!
//! A `FilePath` is a real path without links. Such a path is opened from the root, one name at a time, without
//! following links (`folder.rs`). So a link that replaces a file or a folder after the check is refused. Whatever other
//! programs do at the same time, no file outside of the roots is opened. A link within a root is followed if its target
//! passes as well.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::folder::{self, Entry, Folder};
use super::linked::{Linked, Within};
use super::names;
use super::refusal::Refusal;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::thread::Stat;

/// The folders below which files may be read.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<Root>,
    /// Tiro's own folders, as real paths.
    own: Vec<PathBuf>,
    /// The file with the user's rules for all repositories.
    excludes: Option<PathBuf>,
    /// The real paths of files that the user allowed although their names say that they contain secrets.
    secrets: Vec<PathBuf>,
    /// The user's home directory.
    home: Option<PathBuf>,
    /// The hard links to secrets. The links are searched when a file with several names is opened for the first time.
    linked: OnceLock<Linked>,
    /// The allowed folders that can't be used, with the reasons.
    pub unusable: Vec<(PathBuf, Refusal)>,
}

#[derive(Debug)]
struct Root {
    /// The path by which the user names the root.
    given: PathBuf,
    real: PathBuf,
    folder: Folder,
}

/// The real path of a file or a folder below a root. Only [`Roots`] can make it.
#[derive(Clone, Debug, Eq)]
pub struct FilePath {
    /// The index of the root. The project's root is the first.
    root: usize,
    /// The path relative to the root. The path consists only of names, without links, `.` and `..`.
    below: PathBuf,
}

/// Paths are compared as bytes, which is enough because each path is written in only one way. A comparison of `Path`s
/// would first divide both paths into names.
impl PartialEq for FilePath {
    fn eq(&self, other: &FilePath) -> bool {
        (self.root, self.below.as_os_str()) == (other.root, other.below.as_os_str())
    }
}

impl Hash for FilePath {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.root, self.below.as_os_str()).hash(hasher);
    }
}

impl FilePath {
    /// Returns the path of the entry `name` of this folder.
    pub(super) fn join(&self, name: &std::ffi::OsStr) -> FilePath {
        FilePath { root: self.root, below: self.below.join(name) }
    }

    /// Returns whether it is below the project's root.
    pub(super) fn is_of_project(&self) -> bool {
        self.root == 0
    }

    /// Returns the folder that contains it. Returns `None` for a root.
    pub(super) fn parent(&self) -> Option<FilePath> {
        Some(FilePath { root: self.root, below: self.below.parent()?.to_owned() })
    }

    /// Returns the path relative to the root.
    pub(super) fn below(&self) -> &Path {
        &self.below
    }
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathTarget {
    /// A file.
    File(FilePath),
    /// A folder.
    Folder(FilePath),
}

/// A regular file that passed the policy and is open.
#[derive(Debug)]
pub struct Opened {
    /// The open file.
    pub(super) file: File,
    /// The metadata of the file when it was opened.
    pub stat: Stat,
}

impl Roots {
    /// Returns the policy for the project in `project`. Files below `others`, the folders that the user allowed, may be
    /// read too. Files below `own`, Tiro's own folders, are never read.
    ///
    /// # Errors
    ///
    /// [`tiro_base::error::Kind::BadInput`] if `project` is not a folder that can be read. A folder of `others` that can't
    /// be read is listed in `unusable`.
    pub fn new(project: &Path, others: &[PathBuf], own: &[PathBuf]) -> Result<Roots> {
        let project_root = Root::open(project).map_err(|refusal| {
            Error::bad_input(format!("the project's root `{}` {refusal}", quoted(project.display())))
        })?;
        let mut roots = Roots {
            roots: vec![project_root],
            own: own.iter().map(real).collect(),
            excludes: None,
            secrets: Vec::new(),
            home: None,
            linked: OnceLock::new(),
            unusable: Vec::new(),
        };
        for other in others {
            match Root::open(other) {
                Ok(root) => roots.roots.push(root),
                Err(refusal) => roots.unusable.push((other.clone(), refusal)),
            }
        }
        Ok(roots)
    }

    /// Returns the policy with `excludes`, the file with the user's ignore rules for all repositories.
    pub fn with_excludes(self, excludes: Option<PathBuf>) -> Roots {
        Roots { excludes, ..self }
    }

    /// Returns the policy with `home`, in which hard links to the user's secrets are searched as well.
    pub fn with_home(self, home: Option<PathBuf>) -> Roots {
        Roots { home, ..self }
    }

    /// Returns the policy with `secrets`, the files that the user allowed although their names say that they contain
    /// secrets. Each path is relative to the project's root, or absolute.
    pub fn with_secrets(self, secrets: &[String]) -> Roots {
        // Links are not followed, because the author of a link could make the allowed name lead to another file with
        // secrets.
        let named = |path: &String| {
            let path = self.roots[0].real.join(path);
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) => real(&folder.to_owned()).join(name),
                _ => path,
            }
        };
        let secrets = secrets.iter().map(named).collect();
        Roots { secrets, ..self }
    }

    /// Checks the name of a file and the names of its folders.
    pub(super) fn check_name(&self, path: &FilePath) -> Result<(), Refusal> {
        match names::check_file(&path.below) {
            Err(Refusal::Secret) if self.is_allowed(path) => names::check_folder(&path.below),
            checked => checked,
        }
    }

    /// Checks the path of a file that is only in a commit, relative to the project's root.
    pub fn check_gone(&self, path: &str) -> Result<(), Refusal> {
        self.check_name(&FilePath { root: 0, below: PathBuf::from(path) })
    }

    /// Returns whether the user allowed the file although it contains secrets.
    fn is_allowed(&self, path: &FilePath) -> bool {
        self.secrets.contains(&self.roots[path.root].real.join(&path.below))
    }

    /// Checks the other names of an open file, if it has any.
    fn check_links(&self, file: &File, path: &FilePath) -> Result<(), Refusal> {
        let Some(id) = folder::linked(file).filter(|_| !self.is_allowed(path)) else { return Ok(()) };
        match self.linked.get_or_init(|| self.look_for_links()).has(id) {
            true => Err(Refusal::SecretLink),
            false => Ok(()),
        }
    }

    /// Finds the files with several names of which at least one says that the file contains secrets.
    fn look_for_links(&self) -> Linked {
        let mut linked = Linked::default();
        let home = self.home.as_deref().and_then(|home| Folder::at(home).ok());
        if let Some(home) = home {
            linked.look(&home, Within::Secrets, &|path| names::check_file(path) == Err(Refusal::Secret));
        }
        for (index, root) in self.roots.iter().enumerate() {
            let is_secret = |path: &Path| {
                self.check_name(&FilePath { root: index, below: path.to_owned() }) == Err(Refusal::Secret)
            };
            linked.look(&root.folder, Within::Everything, &is_secret);
        }
        linked
    }

    /// Finds the target of `path`, which is relative to the project's root or absolute. Opens nothing.
    pub fn resolve(&self, path: &str) -> Result<PathTarget, Refusal> {
        if path.is_empty() || path.contains('\0') {
            return Err(Refusal::Name);
        }
        if path == "~" || path.starts_with("~/") {
            return Err(Refusal::Tilde);
        }
        self.find(&self.roots[0].real.join(path))
    }

    /// Returns a path that leads to the same place as `path`, but has no name that contains a secret. For example, the
    /// name of a folder above the project may contain one. If no name in `path` contains a secret, returns `path`. If
    /// there is no such path, returns `None`.
    pub fn without_secret(&self, path: &str) -> Option<String> {
        if names::check_no_secret(Path::new(path)).is_ok() {
            return Some(path.to_owned());
        }
        let (PathTarget::File(found) | PathTarget::Folder(found)) = self.resolve(path).ok()?;
        let shown = self.shown(&found);
        Some(if shown.is_empty() { ".".to_owned() } else { shown })
    }

    /// Finds the target of the link at `path`. Opens nothing.
    pub(super) fn follow(&self, path: &FilePath) -> Result<PathTarget, Refusal> {
        self.find(&self.roots[path.root].real.join(&path.below))
    }

    fn find(&self, path: &Path) -> Result<PathTarget, Refusal> {
        let given = self
            .roots
            .iter()
            .find_map(|root| path.strip_prefix(&root.given).or_else(|_| path.strip_prefix(&root.real)).ok());
        if let Some(given) = given {
            names::check_folder(given)?;
        }
        let is_plain = !path.components().any(|part| part == std::path::Component::ParentDir);
        let found = match fs::canonicalize(path) {
            Ok(real) => self.below(&real)?,
            // The error must not reveal whether a file outside of the roots exists.
            Err(_) if given.is_none() || !is_plain => return Err(Refusal::Outside),
            Err(error) => return Err(Refusal::of(&error)),
        };
        names::check_folder(&found.below)?;
        if found.root > 0 {
            // The path of this root is checked too, because files below it are shown with their whole paths.
            names::check_no_secret(&self.roots[found.root].real)?;
        }
        self.check_owner(&found)?;
        if found.below.as_os_str().is_empty() {
            return Ok(PathTarget::Folder(found));
        }
        let real = self.roots[found.root].real.join(&found.below);
        let metadata = fs::symlink_metadata(real).map_err(|error| Refusal::of(&error))?;
        if metadata.is_dir() {
            return Ok(PathTarget::Folder(found));
        }
        self.check_name(&found)?;
        given.filter(|_| !self.is_allowed(&found)).map_or(Ok(()), names::check_file)?;
        match metadata.file_type() {
            kind if kind.is_file() => Ok(PathTarget::File(found)),
            kind if kind.is_symlink() => Err(Refusal::Replaced),
            _ => Err(Refusal::Special),
        }
    }

    /// Returns the place of the real path `real` below a root. The root is the project's root, or the innermost of the
    /// other roots.
    fn below(&self, real: &Path) -> Result<FilePath, Refusal> {
        let found = self.roots.iter().enumerate().filter_map(|(index, root)| {
            let below = real.strip_prefix(&root.real).ok()?;
            Some(FilePath { root: index, below: below.to_owned() })
        });
        let length = |path: &FilePath| (path.root != 0, path.below.as_os_str().len(), path.root);
        found.min_by_key(length).ok_or(Refusal::Outside)
    }

    /// Checks that `path` doesn't belong to Tiro's own data.
    pub(super) fn check_owner(&self, path: &FilePath) -> Result<(), Refusal> {
        let real = self.roots[path.root].real.join(&path.below);
        match self.own.iter().any(|own| real.starts_with(own)) {
            true => Err(Refusal::Own),
            false => Ok(()),
        }
    }

    /// Opens a regular file, without following links and without blocking.
    pub fn open(&self, path: &FilePath) -> Result<Opened, Refusal> {
        self.check_name(path)?;
        self.check_owner(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.below.file_name()) else {
            return Err(Refusal::Folder);
        };
        let (file, stat) = self.folder(&parent)?.open(name)?;
        self.check_links(&file, path)?;
        Ok(Opened { file, stat })
    }

    /// Opens a folder, without following links.
    pub(super) fn folder(&self, path: &FilePath) -> Result<Folder, Refusal> {
        names::check_folder(&path.below)?;
        self.check_owner(path)?;
        let root = &self.roots[path.root];
        let mut folder = root.folder.again()?;
        for name in path.below.iter() {
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    /// Opens the file with the user's rules for all repositories, if there is one. The path of this file may be a link.
    pub(super) fn excludes(&self) -> Result<Option<(File, Stat)>, Refusal> {
        let Some(path) = &self.excludes else { return Ok(None) };
        let real = fs::canonicalize(path).map_err(|error| Refusal::of(&error));
        let opened = real.and_then(|real| match (real.parent(), real.file_name()) {
            (Some(folder), Some(name)) => Folder::at(folder)?.open(name),
            _ => Err(Refusal::Folder),
        });
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(Refusal::Missing) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Opens `.git/info/exclude` of the root of `path`, if there is such a file. No other file of git is read, and only
    /// the rules about what to ignore are used.
    pub(super) fn exclude(&self, path: &FilePath) -> Result<Option<(File, Stat)>, Refusal> {
        let root = &self.roots[path.root].folder;
        match root.look(".git".as_ref()) {
            Ok(Entry::Folder) => {}
            _ => return Ok(None),
        }
        let opened = root
            .enter(".git".as_ref())
            .and_then(|git| git.enter("info".as_ref()))
            .and_then(|info| info.open("exclude".as_ref()));
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(Refusal::Missing) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Returns the path in the form in which answers show it: relative to the project's root with `/` between names, or
    /// absolute if it is below another root. All names are valid UTF-8.
    pub(super) fn shown(&self, path: &FilePath) -> String {
        let shown = match path.root {
            0 => path.below.to_string_lossy().into_owned(),
            root => self.roots[root].real.join(&path.below).to_string_lossy().into_owned(),
        };
        if cfg!(windows) { shown.replace('\\', "/") } else { shown }
    }
}

impl Root {
    fn open(given: &Path) -> Result<Root, Refusal> {
        let real = fs::canonicalize(given).map_err(|error| Refusal::of(&error))?;
        let folder = Folder::at(&real)?;
        Ok(Root { given: given.to_owned(), real, folder })
    }
}

/// Returns the real path of a folder that may not exist yet.
fn real(path: &PathBuf) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.clone())
}
