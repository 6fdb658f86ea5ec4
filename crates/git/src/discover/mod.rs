//! Finds the repository that contains a path, and checks that it may be trusted.
//!
//! A repository from a stranger can point to the git directory of one of the user's repositories, with a `.git` file, a
//! link, or the file `commondir`. If Tiro accepted such a repository, an agent in it would read and write the memory of
//! the user's repository. So a git directory outside the work tree is accepted only if it points back to the work tree.
//! Git records the work tree in `worktrees/*/gitdir` for a linked worktree, and in `core.worktree` for a submodule. A
//! bare repository is accepted only if the user named it, not if the search finds it in a parent directory.
//! Repositories of other users are refused. These checks don't apply to repositories that the user trusts ([`Trust`]).

pub(super) mod files;
pub(super) mod refs;
pub(super) mod settings;
mod trust;
pub(crate) mod user;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use files::{Fault, Folder, PathKind, path_of};
use settings::Settings;
use tiro_base::error::{Error, Kind, Result};

pub use trust::Trust;
pub use user::excludes;

/// The maximum number of bytes that are read from a file that contains a path.
const PATH_LIMIT: u64 = 8 << 10;

/// The hint for a repository that is refused although it may be harmless.
const TRUST_IT: &str =
    "if you trust the author of the repository, add its directory to the option `git.trusted`";

/// The directories and settings of a repository.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// The git directory of this work tree.
    pub own: Folder,
    /// The git directory that all work trees share. In the main work tree, this directory is the same as `own`.
    pub common: Folder,
    /// The root of the work tree; `None` in a bare repository.
    pub work_dir: Option<PathBuf>,
    /// The settings in its configuration.
    pub settings: Settings,
    /// Why the repository can't be read, although it is trustworthy; `None` if it can be read.
    pub unreadable: Option<Unreadable>,
}

/// Why a trustworthy repository can't be read: its format is not supported, or its configuration has a mistake.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    message: String,
    hint: &'static str,
}

impl Unreadable {
    /// Returns an error with this message and hint.
    pub fn error(&self) -> Error {
        Error::new(Kind::Git, self.message.clone()).hint(self.hint)
    }
}

impl Location {
    /// Returns the location if the repository can be read, otherwise the reason as an error.
    pub fn whole(self) -> Result<Location> {
        match &self.unreadable {
            Some(unreadable) => Err(unreadable.error()),
            None => Ok(self),
        }
    }

    /// Returns whether this is a linked worktree, made by `git worktree add`.
    pub fn is_linked(&self) -> bool {
        self.own.path() != self.common.path()
    }
}

/// Returns the repository that contains the canonical directory `start`. Looks in `start` and each directory above it
/// in the same file system.
///
/// # Errors
///
/// [`Kind::Git`] if the repository is refused.
pub(super) fn search(start: &Path, trust: &Trust) -> Result<Option<Location>> {
    let mut bare = None;
    for directory in start.ancestors().take_while(|directory| is_same_device(start, directory)) {
        if let Some(place) = look(directory, trust)? {
            return Ok(Some(place));
        }
        let is_inside = directory.components().any(|part| part.as_os_str() == ".git");
        if !is_git_dir(directory) || (is_inside && !trust.names(directory)) {
            continue;
        }
        if trust.names(directory) || trust.covers(directory) {
            return open_bare(directory, trust).map(Some);
        }
        bare.get_or_insert(directory);
    }
    match bare {
        None => Ok(None),
        Some(directory) => {
            let message = format!(
                "`{}` looks like a bare repository, which Tiro opens only if you name it",
                directory.display()
            );
            Err(Error::new(Kind::Git, message).hint(format!(
                "if it is yours, name it: `--project {0}` or TIRO_PROJECT={0}",
                directory.display()
            )))
        }
    }
}

/// Returns the repository with the common directory `common`, which an earlier search returned.
///
/// # Errors
///
/// [`Kind::Git`] if there is no repository or it is refused.
pub(super) fn known(common: &Path, trust: &Trust) -> Result<Location> {
    locate(common, trust)?.whole()
}

