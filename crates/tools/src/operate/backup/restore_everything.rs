//! Restores a backup of everything. All stores are unpacked and checked beside the present stores. The new stores get
//! their names, and then a single rename of `owner.db` puts them into use. So if the process dies, either the old state
//! or the new state remains, and the next run removes the rest.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::archive::{ArchiveEntry, ArchiveReader};
use super::everything::{OWNERS, damaged};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::path_of;
use tiro_base::file::unfinished::{self, UNFINISHED, Workshop};
use tiro_base::file::user_file::{self, Bytes, FileSnapshot};
use tiro_base::humanize::counted;
use tiro_base::private;
use tiro_base::scope::ProjectId;
use tiro_git::identity;
use tiro_host::engine::Engine;
use tiro_store::{Contents, Files, Flavour, ProjectRow};

/// A restore unpacks into a working folder. The name of this folder begins with this text.
const WORKSHOP: &str = "restore";

/// The file in the working folder that lists the folders that the restore places.
const PLACED: &str = "placed.json";

/// A restore moves the replaced stores into a folder. The name of this folder begins with this text.
const KEPT: &str = "replaced-";

/// The folders that a restore has put into the data directory before its last step.
#[derive(Default, Deserialize, Serialize)]
struct Placed {
    /// The names of the folders in `projects`.
    folders: Vec<String>,
    /// The name of the folder for the former stores.
    kept: Option<String>,
}

/// The content of a backup of everything, and whether restoring it would replace data.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// When the backup was made.
    pub made_at: String,
    /// How many projects it has.
    pub projects: usize,
    /// How many memories it has.
    pub memories: u64,
    /// How many threads with assistants it has.
    pub threads: u64,
    /// Whether something is stored here already.
    pub replaces: bool,
}

/// The answer of `tiro restore` for a backup of everything.
#[derive(Debug, Serialize)]
pub struct RestoredEverything {
    /// What was restored.
    #[serde(flatten)]
    pub restored: Planned,
    /// The folder with the former stores. `None` if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The projects to which no directory on this machine belongs.
    pub unlinked: Vec<Unlinked>,
    /// The stores that have damaged parts.
    pub damaged: Vec<String>,
    /// A text that says what was done with the configuration.
    pub configuration: String,
}

/// A project to which no directory on this machine belongs.
#[derive(Debug, Serialize)]
pub struct Unlinked {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The places where the project was last seen on the other machine.
    pub places: Vec<String>,
}

/// Returns whether the file is an archive, such as a backup of everything.
pub fn is_archive(file: &Path) -> bool {
    ArchiveReader::is_archive(file)
}

/// Returns the content of the backup, and whether restoring it would replace data. Changes nothing.
pub fn plan(engine: &Engine, file: &Path) -> Result<Planned> {
    let ArchiveReader { list, .. } = ArchiveReader::open(file)?;
    Ok(Planned {
        made_at: list.made_at.clone(),
        projects: list.stores.len() - 1,
        memories: list.stores.iter().map(|entry| entry.memories).sum(),
        threads: list.stores.iter().map(|entry| entry.threads).sum(),
        replaces: holds_anything(&engine.config().data_dir),
    })
}

/// Restores everything from the backup `file`. The present data is replaced, and kept in a separate folder.
pub async fn restore(engine: &Engine, file: &Path) -> Result<RestoredEverything> {
    let restored = plan(engine, file)?;
    let mut reader = ArchiveReader::open(file)?;
    let data_dir = &engine.config().data_dir;
    private::data_dir(data_dir)?;
    clean(data_dir);
    let failed = || format!("cannot write in `{}`", quoted(data_dir.display()));
    let workshop = Workshop::make(data_dir, WORKSHOP).context(Kind::Io, failed)?;
    let stores = unpack(engine, &mut reader, workshop.path()).await?;
    let configuration = reader.configuration()?;
    let rows = assign(engine, workshop.path(), &stores).await?;
    let folders = stores.iter().filter_map(|store| store.folder.clone()).collect();
    let kept = holds_anything(data_dir).then(|| folder_for_former(data_dir)).transpose()?;
    let placed = Placed { folders, kept };
    // If the process dies after this point, the list of the placed folders is used to remove them.
    write_synced(&workshop.path().join(PLACED), &serde_json::to_vec(&placed).context(Kind::Io, failed)?)?;
    if let Err(error) = place(engine.stores().files(), data_dir, workshop.path(), &stores, &placed).await {
        take_back(data_dir, workshop.path());
        return Err(error);
    }
    let kept = placed.kept.as_ref().map(|kept| data_dir.join(kept));
    if let Some(kept) = &kept {
        move_former(data_dir, kept, &placed.folders);
    }
    let unlinked = rows.into_iter().filter(|row| !is_here(row)).map(|row| Unlinked {
        id: row.id.as_str().to_owned(),
        name: row.name,
        places: row.places,
    });
    Ok(RestoredEverything {
        restored,
        kept: kept.map(|kept| kept.display().to_string()),
        unlinked: unlinked.collect(),
        damaged: stores.iter().filter_map(|store| damaged(&store.what, &store.contents)).collect(),
        configuration: configure(engine, configuration)?,
    })
}

