//! Which project a call is about.
//!
//! A project is a repository with all its worktrees, or a directory that lies in none. Its id is random and kept in
//! the git common directory, so that it survives moves and renames, worktrees share it and equal names don't
//! collide; a copied repository brings a copied id, and gets a new one while the original still stands. Directories
//! are keyed by the bytes of their canonical path. `/` and the home directory are never projects: everything would be.

mod open;

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Context, Error, Kind, Result};
use crate::file::{path_of, text_of};
use crate::git::identity::Written;
use crate::git::{Found, Repository, Trust, identity};
use crate::memory::Millis;
use crate::scope::ProjectId;
use crate::store::{ProjectRow, Registry};

pub use self::open::{OpenProject, SeenProject};

/// A project that was found and registered.
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// Its name: that of its directory when it was first seen.
    pub name: String,
    /// The root of the work tree that the call came from, or the directory.
    pub root: PathBuf,
    /// The folder of its store beneath `projects/` in the data directory.
    pub folder: String,
    /// Its repository, where it is one.
    pub repository: Option<Repository>,
    /// Why its repository can't be read, where it is one and can't.
    pub trouble: Option<Error>,
}

/// Returns the canonical path of the directory `named`.
///
/// Errors with [`Kind::NoProject`] where there is none or it can't be opened, naming the way out.
pub fn directory(named: Option<&Path>) -> Result<PathBuf> {
    const WAY_OUT: &str = "name a directory with --project or TIRO_PROJECT";
    let Some(named) = named else {
        return Err(Error::new(Kind::NoProject, "the working directory is gone").hint(WAY_OUT));
    };
    let directory = named
        .canonicalize()
        .context(Kind::NoProject, || format!("cannot open the project `{}`", named.display()))
        .map_err(|error| error.hint(WAY_OUT))?;
    if !directory.is_dir() {
        let message = format!("the project `{}` is not a directory", directory.display());
        return Err(Error::new(Kind::NoProject, message).hint(WAY_OUT));
    }
    Ok(directory)
}

/// Returns which repositories the user trusts: those that `git.trusted` names, and the one `named` as the project.
pub fn trust(config: &Config, named: Option<&Path>) -> Trust {
    let trusted = config.options.git_trusted.0.iter().map(String::as_str);
    Trust::new(named).and_of(config.sudo_user).and_in(trusted, config.home.as_deref())
}

/// Returns the canonical path that the project of `directory` is known by, or `None` for `/` and the home directory.
///
/// That is the git common directory, or the directory where it lies in no repository. Nothing is registered.
pub fn place(directory: &Path, config: &Config, named: Option<&Path>) -> Result<Option<PathBuf>> {
    Ok(place_and_repository(directory, config, named)?.map(|(place, _)| place))
}

/// Returns what [`place`] does, and the repository where it lies in one.
pub fn place_and_repository(
    directory: &Path,
    config: &Config,
    named: Option<&Path>,
) -> Result<Option<(PathBuf, Option<Repository>)>> {
    let directory = directory
        .canonicalize()
        .context(Kind::NoProject, || format!("cannot open `{}`", directory.display()))?;
    let (place, work_dir, repository) = match Repository::find(&directory, &trust(config, named))? {
        None => (directory.clone(), None, None),
        Some(Found::Broken(broken)) => (broken.common_dir, broken.work_dir, None),
        Some(Found::Repository(it)) => (it.common_dir(), it.work_dir(), Some(*it)),
    };
    let root = work_dir.unwrap_or(directory);
    let is_everything = refuse_everything(&root, config.home.as_deref()).is_err();
    Ok((!is_everything).then_some((place, repository)))
}

/// A project as it stands, whether it was registered or not.
pub struct Seen {
    /// Its name: that of its directory when it was first seen.
    pub name: String,
    /// The root of the work tree that the call came from, or the directory.
    pub root: PathBuf,
    /// Its repository, where it is one.
    pub repository: Option<Repository>,
    /// Why its repository can't be read, where it is one and can't.
    pub trouble: Option<Error>,
    /// Its id and the folder of its store, where it was registered.
    pub known: Option<(ProjectId, String)>,
    /// The project whose repository it is a copy of, where it has no id of its own yet.
    pub original: Option<ProjectRow>,
}

