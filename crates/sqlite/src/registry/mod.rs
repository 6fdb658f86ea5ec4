//! The registry in `owner.db`. The registry has the owner's projects, the directories where they were seen, the ledger
//! of spending, and the installation's secret.
//!
//! Each owner has an `owner.db`, so its tables of projects and spending have no column for the owner.

mod audit;
mod by_trait;
pub(crate) mod folder;
pub(super) mod ledger;
mod members;
mod places;
mod sent;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{OptionalExtension, Row};

use crate::SqliteStore;
use crate::error::{Error, Result};
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::private;
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_redact::Redactor;
use tiro_store::{Flavour, ProjectRow, Store};

/// The registry of projects, in the owner's store. The documentation of [the crate](crate) says what all methods of a
/// registry promise.
#[derive(Clone)]
pub struct SqliteRegistry {
    store: SqliteStore,
    scope: Scope,
    /// The store as a trait object, for callers that don't know the engine.
    memories: Arc<dyn Store>,
}

impl SqliteRegistry {
    /// Opens `owner.db` in the data directory. Creates the file and the directory if they are missing.
    ///
    /// Errors in the same cases as [`SqliteStore::open`] and [`private::data_dir`]. Also returns an error with
    /// [`Kind::Store`] if `owner.db` has lost its content: it is an empty file although there are stores of projects.
    pub fn open(data_dir: &Path, owner: &TenantId) -> Result<SqliteRegistry> {
        private::data_dir(data_dir)?;
        let path = data_dir.join("owner.db");
        if is_empty(&path) && has_stores(&data_dir.join("projects")) {
            return Err(emptied(&path)
                .hint("move it away, then run `tiro doctor` to see which stores are left, or `tiro restore` a backup"));
        }
        let store = SqliteStore::open(&path, Flavour::Owner, ProjectId::owner_wide())?;
        Ok(SqliteRegistry::of(store, owner))
    }

    /// Errors with [`Kind::Store`] if the project's store at `path` was made earlier and is now an empty file. If such
    /// a file were opened as a new store, nobody would notice that its memories are lost.
    async fn refuse_emptied(&self, id: &ProjectId, path: &Path) -> error::Result<()> {
        // A new store gets its name only when it is complete, so an empty file is a store that lost its
        // content.
        if self.is_made(id).await? && is_empty(path) {
            return Err(emptied(path)
                .hint(
                    "move it away, then `tiro restore` a backup; `tiro.db.backups` beside it may contain one",
                )
                .into());
        }
        Ok(())
    }

