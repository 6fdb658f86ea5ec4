//! Lists the projects, links a directory to a project, merges two projects, and removes one.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::operate::backup;
use tiro_base::envelope;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::file::{path_of, text_of};
use tiro_base::humanize::counted;
use tiro_base::scope::{ProjectId, Scope};
use tiro_capture::sources::root_of;
use tiro_capture::spool::Spool;
use tiro_git::{Repository, identity};
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::exchange::connection::Place;
use tiro_host::project;
use tiro_store::{ProjectRow, Sizes};

/// The answer of `tiro projects list`.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The projects, by name.
    pub projects: Vec<Project>,
}

/// One project.
#[derive(Debug, Serialize)]
pub struct Project {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The directories where it was seen, latest first.
    pub places: Vec<String>,
    /// The path of its store.
    pub store: String,
    /// Bytes of the store.
    pub bytes: u64,
}

/// The answer of `tiro projects move` and `link`.
#[derive(Debug, Serialize)]
pub struct Linked {
    /// The project.
    pub id: String,
    /// The directory that belongs to the project now. This is the working directory, or the common git directory of a
    /// repository.
    pub place: String,
}

/// The answer of `tiro projects merge`.
#[derive(Debug, Serialize)]
pub struct Merged {
    /// The id of the project that contains the memories now.
    pub into: String,
    /// The id of the project that was merged and is no longer listed. Its store stays on disk.
    pub from: String,
    /// How many memories were added because `into` did not have them.
    pub added: usize,
    /// How many memories were in both projects.
    pub known: usize,
    /// How many entries were left out because they are too long or aren't valid memories.
    pub left_out: usize,
    /// All counts of the merge, such as conflicts, forgotten memories of either project, summaries and secrets, and the
    /// list of the parts that are never merged.
    pub restored: backup::Restored,
    /// The path of the store that is no longer used.
    pub left_behind: String,
}

/// Returns every project of the owner, ordered by name.
pub async fn list(engine: &Engine) -> Result<Listed> {
    let rows = engine.installation().await?.registry.all().await?;
    let project = |row: ProjectRow| Project {
        id: row.id.as_str().to_owned(),
        name: row.name,
        places: row.places,
        bytes: std::fs::metadata(&row.file).map_or(0, |metadata| metadata.len()),
        store: row.file.display().to_string(),
    };
    Ok(Listed { projects: rows.into_iter().map(project).collect() })
}

/// Assigns `directory` to the project `id`. Use this for a directory that lost its id when it was moved, or for a
/// second clone.
///
/// If `forget_others` is true, the project's other places are removed from the registry, because the project was moved.
/// Errors if the project or the directory does not exist.
pub async fn link(
    engine: &Engine,
    caller: &Caller,
    id: &str,
    directory: &Path,
    forget_others: bool,
) -> Result<Linked> {
    let registry = &engine.begin_installation().await?.registry;
    let row = find(engine, id).await?;
    let directory = directory.canonicalize().map_err(|error| {
        Error::bad_input(format!("there is no directory `{}`", quoted(directory.display()))).source(error)
    })?;
    let place = match Repository::discover(
        &directory,
        &project::trust(engine.config(), caller.named()).naming(&directory),
    )? {
        Some(repository) => {
            rename(engine, &repository, &row.id)?;
            repository.common_dir()
        }
        None => directory,
    };
    let place = text_of(&place);
    if forget_others {
        for other in row.places.iter().filter(|other| **other != place) {
            registry.forget_place(other).await?;
        }
    }
    registry.record(&row.id, &row.name, &place, engine.now()).await?;
    Ok(Linked { id: row.id.as_str().to_owned(), place })
}