/// Looks which project `directory` is and changes nothing; without a registry none was registered.
///
/// Errors with [`Kind::NoProject`] for `/` and the home directory.
pub async fn look(
    directory: &Path,
    config: &Config,
    named: Option<&Path>,
    registry: Option<&Registry>,
) -> Result<Seen> {
    let Around { repository, trouble, root, place } = around(directory, config, named)?;
    let place_name = text_of(&place);
    let is_git = repository.is_some() || trouble.is_some();
    let kept = if is_git { identity::read(&place)? } else { None };
    let (mut row, mut original) = (None, None);
    if let Some(registry) = registry {
        row = match kept.and_then(|text| ProjectId::parse(&text)) {
            Some(id) if is_copy(&id, &place_name, registry).await? => {
                original = registry.by_id(&id).await?;
                None
            }
            Some(id) => match registry.by_id(&id).await? {
                None => registry.strays().await?.into_iter().find(|row| row.id == id),
                known => known,
            },
            None => registry.by_place(&place_name).await?,
        };
    }
    let name = row.as_ref().map_or_else(|| name_of(&root), |row| row.name.clone());
    Ok(Seen { name, root, repository, trouble, known: row.map(|row| (row.id, row.folder)), original })
}

/// Finds the project of `directory` and registers it, `fresh` being the id it gets where it has none.
///
/// Errors with [`Kind::NoProject`] for `/` and the home directory.
pub async fn find(
    directory: &Path,
    config: &Config,
    named: Option<&Path>,
    registry: &Registry,
    fresh: ProjectId,
    now: Millis,
) -> Result<Project> {
    let Around { repository, trouble, root, place } = around(directory, config, named)?;
    let place_name = text_of(&place);
    let fresh_id = fresh.clone();
    let (id, original) = match repository.is_some() || trouble.is_some() {
        true => repository_id(&place, registry, fresh).await?,
        false => (registry.by_place(&place_name).await?.map_or(fresh, |row| row.id), None),
    };
    let (name, folder) = match registry.by_id(&id).await? {
        Some(row) => {
            if row.places.first() != Some(&place_name) {
                registry.record(&id, &row.name, &row.folder, &place_name, now).await?;
            }
            (row.name, row.folder)
        }
        None => {
            let name = name_of(&root);
            // Where the registry was lost the store is still there, under the name the project had then.
            let stray = registry.strays().await?.into_iter().find(|row| row.id == id);
            let folder = stray.map_or_else(|| format!("{}-{}", slug(&name), id.as_str()), |row| row.folder);
            let is_known_by_place = id == fresh_id && !is_kept(&place, &id);
            if is_known_by_place {
                // Of several processes that see a place for the first time one names it and all take that name.
                let row = registry.claim(&id, &name, &folder, &place_name, now).await?;
                return Ok(Project {
                    id: row.id,
                    name: row.name,
                    root,
                    folder: row.folder,
                    repository,
                    trouble,
                });
            }
            registry.record(&id, &name, &folder, &place_name, now).await?;
            if let Some(original) = original {
                registry.note_copy(&id, &original).await?;
            }
            (name, folder)
        }
    };
    Ok(Project { id, name, root, folder, repository, trouble })
}

/// What a directory lies in.
struct Around {
    repository: Option<Repository>,
    trouble: Option<Error>,
    /// The root of the project.
    root: PathBuf,
    /// The place it is known by.
    place: PathBuf,
}

/// Returns what `directory` lies in. What git's files say wrong takes no memory away: such a repository is known by its
/// place and its id, like any other.
fn around(directory: &Path, config: &Config, named: Option<&Path>) -> Result<Around> {
    let around = match Repository::find(directory, &trust(config, named))? {
        None => {
            let (root, place) = (directory.to_owned(), directory.to_owned());
            Around { repository: None, trouble: None, root, place }
        }
        Some(Found::Repository(repository)) => {
            let place = repository.common_dir();
            let root = repository.work_dir().unwrap_or_else(|| place.clone());
            Around { repository: Some(*repository), trouble: None, root, place }
        }
        Some(Found::Broken(broken)) => {
            let place = broken.common_dir;
            let root = broken.work_dir.unwrap_or_else(|| place.clone());
            Around { repository: None, trouble: Some(broken.error), root, place }
        }
    };
    refuse_everything(&around.root, config.home.as_deref())?;
    Ok(around)
}