fn locate(common: &Path, trust: &Trust) -> Result<Location> {
    let canonical =
        common.canonicalize().map_err(|error| cannot_read(common, Fault::Unreadable(error.kind())))?;
    let above = canonical.parent().filter(|_| canonical.ends_with(".git"));
    if let Some(place) = above.map(|above| look(above, trust)).transpose()?.flatten()
        && place.common.path() == canonical
    {
        return Ok(place);
    }
    if !is_git_dir(&canonical) {
        return Err(Error::new(Kind::Git, format!("`{}` is not a repository", common.display())));
    }
    let mut place = open_bare(&canonical, trust)?;
    // This may be the git directory of a submodule. In that case, its settings name a work tree, and the file `.git` in
    // the work tree points back to this directory.
    if let Some(work_dir) = named_work_dir(&place)
        && let Ok(Some(there)) = look(&work_dir, trust)
        && there.own.path() == canonical
    {
        place = there;
    }
    Ok(place)
}

/// Returns the repository whose work tree is the canonical `directory`, or `None` if `directory` is no work tree.
fn look(directory: &Path, trust: &Trust) -> Result<Option<Location>> {
    let dot_git = directory.join(".git");
    let is_trusted = trust.covers(directory);
    match PathKind::at(&dot_git) {
        PathKind::Nothing => Ok(None),
        PathKind::Folder if !is_git_dir(&dot_git) => Ok(None),
        PathKind::Folder => {
            let own = Folder::new(dot_git, is_trusted);
            let common = common_dir(&own, None)?;
            open(directory, own, common, trust).map(Some)
        }
        PathKind::File => elsewhere(directory, named_git_dir(directory, &dot_git)?, trust).map(Some),
        PathKind::Link => match dot_git.canonicalize() {
            Ok(target) if target.is_dir() => elsewhere(directory, target, trust).map(Some),
            _ => Err(cannot_read(&dot_git, Fault::Link)),
        },
        PathKind::Special => Err(cannot_read(&dot_git, Fault::Special)),
    }
}

/// Opens the repository with the work tree `directory` and the git directory `git_dir`, which is outside `directory`.
/// Both paths are canonical.
fn elsewhere(directory: &Path, git_dir: PathBuf, trust: &Trust) -> Result<Location> {
    if !is_git_dir(&git_dir) {
        let message = format!("`{}` does not point to a git directory", directory.join(".git").display());
        return Err(Error::new(Kind::Git, message).hint("check it with `git status`"));
    }
    let is_trusted = trust.covers(directory);
    let own = Folder::new(git_dir, is_trusted);
    let common = common_dir(&own, Some(directory))?;
    let place = open(directory, own, common, trust)?;
    // In a common layout a bare repository is in `.bare`, and its worktrees are next to it.
    let is_beside = place.own.path() == directory.join(".bare");
    let names_back = || named_work_dir(&place).as_deref() == Some(directory);
    if place.is_linked() || is_trusted || is_beside || names_back() {
        return Ok(place);
    }
    // If the repository can't be read, it is unknown whether it points back to the work tree. So the error only says
    // why it can't be read.
    place.whole()?;
    let message = format!(
        "`{}` points to a git directory that does not point back to this work tree",
        directory.join(".git").display()
    );
    Err(Error::new(Kind::Git, message).hint(TRUST_IT))
}

/// Opens `git_dir` as a repository without a work tree.
fn open_bare(git_dir: &Path, trust: &Trust) -> Result<Location> {
    let own = Folder::new(git_dir.to_owned(), trust.covers(git_dir));
    let common = common_dir(&own, None)?;
    let mut place = open(git_dir, own, common, trust)?;
    place.work_dir = None;
    Ok(place)
}

fn open(directory: &Path, own: Folder, common: Folder, trust: &Trust) -> Result<Location> {
    let is_trusted = trust.covers(directory);
    if !is_trusted {
        let dot_git = directory.join(".git");
        for path in [directory, &dot_git, own.path(), common.path()] {
            if let Ok(metadata) = path.symlink_metadata()
                && !trust.owns(&metadata)
            {
                let message = format!("`{}` belongs to another user", path.display());
                return Err(Error::new(Kind::Git, message).hint(TRUST_IT));
            }
        }
    }
    for (folder, name) in [(&own, "HEAD"), (&common, "objects"), (&common, "refs")] {
        let fault = match (name, folder.look(name)) {
            // Old versions of git wrote `HEAD` as a link. The link's target is read as text; the link is not followed.
            ("HEAD", PathKind::File | PathKind::Link) => continue,
            (_, PathKind::Folder) if name != "HEAD" => continue,
            (_, PathKind::Link) => Fault::Link,
            (_, PathKind::Special) => Fault::Special,
            ("HEAD", PathKind::Folder) => Fault::Folder,
            _ => Fault::Content,
        };
        return Err(cannot_read(&folder.path().join(name), fault));
    }
    let (settings, mut unreadable) = match settings::read(&common, &own) {
        Ok(settings) => (settings, None),
        Err((path, Fault::Content)) => {
            let message = format!("cannot read the repository: `{}` {}", path.display(), Fault::Content);
            let unreadable = Unreadable { message, hint: "`git config --list` shows where the mistake is" };
            (Settings::default(), Some(unreadable))
        }
        Err((path, fault)) => return Err(cannot_read(&path, fault)),
    };
    if let Some(foreign) = settings.foreign {
        let message = format!("cannot read the repository `{}`: {foreign}", directory.display());
        let hint = "Tiro reads repositories that name objects by SHA-1 and keep references in files";
        unreadable = Some(Unreadable { message, hint });
    }
    let is_linked = own.path() != common.path();
    let work_dir = Some(directory.to_owned()).filter(|_| is_linked || !settings.bare);
    Ok(Location { own, common, work_dir, settings, unreadable })
}

