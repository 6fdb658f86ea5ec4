//! Finds the project of a call.
//!
//! A project is a repository with all its worktrees, or a directory outside any repository. Its id is random and kept
//! in the git common directory. So the id survives moves and renames, all worktrees share it, and projects with the
//! same name don't collide. A copy of a repository contains the id of the original. The copy gets a new id if the
//! original still exists. A directory is identified by the bytes of its canonical path. `/` and the home directory
//! are never projects, because they would contain everything.

mod documents;
mod open;
mod placement;
mod placing;

use std::path::{Path, PathBuf};

use crate::config::Config;
use tiro_base::error::{Context, Error, Kind, Result};
use tiro_base::file::{path_of, text_of};
use tiro_base::memory::Millis;
use tiro_base::scope::ProjectId;
use tiro_capture::sources::{Finder, root_of};
use tiro_git::identity::WrittenId;
use tiro_git::{Discovered, Repository, Trust, identity};
use tiro_redact::Redactor;
use tiro_store::{ProjectRow, Registry};

pub use self::open::{OpenProject, SeenProject, WritableProject};
pub use self::placement::Placement;

/// A registered project.
pub struct Project {
    /// The id.
    pub id: ProjectId,
    /// The name of the project. This is the name that its directory had when the project was first seen.
    pub name: String,
    /// The root of the work tree from which the call came. Outside a repository, this is the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Repository>,
    /// The reason why the repository can't be read.
    pub trouble: Option<Error>,
    /// The former roots of the project, from before it was moved or renamed. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
}

