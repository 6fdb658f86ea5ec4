//! Which repository a path belongs to, and whether it is what it says.
//!
//! A repository that came from elsewhere can name another one's git directory: in a `.git` file, in a link, in
//! `commondir`. Taken at its word it would read and write that one's memory. So a git directory that lies elsewhere is
//! accepted only where it names the work tree back, as git writes it down on both sides: a linked worktree in
//! `worktrees/*/gitdir`, a submodule in `core.worktree`. A bare repository is accepted where the user named it, not
//! where it is met on the way up; what belongs to another user is refused. What the user trusts ([`Trust`]) is taken as it
//! is.

pub(super) mod files;
pub(super) mod refs;
pub(super) mod settings;
mod trust;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use files::{Fault, Folder, Found, path_of};
use settings::Settings;

pub use trust::Trust;

/// Bytes of a file that names a directory, at most.
const PATH_LIMIT: u64 = 8 << 10;

/// What to try where a repository is refused that an honest person may have made.
const TRUST_IT: &str = "if you know who made it, name the directory in the option `git.trusted`";

/// Where a repository is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// The git directory of this work tree.
    pub own: Folder,
    /// The git directory that all work trees share.
    pub common: Folder,
    /// The root of the work tree; none in a bare repository.
    pub work_dir: Option<PathBuf>,
    /// What its configuration says.
    pub settings: Settings,
    /// Why it can't be read, although it is the one that it says.
    pub trouble: Option<Trouble>,
}

/// Why a repository can't be read that is the one that it says: its format, or a mistake in its configuration.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    message: String,
    hint: &'static str,
}

impl Trouble {
    /// Returns it as an error.
    pub fn error(&self) -> Error {
        Error::new(Kind::Git, self.message.clone()).hint(self.hint)
    }
}

impl Location {
    /// Returns the place of a repository that can be read.
    pub fn whole(self) -> Result<Location> {
        match &self.trouble {
            Some(trouble) => Err(trouble.error()),
            None => Ok(self),
        }
    }

    /// Whether this is a work tree made by `git worktree add`.
    pub fn is_linked(&self) -> bool {
        self.own.path() != self.common.path()
    }
}

/// Returns the repository that the canonical directory `start` lies in, looking upwards within its file system.
///
/// Errors with [`Kind::Git`] where what is found is refused.
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
                "`{}` looks like a bare repository, and is one only by your word",
                directory.display()
            );
            Err(Error::new(Kind::Git, message).hint(format!(
                "if it is yours, name it: `--project {0}` or TIRO_PROJECT={0}",
                directory.display()
            )))
        }
    }
}

/// Returns the repository whose common directory is `common`: one that was known before.
///
/// Errors with [`Kind::Git`] where there is none or it is refused.
pub(super) fn known(common: &Path, trust: &Trust) -> Result<Location> {
    stands(common, trust)?.whole()
}

fn stands(common: &Path, trust: &Trust) -> Result<Location> {
    let canonical =
        common.canonicalize().map_err(|error| unreadable(common, Fault::Unreadable(error.kind())))?;
    let above = canonical.parent().filter(|_| canonical.ends_with(".git"));
    if let Some(place) = above.map(|above| look(above, trust)).transpose()?.flatten()
        && place.common.path() == canonical
    {
        return Ok(place);
    }
    if !is_git_dir(&canonical) {
        return Err(Error::new(Kind::Git, format!("`{}` is no repository", common.display())));
    }
    let mut place = open_bare(&canonical, trust)?;
    // A submodule's work tree leads here.
    if let Some(work_dir) = named_work_dir(&place)
        && let Ok(Some(there)) = look(&work_dir, trust)
        && there.own.path() == canonical
    {
        place = there;
    }
    Ok(place)
}

/// Returns the repository whose work tree is the canonical `directory`, where one is.
fn look(directory: &Path, trust: &Trust) -> Result<Option<Location>> {
    let dot_git = directory.join(".git");
    let is_trusted = trust.covers(directory);
    match Found::at(&dot_git) {
        Found::Nothing => Ok(None),
        Found::Folder if !is_git_dir(&dot_git) => Ok(None),
        Found::Folder => {
            let own = Folder::new(dot_git, is_trusted);
            let common = common_dir(&own, None)?;
            open(directory, own, common, trust).map(Some)
        }
        Found::File => elsewhere(directory, named_git_dir(directory, &dot_git)?, trust).map(Some),
        Found::Link => match dot_git.canonicalize() {
            Ok(target) if target.is_dir() => elsewhere(directory, target, trust).map(Some),
            _ => Err(unreadable(&dot_git, Fault::Link)),
        },
        Found::Special => Err(unreadable(&dot_git, Fault::Special)),
    }
}