/// Adds the memories of the project `from` to the project `into`, and assigns the places of `from` to `into`.
pub async fn merge(
    engine: &Engine,
    caller: &WritingCaller,
    from: &str,
    into: &str,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<Merged> {
    let registry = &engine.begin_installation().await?.registry;
    let (from, into) = (find(engine, from).await?, find(engine, into).await?);
    if from.id == into.id {
        return Err(Error::bad_input("a project can't be merged into itself"));
    }
    let place = into.places.first().ok_or_else(|| {
        Error::bad_input(format!("no directory is known for project `{}`", quoted(&into.name)))
            .hint("name one with `tiro projects link`")
    })?;
    let target = caller.in_directory(&path_of(place), true);
    let source = from.file.clone();
    let restored = backup::restore(engine, &target, source.clone(), progress).await?;
    registry.absorb(&from.id, &into.id).await?;
    for place in &from.places {
        if let Ok(repository) =
            Repository::open(&path_of(place), &project::trust(engine.config(), caller.named()))
        {
            rename(engine, &repository, &into.id)?;
        }
    }
    Ok(Merged {
        into: into.id.as_str().to_owned(),
        from: from.id.as_str().to_owned(),
        added: restored.added,
        known: restored.known,
        left_out: restored.too_long + restored.malformed,
        restored,
        left_behind: source.display().to_string(),
    })
}

/// The answer of `tiro projects remove`.
#[derive(Debug, Serialize)]
pub struct Removed {
    /// Whether the project was removed; false in a dry run.
    pub removed: bool,
    /// The project.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The directories where it was seen.
    pub places: Vec<String>,
    /// The folder that contains the project's store and the backups of the store.
    pub folder: String,
    /// Bytes of the store.
    pub bytes: u64,
    /// The numbers of memories in the project's store. Absent if the store can't be read.
    pub remembered: Option<Remembered>,
}

/// The number of memories of each kind in a project.
#[derive(Debug, Serialize)]
pub struct Remembered {
    /// Commits.
    pub commits: i64,
    /// Messages.
    pub messages: i64,
    /// Sessions.
    pub sessions: i64,
    /// Stored facts, decisions, findings and texts.
    pub notes: i64,
}

/// Removes a project for good. This removes its store with the automatic backups, its id in the repositories that
/// contain it, and the references that hooks left for it. With `dry_run`, only reports what would be removed.
///
/// Memories that were stored for all projects stay. The repository's post-commit hook and the work tree stay, too.
pub async fn remove(engine: &Engine, caller: &Caller, which: &str, dry_run: bool) -> Result<Removed> {
    let row = find(engine, which).await?;
    let folder = row.file.parent().map(Path::to_owned).unwrap_or_default();
    let registry = engine.installation().await?.registry;
    let scope = Scope::own(caller.owner().clone(), row.id.clone());
    let sizes = async {
        match registry.existing_store(&row.id).await? {
            Some(store) => store.sizes(&scope).await.map(Some),
            None => Ok(None),
        }
    };
    let sizes = sizes.await.ok().flatten();
    let remembered = sizes.map(|Sizes { commits, messages, sessions, notes, stashed: _ }| Remembered {
        commits,
        messages,
        sessions,
        notes,
    });
    let removed = Removed {
        removed: !dry_run,
        id: row.id.as_str().to_owned(),
        name: row.name,
        places: row.places.clone(),
        folder: folder.display().to_string(),
        bytes: std::fs::metadata(&row.file).map_or(0, |metadata| metadata.len()),
        remembered,
    };
    if dry_run {
        return Ok(removed);
    }
    for place in row.places.iter().map(|place| path_of(place)) {
        let spool = Spool::of(&engine.config().data_dir, &place);
        let is_kept = identity::read(&place).ok().flatten().is_some_and(|id| id == row.id.as_str());
        if is_kept {
            identity::remove(&place)?;
        }
        // The spool belongs to this project if the place is a directory without a repository, or a repository that kept
        // the id.
        if is_kept || !place.join("HEAD").exists() {
            spool.clear();
        }
    }
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::new(Kind::Io, format!("cannot remove `{}`", quoted(folder.display())))
                .source(error)
                .hint("the project is still listed: repeat this when the folder can be removed"));
        }
        _ => {}
    }
    registry.remove(&row.id).await?;
    Place::of(&engine.config().data_dir, &row.id).remove()?;
    Ok(removed)
}