/// A store that was unpacked.
struct Unpacked {
    /// A description of the store, in words.
    what: String,
    /// The project and its name; `None` for the owner's store.
    project: Option<(ProjectId, String)>,
    contents: Contents,
    /// The name of its folder in `projects`.
    folder: Option<String>,
    /// The path of the store's file, or of the folder that contains the file.
    path: PathBuf,
}

/// Unpacks all stores into the working folder, checks them and upgrades them to the current schema.
async fn unpack(engine: &Engine, reader: &mut ArchiveReader, workshop: &Path) -> Result<Vec<Unpacked>> {
    let mut stores = Vec::new();
    let projects = engine.config().data_dir.join("projects");
    let files = engine.stores().files();
    for entry in reader.list.stores.clone() {
        let (path, store, flavour, project, folder) = match &entry.project {
            None => (workshop.join(OWNERS), workshop.join(OWNERS), Flavour::Owner, None, None),
            Some(id) => {
                let id = ProjectId::parse(id).ok_or_else(|| malformed(&entry))?;
                let path = workshop.join(id.as_str());
                fs::create_dir(&path).map_err(|error| malformed(&entry).source(error))?;
                private::create_dir(&path)?;
                let folder = free_folder(files, &projects, &entry.project_name, &id);
                let name = entry.project_name.clone();
                (path.clone(), path.join("tiro.db"), Flavour::Project, Some((id, name)), Some(folder))
            }
        };
        reader.take_store(&entry, &store)?;
        private::create(&store)?;
        files.settle(&store, flavour, &engine.config().owner).await?;
        let contents = files.contents(&store).await?;
        if (contents.memories, contents.threads) != (entry.memories, entry.threads) {
            return Err(malformed(&entry));
        }
        let what = match &project {
            None => "the memories for all projects".to_owned(),
            Some((_, name)) => format!("project `{}`", quoted(name)),
        };
        stores.push(Unpacked { what, project, contents, folder, path });
    }
    Ok(stores)
}

fn malformed(entry: &ArchiveEntry) -> Error {
    Error::bad_input(format!("`{}` in the backup is not as its list says", quoted(&entry.name)))
        .hint("restore an earlier backup; nothing was changed")
}

/// Returns an unused name in `projects` for the project's folder.
fn free_folder(files: &dyn Files, projects: &Path, name: &str, id: &ProjectId) -> String {
    let named = |number: u32| match number {
        1 => files.folder(name, id),
        _ => files.folder(&format!("{name} {number}"), id),
    };
    let is_free = |folder: &String| projects.join(folder).symlink_metadata().is_err();
    (1..).map(named).find(is_free).expect("some number is free")
}

/// Enters the new folders into the unpacked registry. Returns the projects whose stores are restored.
async fn assign(engine: &Engine, workshop: &Path, stores: &[Unpacked]) -> Result<Vec<ProjectRow>> {
    let folder = |store: &Unpacked| Some((store.project.as_ref()?.0.clone(), store.folder.clone()?));
    let assigned: Vec<(ProjectId, String)> = stores.iter().filter_map(folder).collect();
    let mut rows = engine.stores().files().assign(workshop, &engine.config().owner, &assigned).await?;
    for (id, name) in stores.iter().filter_map(|store| store.project.as_ref()) {
        if rows.iter().all(|row| row.id != *id) {
            let (id, name) = (id.clone(), name.clone());
            rows.push(ProjectRow { id, name, file: PathBuf::new(), places: Vec::new() });
        }
    }
    Ok(rows)
}

/// Moves the new stores to their places. The owner's store is moved last, which puts all of them into use.
async fn place(
    files: &dyn Files,
    data_dir: &Path,
    workshop: &Path,
    stores: &[Unpacked],
    placed: &Placed,
) -> Result<()> {
    let projects = data_dir.join("projects");
    private::create_dir(&projects)?;
    for store in stores {
        let Some(folder) = &store.folder else { continue };
        let target = projects.join(folder);
        fs::rename(&store.path, &target)
            .context(Kind::Io, || format!("cannot make `{}`", quoted(target.display())))?;
    }
    let former = match &placed.kept {
        Some(kept) => data_dir.join(kept).join(OWNERS),
        None => workshop.join("former"),
    };
    files.put_in_place(&workshop.join(OWNERS), &data_dir.join(OWNERS), &former).await
}