/// Returns the directory of the call. This is the directory that the user named as the project, otherwise the working
/// directory.
pub fn directory(named: Option<&Path>) -> Result<PathBuf> {
    const WAY_OUT: &str = "name a directory with --project or TIRO_PROJECT; `tiro projects link NAME DIR` gives a directory \
        to a project that has none";
    let Some(named) = named else {
        return Err(Error::new(Kind::NoProject, "the working directory no longer exists").hint(WAY_OUT));
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

/// Returns the repositories that the user trusts: those in `git.trusted`, and the repository that the user named as the
/// project.
pub fn trust(config: &Config, named: Option<&Path>) -> Trust {
    finder(config, named).trust()
}

/// Returns a finder of the project of a directory. `named` is the directory that the user named as the project.
pub fn finder(config: &Config, named: Option<&Path>) -> Finder {
    Finder {
        named: named.map(Path::to_owned),
        trusted: config.options.git_trusted.0.clone(),
        sudo_user: config.sudo_user,
        home: config.home.clone(),
    }
}

/// A project that may or may not be registered.
pub struct Seen {
    /// The name of the project. This is the name that its directory had when the project was first seen.
    pub name: String,
    /// The root of the work tree from which the call came. Outside a repository, this is the directory.
    pub root: PathBuf,
    /// The project's repository. `None` outside a repository, or if the repository can't be read.
    pub repository: Option<Repository>,
    /// The reason why the repository can't be read.
    pub trouble: Option<Error>,
    /// The id of the project, if the project is registered or has a store.
    pub known: Option<ProjectId>,
    /// The former roots of the project, from before it was moved or renamed. Nothing is at these paths now.
    pub formerly: Vec<PathBuf>,
    /// The project from which this repository was copied, if the copy has no id of its own yet.
    pub original: Option<ProjectRow>,
}

/// Returns the project of `directory` without changing anything. If `registry` is `None`, the project counts as not
/// registered.
///
/// # Errors
///
/// [`Kind::NoProject`] for `/` and the home directory.
pub async fn look(
    directory: &Path,
    config: &Config,
    named: Option<&Path>,
    registry: Option<&dyn Registry>,
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
    let formerly = row.as_ref().map(|row| former_roots(&row.places, &place_name)).unwrap_or_default();
    let known = row.map(|row| row.id);
    Ok(Seen { name, root, repository, trouble, known, formerly, original })
}

/// Returns the project of `directory` and registers it. A new project gets the id `fresh`.
///
/// # Errors
///
/// [`Kind::NoProject`] for `/` and the home directory.
pub async fn find(
    directory: &Path,
    config: &Config,
    named: Option<&Path>,
    registry: &dyn Registry,
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
    let mut formerly = Vec::new();
    let name = match registry.by_id(&id).await? {
        Some(row) => {
            formerly = former_roots(&row.places, &place_name);
            if row.places.first() != Some(&place_name) {
                registry.record(&id, &row.name, &place_name, now).await?;
            }
            row.name
        }
        None => {
            let name = name_of(&root);
            let is_known_by_place = id == fresh_id && !is_kept(&place, &id);
            if is_known_by_place {
                // If several processes see a new place at the same time, one of them chooses the name and all of them
                // use it.
                let row = registry.claim(&id, &name, &place_name, now).await?;
                return Ok(Project { id: row.id, name: row.name, root, repository, trouble, formerly });
            }
            registry.record(&id, &name, &place_name, now).await?;
            if let Some(original) = original {
                registry.note_copy(&id, &original).await?;
            }
            name
        }
    };
    Ok(Project { id, name, root, repository, trouble, formerly })
}

/// Returns the roots of the projects at `places`, except the root of `place`. Roots where something exists now are left
/// out too, because this may be another project.
fn former_roots(places: &[String], place: &str) -> Vec<PathBuf> {
    let roots = places.iter().filter(|each| *each != place).map(|place| root_of(&path_of(place)));
    roots.filter(|root| root.symlink_metadata().is_err()).collect()
}

/// The project or repository that contains a directory.
struct Around {
    repository: Option<Repository>,
    trouble: Option<Error>,
    /// The root of the project.
    root: PathBuf,
    /// The path that identifies the project.
    place: PathBuf,
}

/// Returns the project that contains `directory`. A repository with invalid files is found too. Its memory works,
/// because the project is identified only by path and id.
fn around(directory: &Path, config: &Config, named: Option<&Path>) -> Result<Around> {
    let finder = finder(config, named);
    let around = match Repository::find(directory, &finder.trust())? {
        None => {
            let (root, place) = (directory.to_owned(), directory.to_owned());
            Around { repository: None, trouble: None, root, place }
        }
        Some(Discovered::Repository(repository)) => {
            let place = repository.common_dir();
            let root = repository.work_dir().unwrap_or_else(|| place.clone());
            Around { repository: Some(*repository), trouble: None, root, place }
        }
        Some(Discovered::Broken(broken)) => {
            let place = broken.common_dir;
            let root = broken.work_dir.unwrap_or_else(|| place.clone());
            Around { repository: None, trouble: Some(broken.error), root, place }
        }
    };
    finder.refuse_everything(&around.root)?;
    Ok(around)
}

/// Returns whether the repository that contains `directory` still can't be read.
pub fn is_in_trouble(directory: &Path, config: &Config, named: Option<&Path>) -> bool {
    around(directory, config, named).map_or(true, |around| around.trouble.is_some())
}

/// Returns the id in the repository. If the repository has no id, or only the id of the repository from which it was
/// copied, it gets a new id.
///
/// A read-only repository without an id is identified by its path, like a directory. The second value is the id of
/// the original, if this call found that the repository is a copy.
async fn repository_id(
    common_dir: &Path,
    registry: &dyn Registry,
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
        WrittenId::Id(id) => ProjectId::parse(&id).ok_or_else(|| {
            Error::new(Kind::Git, format!("`{place}` contains an invalid project id"))
                .hint("remove the file `tiro-project-id` in that directory")
        })?,
        WrittenId::ReadOnly(_) => registry.by_place(&place).await?.map_or(fresh, |row| row.id),
    };
    Ok((id, copied))
}

/// Returns whether the repository at `place` has `id` only because it was copied from a repository that still
/// exists.
async fn is_copy(id: &ProjectId, place: &str, registry: &dyn Registry) -> Result<bool> {
    let known = registry.by_id(id).await?;
    let mut others = known.into_iter().flat_map(|row| row.places).filter(|known| *known != *place);
    let stands = others.any(|other| is_kept(&path_of(&other), id));
    Ok(stands && registry.by_place(place).await?.is_none_or(|row| row.id != *id))
}

/// Returns whether the file in the repository at `place` contains `id`. If so, every process reads this id.
fn is_kept(place: &Path, id: &ProjectId) -> bool {
    let kept = identity::read(place).ok().flatten();
    kept.is_some_and(|text| ProjectId::parse(&text).as_ref() == Some(id))
}

/// Returns whether the repository at `place` still contains `id`. If the repository can't be read, returns true, so
/// that nothing changes.
pub fn keeps(place: &Path, id: &ProjectId) -> bool {
    match identity::read(place) {
        Ok(kept) => kept.is_some_and(|text| ProjectId::parse(&text).as_ref() == Some(id)),
        Err(_) => true,
    }
}

/// Returns the name of the project in `root`. This is the name of the directory, with secrets replaced, because the
/// name is shown, stored and sent.
fn name_of(root: &Path) -> String {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "project".into());
    Redactor::blank().redact(&name).text.into_owned()
}