/// Whether the repository that `directory` lies in still can't be read.
pub fn is_in_trouble(directory: &Path, config: &Config, named: Option<&Path>) -> bool {
    around(directory, config, named).map_or(true, |around| around.trouble.is_some())
}

/// Returns the id kept in the repository, giving it one where it has none or only a copy of another's.
///
/// A repository that can't be written is known by its place, like a directory. Beside the id stands the other's, where
/// the repository is a copy and was taken for one just now.
async fn repository_id(
    common_dir: &Path,
    registry: &Registry,
    fresh: ProjectId,
) -> Result<(ProjectId, Option<ProjectId>)> {
    let place = text_of(common_dir);
    let kept = identity::read(common_dir)?.and_then(|text| ProjectId::parse(&text));
    let mut copied = None;
    let written = match kept {
        None => identity::write(common_dir, fresh.as_str())?,
        Some(id) => {
            if !is_copy(&id, &place, registry).await? {
                return Ok((id, None));
            }
            copied = Some(id);
            identity::replace(common_dir, fresh.as_str())?
        }
    };
    let id = match written {
        Written::Id(id) => ProjectId::parse(&id).ok_or_else(|| {
            Error::new(Kind::Git, format!("`{place}` holds a project id that is none"))
                .hint("remove the file `tiro-project-id` there")
        })?,
        Written::ReadOnly(_) => registry.by_place(&place).await?.map_or(fresh, |row| row.id),
    };
    Ok((id, copied))
}

/// Whether the repository at `place` has `id` only because it was copied from one that still stands.
async fn is_copy(id: &ProjectId, place: &str, registry: &Registry) -> Result<bool> {
    let known = registry.by_id(id).await?;
    let mut others = known.into_iter().flat_map(|row| row.places).filter(|known| *known != *place);
    let stands = others.any(|other| is_kept(&path_of(&other), id));
    Ok(stands && registry.by_place(place).await?.is_none_or(|row| row.id != *id))
}

/// Whether the repository at `place` keeps `id` itself, so that every process reads the same.
fn is_kept(place: &Path, id: &ProjectId) -> bool {
    let kept = identity::read(place).ok().flatten();
    kept.is_some_and(|text| ProjectId::parse(&text).as_ref() == Some(id))
}

/// Whether the repository at `place` still keeps `id` itself. One that can't be read is taken to: what can't be known
/// changes nothing.
pub fn keeps(place: &Path, id: &ProjectId) -> bool {
    match identity::read(place) {
        Ok(kept) => kept.is_some_and(|text| ProjectId::parse(&text).as_ref() == Some(id)),
        Err(_) => true,
    }
}

fn refuse_everything(root: &Path, home: Option<&Path>) -> Result<()> {
    let home = home.and_then(|home| home.canonicalize().ok());
    let what = match () {
        () if root.parent().is_none() => "the root of the file system",
        () if home.as_deref() == Some(root) => "the home directory",
        () => return Ok(()),
    };
    Err(Error::new(Kind::NoProject, format!("{what} is no project"))
        .hint("start in a repository or a directory of its own, or name one with --project or TIRO_PROJECT"))
}

fn name_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "project".into())
}

/// Returns `name` as part of a folder's name: lower-case letters, digits and dashes, at most 40.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "project".into() } else { slug.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_the_project_in_plain_characters() {
        assert_eq!(slug("My Project!"), "my-project");
        assert_eq!(slug("../..//etc"), "etc");
        assert_eq!(slug("日本語"), "project");
    }

    #[test]
    fn the_root_and_the_home_are_refused_with_a_way_out() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for root in [Path::new("/"), &home] {
            let error = refuse_everything(root, Some(&home)).unwrap_err();
            assert_eq!(error.kind(), Kind::NoProject);
            assert!(error.way_out().unwrap().contains("--project"));
        }
        assert!(refuse_everything(&home.join("work"), Some(&home)).is_ok());
    }
}