/// Creates a folder for the present stores. Returns its name.
fn folder_for_former(data_dir: &Path) -> Result<String> {
    let made = tempfile::Builder::new().prefix(KEPT).tempdir_in(data_dir);
    let folder = made.context(Kind::Io, || "cannot make a folder for the present stores".to_owned())?.keep();
    private::create_dir(&folder)?;
    Ok(folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// Moves the former stores of projects into the folder `kept`. A store that can't be moved stays in place, and belongs
/// to no project.
fn move_former(data_dir: &Path, kept: &Path, placed: &[String]) {
    let folder = kept.join("projects");
    if let Err(error) = private::create_dir(&folder) {
        tracing::warn!(%error, "the former stores stay where they are");
        return;
    }
    let entries = fs::read_dir(data_dir.join("projects")).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| !placed.iter().any(|placed| entry.file_name() == **placed)) {
        if fs::rename(entry.path(), folder.join(entry.file_name())).is_err() {
            tracing::warn!("a former store stays where it is");
        }
    }
}

/// Returns whether there are stores in the data directory, other than those that a restore has just placed.
fn holds_anything(data_dir: &Path) -> bool {
    let stores = fs::read_dir(data_dir.join("projects")).into_iter().flatten().flatten();
    data_dir.join(OWNERS).symlink_metadata().is_ok()
        || stores.map(|entry| entry.path().join("tiro.db")).any(|store| store.symlink_metadata().is_ok())
}

/// Removes the leftovers of restores that died. If a restore had not reached its last step, its changes are undone.
pub fn clean(data_dir: &Path) -> usize {
    let is_ours = |name: &str| name.starts_with(WORKSHOP) && name.ends_with(UNFINISHED);
    let dead = unfinished::dead(data_dir, is_ours);
    for workshop in &dead {
        take_back(data_dir, workshop);
        drop(fs::remove_dir_all(workshop));
    }
    dead.len()
}

/// Removes the folders that the restore in `workshop` placed, unless it reached its last step.
fn take_back(data_dir: &Path, workshop: &Path) {
    let is_pending = workshop.join(OWNERS).symlink_metadata().is_ok();
    let placed = fs::read(workshop.join(PLACED)).ok().filter(|_| is_pending);
    let placed: Placed = placed.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let is_name = |name: &&String| !name.contains(['/', '\\']) && !name.starts_with('.');
    for folder in placed.folders.iter().filter(is_name) {
        drop(fs::remove_dir_all(data_dir.join("projects").join(folder)));
    }
    // The folder contains a second name (hard link) of the owner's store that is in use.
    for kept in placed.kept.iter().filter(is_name).filter(|kept| kept.starts_with(KEPT)) {
        drop(fs::remove_dir_all(data_dir.join(kept)));
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write `{}`", quoted(path.display()));
    fs::write(path, bytes).context(Kind::Io, failed)?;
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.sync_all()).context(Kind::Io, failed)
}

/// Returns whether a directory on this machine belongs to the project. Such a directory is a repository that contains
/// the project's id, or a directory that is not a repository.
fn is_here(row: &ProjectRow) -> bool {
    row.places.iter().map(|place| path_of(place)).any(|place| {
        let is_repository = place.join("HEAD").is_file() && place.join("objects").is_dir();
        let kept = || identity::read(&place).ok().flatten();
        place.is_dir() && (!is_repository || kept().is_some_and(|id| id.trim() == row.id.as_str()))
    })
}

/// Writes the configuration if there is none here. Returns a text that says what was done.
fn configure(engine: &Engine, text: Option<String>) -> Result<String> {
    let (Some(text), Some(path)) = (text, &engine.config().sources.file) else {
        return Ok("The backup has no configuration".into());
    };
    let shown = quoted(path.display()).to_string();
    match fs::read(path) {
        Ok(present) if present == text.as_bytes() => {
            return Ok(format!("The configuration `{shown}` is the same"));
        }
        Ok(_) => {
            return Ok(format!(
                "The configuration `{shown}` stays; the one of the backup is `config.toml` in the archive"
            ));
        }
        Err(_) => {}
    }
    if let Some(folder) = path.parent() {
        private::make_dir(folder).context(Kind::Io, || format!("cannot make the folder of `{shown}`"))?;
    }
    user_file::replace(path, &FileSnapshot { bytes: Bytes(text.into_bytes()), mode: 0o600 })?;
    Ok(format!("The configuration was written to `{shown}`; keys of providers are not in a backup"))
}

impl Planned {
    /// Returns the plan as text.
    pub fn text(&self) -> String {
        format!(
            "A backup of everything, made {}: {}, {}, {}.",
            self.made_at,
            counted(self.projects, "project", "projects"),
            counted(self.memories, "memory", "memories"),
            counted(self.threads, "thread with an assistant", "threads with assistants"),
        )
    }
}

impl RestoredEverything {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Planned { projects, memories, threads, .. } = &self.restored;
        let mut text = format!(
            "Restored {}, {} and {}.\n",
            counted(*projects, "project", "projects"),
            counted(*memories, "memory", "memories"),
            counted(*threads, "thread with an assistant", "threads with assistants"),
        );
        if !self.damaged.is_empty() {
            text += &format!("Damaged, and restored as it is: {}.\n", self.damaged.join("; "));
        }
        if let Some(kept) = &self.kept {
            text +=
                &format!("What was stored here before is in {kept}; remove it when you no longer need it.\n");
        }
        for project in &self.unlinked {
            let place = project.places.first().map_or(String::new(), |place| format!(" (it was {place})"));
            text += &format!(
                "No directory here leads to project {}{place}: `tiro projects link {} DIR`\n",
                project.name, project.id
            );
        }
        text + &self.configuration + "."
    }
}