/// Returns the git directory that all work trees share: the directory that the file `commondir` in `own` names, or
/// `own` itself if there is no such file. Refuses the named directory unless `own` is one of its `worktrees`, and `own`
/// points back to the work tree `directory`.
fn common_dir(own: &Folder, directory: Option<&Path>) -> Result<Folder> {
    let path = own.path().join("commondir");
    let failed = |fault| cannot_read(&path, fault);
    let Some(named) = own.read("commondir", PATH_LIMIT).map_err(failed)? else { return Ok(own.clone()) };
    let named = path_of(named.trim_ascii_end()).ok_or_else(|| failed(Fault::Content))?;
    let common = own.path().join(named).canonicalize();
    let common = common.map_err(|_| failed(Fault::Content))?;
    let follows = own.follows();
    let is_listed = own.path().parent() == Some(&common.join("worktrees"));
    let back = || {
        let back = own.read("gitdir", PATH_LIMIT).ok()??;
        let back = own.path().join(path_of(back.trim_ascii_end())?);
        back.ends_with(".git").then(|| back.parent()?.canonicalize().ok()).flatten()
    };
    if follows || (is_listed && directory.is_some() && back().as_deref() == directory) {
        return Ok(Folder::new(common, follows));
    }
    let message =
        format!("`{}` points to a repository that does not point back to this work tree", path.display());
    Err(Error::new(Kind::Git, message).hint(match is_listed {
        true => {
            format!("if a work tree was moved, run `git worktree repair` in the main work tree; {TRUST_IT}")
        }
        false => TRUST_IT.to_owned(),
    }))
}

/// Returns the canonical path of the git directory that the file `.git` in `directory` names.
fn named_git_dir(directory: &Path, dot_git: &Path) -> Result<PathBuf> {
    let failed = |fault| cannot_read(dot_git, fault);
    let text = Folder::new(directory.to_owned(), false).read(".git", PATH_LIMIT).map_err(failed)?;
    let text = text.unwrap_or_default();
    let named = text.strip_prefix(b"gitdir: ").and_then(|named| path_of(named.trim_ascii_end()));
    let named = named.ok_or_else(|| failed(Fault::Content))?;
    directory.join(named).canonicalize().map_err(|_| {
        Error::new(Kind::Git, format!("`{}` names a directory that does not exist", dot_git.display()))
            .hint("repair it with `git worktree repair` or `git submodule update --init`")
    })
}

/// Returns the canonical path of the work tree that the repository's configuration names.
fn named_work_dir(place: &Location) -> Option<PathBuf> {
    place.own.path().join(place.settings.work_tree.as_ref()?).canonicalize().ok()
}

/// Returns whether a directory has the layout of a git directory.
fn is_git_dir(directory: &Path) -> bool {
    let found = |name: &str| PathKind::at(&directory.join(name));
    if found("HEAD") == PathKind::Nothing {
        return false;
    }
    let is_folder = |name: &str| matches!(found(name), PathKind::Folder | PathKind::Link);
    (is_folder("objects") && is_folder("refs")) || found("commondir") != PathKind::Nothing
}

fn cannot_read(path: &Path, fault: Fault) -> Error {
    let hint = match fault {
        Fault::Link => TRUST_IT,
        Fault::Special => {
            "reading it could block forever; check where the repository comes from, then remove the file"
        }
        _ => "check the repository with `git fsck`, and check where it comes from",
    };
    Error::new(Kind::Git, format!("cannot read the repository: `{}` {fault}", path.display())).hint(hint)
}

#[cfg(unix)]
fn is_same_device(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    device(one) == device(other)
}

#[cfg(not(unix))]
fn is_same_device(_: &Path, _: &Path) -> bool {
    true
}