    /// Records that the store of the project was made. If the record can't be written now, the next call tries
    /// again.
    async fn note_made(&self, id: &ProjectId) {
        // A caller that only reads must not wait for a writer.
        let is_new = matches!(self.is_made(id).await, Ok(false));
        if !is_new || self.store.await_turn(&self.scope, Duration::ZERO).await.is_err() {
            return;
        }
        let key = made_key(id);
        let note = self.store.write(&self.scope, move |connection, _| {
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, 1)", [key])?;
            Ok(())
        });
        if let Err(error) = note.await {
            tracing::debug!(%error, "cannot record that a store was made");
        }
    }

    async fn is_made(&self, id: &ProjectId) -> error::Result<bool> {
        let key = made_key(id);
        self.store
            .read(&self.scope, move |_, connection, _| {
                Ok(connection.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?.exists([key])?)
            })
            .await
    }

    /// Returns an empty registry in memory. The registry is called `name` within this process, and disappears when the
    /// process ends.
    pub fn blank(owner: &TenantId, name: &str) -> Result<SqliteRegistry> {
        let store = SqliteStore::blank(name, Flavour::Owner, ProjectId::owner_wide())?;
        Ok(SqliteRegistry::of(store, owner))
    }

    fn of(store: SqliteStore, owner: &TenantId) -> SqliteRegistry {
        let scope = Scope::own(owner.clone(), ProjectId::owner_wide());
        SqliteRegistry { memories: Arc::new(store.clone()), store, scope }
    }

    pub(crate) fn memories(&self) -> &Arc<dyn Store> {
        &self.memories
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) async fn store(&self, id: &ProjectId) -> error::Result<Arc<dyn Store>> {
        let path = self.file(&self.folder_of(id).await?);
        self.refuse_emptied(id, &path).await?;
        let store = SqliteStore::open(&path, Flavour::Project, id.clone())?;
        self.note_made(id).await;
        Ok(Arc::new(store))
    }

    pub(crate) async fn existing_store(&self, id: &ProjectId) -> error::Result<Option<Arc<dyn Store>>> {
        let path = self.file(&self.folder_of(id).await?);
        // If it is unknown whether the store exists, it is opened, so that the error is reported.
        if matches!(path.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
            return Ok(None);
        }
        self.refuse_emptied(id, &path).await?;
        Ok(Some(Arc::new(SqliteStore::open(&path, Flavour::Project, id.clone())?)))
    }

    pub(crate) fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(SqliteStore::blank(name, Flavour::Project, id.clone())?))
    }

    /// Returns the name of the folder of the project's store.
    async fn folder_of(&self, id: &ProjectId) -> error::Result<String> {
        let key = id.as_str().to_owned();
        let known = self.store.read(&self.scope, move |_, connection, _| {
            let sql = "SELECT folder FROM projects WHERE id = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
        });
        if let Some(known) = known.await? {
            return Ok(known);
        }
        // If the registry was lost, the store still exists, in a folder with the project's former name.
        let strays = folder::all(&self.projects());
        let stray = strays.into_iter().find(|(of, _)| of == id);
        stray
            .map(|(_, folder)| folder)
            .ok_or_else(|| error::Error::not_found(format!("no project has the id `{}`", id.as_str())))
    }

    /// Returns the name of the folder for the store of a project that is being registered.
    fn new_folder(&self, id: &ProjectId, name: &str) -> String {
        let stray = folder::all(&self.projects()).into_iter().find(|(of, _)| of == id);
        stray.map_or_else(|| folder::name(name, id), |(_, folder)| folder)
    }

    /// Returns the path of the folder that contains the folders of the projects.
    fn projects(&self) -> PathBuf {
        self.store.path().with_file_name("projects")
    }

    /// Returns the path of the store in `folder`.
    fn file(&self, folder: &str) -> PathBuf {
        self.projects().join(folder).join("tiro.db")
    }

    pub(crate) async fn note_retry_after(&self, provider: &str, until: Millis) -> error::Result<()> {
        let key = format!("left_alone:{provider}");
        self.store
            .write(&self.scope, move |connection, _| {
                connection
                    .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, until))?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn retry_after(&self, provider: &str) -> error::Result<Option<Millis>> {
        let key = format!("left_alone:{provider}");
        self.store
            .read(&self.scope, move |_, connection, _| {
                let sql = "SELECT value FROM meta WHERE key = ?1";
                Ok(connection.query_row(sql, [key], |row| row.get(0)).optional()?)
            })
            .await
    }

    pub(crate) async fn secret(&self, fresh: [u8; 32]) -> error::Result<[u8; 32]> {
        let known = self
            .store
            .read(&self.scope, |_, connection, _| {
                Ok(connection
                    .query_row("SELECT value FROM meta WHERE key = 'secret'", [], |row| {
                        row.get::<_, Vec<u8>>(0)
                    })
                    .optional()?)
            })
            .await?;
        if let Some(secret) = known.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
            return Ok(secret);
        }
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute(
                    "INSERT OR IGNORE INTO meta (key, value) VALUES ('secret', ?1)",
                    [fresh.as_slice()],
                )?;
                let stored: Vec<u8> =
                    connection
                        .query_row("SELECT value FROM meta WHERE key = 'secret'", [], |row| row.get(0))?;
                Ok(<[u8; 32]>::try_from(stored).unwrap_or(fresh))
            })
            .await
    }

    pub(crate) async fn by_id(&self, id: &ProjectId) -> error::Result<Option<ProjectRow>> {
        Ok(self.all().await?.into_iter().find(|row| row.id == *id))
    }

    pub(crate) async fn by_place(&self, place: &str) -> error::Result<Option<ProjectRow>> {
        Ok(self.all().await?.into_iter().find(|row| row.places.iter().any(|known| known == place)))
    }

    pub(crate) async fn all(&self) -> error::Result<Vec<ProjectRow>> {
        let projects = self.projects();
        self.store
            .read(&self.scope, move |_, connection, _| {
                let mut statement = connection.prepare_cached(
                    "SELECT p.id, p.name, p.folder, l.path FROM projects p LEFT JOIN places l ON l.project = p.id
                     ORDER BY p.name, p.id, l.seen DESC, l.path",
                )?;
                let mut rows = statement.query([])?;
                let mut all: Vec<ProjectRow> = Vec::new();
                while let Some(row) = rows.next()? {
                    let Some(mut project) = project(row, &projects)? else { continue };
                    let place = project.places.pop();
                    match all.last_mut() {
                        Some(last) if last.id == project.id => last.places.extend(place),
                        _ => all.push(ProjectRow { places: place.into_iter().collect(), ..project }),
                    }
                }
                Ok(all)
            })
            .await
    }

    pub(crate) async fn strays(&self) -> error::Result<Vec<ProjectRow>> {
        let known = self.all().await?;
        let mut strays = folder::all(&self.projects());
        strays.retain(|(id, _)| known.iter().all(|row| row.id != *id));
        strays.sort_by(|a, b| a.1.cmp(&b.1));
        let row = |(id, folder): (ProjectId, String)| {
            let name = folder.rsplit_once('-').map_or("", |(name, _)| name).to_owned();
            ProjectRow { id, name, file: self.file(&folder), places: Vec::new() }
        };
        Ok(strays.into_iter().map(row).collect())
    }

    pub(crate) async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> error::Result<()> {
        let (key, original) = (copy_key(copy), original.as_str().to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection
                    .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, original))?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn original(&self, copy: &ProjectId) -> error::Result<Option<ProjectRow>> {
        let key = copy_key(copy);
        let id: Option<String> = self
            .store
            .read(&self.scope, move |_, connection, _| {
                let sql = "SELECT value FROM meta WHERE key = ?1";
                Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
            })
            .await?;
        match id.as_deref().and_then(ProjectId::parse) {
            Some(id) => self.by_id(&id).await,
            None => Ok(None),
        }
    }

    pub(crate) async fn set_folder(&self, id: &ProjectId, folder: &str) -> error::Result<()> {
        let (id, folder) = (id.as_str().to_owned(), folder.to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("UPDATE projects SET folder = ?2 WHERE id = ?1", (id, folder))?;
                Ok(())
            })
            .await
    }
}