/// Gives a repository the id of another project, but keeps the record of when capture was paused.
fn rename(engine: &Engine, repository: &Repository, id: &ProjectId) -> Result<()> {
    let (data_dir, place) = (&engine.config().data_dir, repository.common_dir());
    let before = Spool::of(data_dir, &place);
    identity::replace(&place, id.as_str())?;
    Spool::of(data_dir, &place).inherit(&before)
}

/// Returns the id of the project `which`, an id or a name that only one project has, and the directory in which the
/// project is now, if it has one on this machine. Returns `None` if there is no such project.
pub async fn directory(engine: &Engine, which: &str) -> Result<Option<(ProjectId, Option<PathBuf>)>> {
    let row = match find(engine, which).await {
        Ok(row) => row,
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::BadInput) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut places = row.places.iter().map(|place| root_of(&path_of(place)));
    let place = places.find(|place| place.is_dir());
    Ok(Some((row.id, place)))
}

/// Finds a project by its id, or by its name if only one project has this name. Also finds a project of which only the
/// store is left.
pub(super) async fn find(engine: &Engine, which: &str) -> Result<ProjectRow> {
    let registry = &engine.installation().await?.registry;
    let mut rows = registry.all().await?;
    rows.extend(registry.strays().await?);
    if let Some(id) = ProjectId::parse(which)
        && let Some(row) = rows.iter().find(|row| row.id == id)
    {
        return Ok(row.clone());
    }
    let mut named: Vec<ProjectRow> = rows.into_iter().filter(|row| row.name == which).collect();
    match (named.pop(), named.is_empty()) {
        (Some(row), true) => Ok(row),
        (Some(_), false) => Err(Error::bad_input(format!("several projects are called `{}`", quoted(which)))
            .hint("give the id that `tiro projects list` shows")),
        (None, _) => Err(Error::not_found(format!("no project is called `{}`", quoted(which)))
            .hint("`tiro projects list` shows them")),
    }
}

impl Listed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.projects.is_empty() {
            return "No projects yet.".to_owned();
        }
        let line = |project: &Project| {
            let Project { id, name, places, bytes, .. } = project;
            let places: Vec<_> = places.iter().map(|place| envelope::one_line(place)).collect();
            format!("{id} {}, {bytes} bytes\n  {}", envelope::one_line(name), places.join("\n  "))
        };
        self.projects.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Linked {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        format!("{} belongs to project {}.", envelope::one_line(&self.place), self.id)
    }
}

impl Removed {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Removed { removed, id, name, places, folder, bytes, remembered } = self;
        let name = envelope::one_line(name);
        let (goes, stays) = match removed {
            true => ("Removed", "were kept"),
            false => ("To be removed for good:", "are kept"),
        };
        let held = match remembered {
            None => "nothing that can be read".to_owned(),
            Some(Remembered { commits, messages, sessions, notes }) => format!(
                "{}, {} in {}, {}",
                counted(*commits, "commit", "commits"),
                counted(*messages, "message", "messages"),
                counted(*sessions, "session", "sessions"),
                counted(*notes, "note", "notes")
            ),
        };
        let mut text = format!("{goes} project {id} {name}: {held}; {bytes} bytes and backups in {folder}.");
        for place in places {
            text += &format!("\n  known in {}", envelope::one_line(place));
        }
        text += &format!("\nMemories for all projects {stays}.");
        if *removed && !places.is_empty() {
            text += " If hooks are set up in these places, they record new work again: `tiro init --remove` \
                     there stops that.";
        }
        text
    }
}

impl Merged {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Merged { into, from, restored, left_behind, .. } = self;
        format!(
            "Project {from} is part of {into} now. {}\nIts old store is no longer used and can be removed: {left_behind}",
            restored.merged("the merged project")
        )
    }
}