/// Opens the repository of `directory` whose git directory lies at the canonical `git_dir`.
fn elsewhere(directory: &Path, git_dir: PathBuf, trust: &Trust) -> Result<Location> {
    if !is_git_dir(&git_dir) {
        let message = format!("`{}` names no git directory", directory.join(".git").display());
        return Err(Error::new(Kind::Git, message).hint("check it with `git status`"));
    }
    let is_trusted = trust.covers(directory);
    let own = Folder::new(git_dir, is_trusted);
    let common = common_dir(&own, Some(directory))?;
    let place = open(directory, own, common, trust)?;
    // The usual layout of a bare repository with its worktrees beside it.
    let is_beside = place.own.path() == directory.join(".bare");
    let names_back = || named_work_dir(&place).as_deref() == Some(directory);
    if place.is_linked() || is_trusted || is_beside || names_back() {
        return Ok(place);
    }
    // What it can't say for itself isn't believed.
    place.whole()?;
    let message =
        format!("`{}` names a git directory that does not name it back", directory.join(".git").display());
    Err(Error::new(Kind::Git, message).hint(TRUST_IT))
}

/// Opens a git directory that has no work tree.
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
            // Git once wrote `HEAD` as a link; it is read as text, not followed.
            ("HEAD", Found::File | Found::Link) => continue,
            (_, Found::Folder) if name != "HEAD" => continue,
            (_, Found::Link) => Fault::Link,
            (_, Found::Special) => Fault::Special,
            ("HEAD", Found::Folder) => Fault::Folder,
            _ => Fault::Content,
        };
        return Err(unreadable(&folder.path().join(name), fault));
    }
    let (settings, mut trouble) = match settings::read(&common, &own) {
        Ok(settings) => (settings, None),
        Err((path, Fault::Content)) => {
            let message = format!("cannot read the repository: `{}` {}", path.display(), Fault::Content);
            let trouble = Trouble { message, hint: "`git config --list` says where the mistake is" };
            (Settings::default(), Some(trouble))
        }
        Err((path, fault)) => return Err(unreadable(&path, fault)),
    };
    if let Some(foreign) = settings.foreign {
        let message = format!("cannot read the repository `{}`: {foreign}", directory.display());
        let hint = "Tiro reads repositories whose objects are named by SHA-1 and whose references are files";
        trouble = Some(Trouble { message, hint });
    }
    let is_linked = own.path() != common.path();
    let work_dir = Some(directory.to_owned()).filter(|_| is_linked || !settings.bare);
    Ok(Location { own, common, work_dir, settings, trouble })
}

/// Returns the directory that the work trees of a repository share: `own`, or the one that it names and that names it,
/// and the work tree in `directory`, back.
fn common_dir(own: &Folder, directory: Option<&Path>) -> Result<Folder> {
    let path = own.path().join("commondir");
    let failed = |fault| unreadable(&path, fault);
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
    let message = format!("`{}` names another repository, which does not name it back", path.display());
    Err(Error::new(Kind::Git, message).hint(match is_listed {
        true => {
            format!("run `git worktree repair` in the main work tree if one of them was moved; {TRUST_IT}")
        }
        false => TRUST_IT.to_owned(),
    }))
}

/// Returns the git directory that the file `.git` in `directory` names, canonical.
fn named_git_dir(directory: &Path, dot_git: &Path) -> Result<PathBuf> {
    let failed = |fault| unreadable(dot_git, fault);
    let text = Folder::new(directory.to_owned(), false).read(".git", PATH_LIMIT).map_err(failed)?;
    let text = text.unwrap_or_default();
    let named = text.strip_prefix(b"gitdir: ").and_then(|named| path_of(named.trim_ascii_end()));
    let named = named.ok_or_else(|| failed(Fault::Content))?;
    directory.join(named).canonicalize().map_err(|_| {
        Error::new(Kind::Git, format!("`{}` names a directory that isn't there", dot_git.display()))
            .hint("mend it with `git worktree repair` or `git submodule update --init`")
    })
}

/// Returns the canonical work tree that the configuration of a repository names.
fn named_work_dir(place: &Location) -> Option<PathBuf> {
    place.own.path().join(place.settings.work_tree.as_ref()?).canonicalize().ok()
}

/// Whether a directory is laid out as git's are.
fn is_git_dir(directory: &Path) -> bool {
    let found = |name: &str| Found::at(&directory.join(name));
    if found("HEAD") == Found::Nothing {
        return false;
    }
    let is_folder = |name: &str| matches!(found(name), Found::Folder | Found::Link);
    (is_folder("objects") && is_folder("refs")) || found("commondir") != Found::Nothing
}

fn unreadable(path: &Path, fault: Fault) -> Error {
    let hint = match fault {
        Fault::Link => TRUST_IT,
        Fault::Special => {
            "reading it could wait for ever; find out where the repository comes from, and remove it"
        }
        _ => "check the repository with `git fsck`, and find out where it comes from",
    };
    Error::new(Kind::Git, format!("cannot read the repository: `{}` {fault}", path.display())).hint(hint)
}

#[cfg(unix)]
fn is_same_device(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.dev());
    device(one) == device(other)
}

#[cfg(not(unix))]
fn is_same_device(_: &Path, _: &Path) -> bool {
    true
}