/// Returns whether there is an empty file at `path`. An empty file is not a store that is being made, because a new
/// store gets its name only when it is complete.
fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// Returns whether at least one folder in `projects` has a store that is not empty.
fn has_stores(projects: &Path) -> bool {
    let folders = std::fs::read_dir(projects).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join("tiro.db")).any(|path| path.is_file() && !is_empty(&path))
}

fn emptied(path: &Path) -> Error {
    Error::new(
        Kind::Store,
        format!("the store `{}` is an empty file, although it held memories", path.display()),
    )
}

/// Returns the key in `meta` that records that the store of a project was made.
fn made_key(project: &ProjectId) -> String {
    format!("made:{}", project.as_str())
}

/// Returns the key in `meta` under which the original of the copied project `copy` is stored.
fn copy_key(copy: &ProjectId) -> String {
    format!("copy:{}", copy.as_str())
}

fn project(row: &Row<'_>, projects: &Path) -> rusqlite::Result<Option<ProjectRow>> {
    let id: String = row.get(0)?;
    let Some(id) = ProjectId::parse(&id) else { return Ok(None) };
    let places = row.get::<_, Option<String>>(3)?.into_iter().collect();
    // Earlier versions stored the names of directories without redacting them.
    let name = Redactor::blank().redact(&row.get::<_, String>(1)?).text.into_owned();
    let file = projects.join(row.get::<_, String>(2)?).join("tiro.db");
    Ok(Some(ProjectRow { id, name, file, places }))
}
