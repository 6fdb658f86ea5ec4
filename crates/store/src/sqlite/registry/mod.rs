//! The contents of `owner.db`: the owner's projects and the directories where they were seen, the ledger of
//! spending, and the installation's secret.
//!
//! Each owner has an `owner.db`, so its tables of projects and spending have no column for the owner.

pub(super) mod ledger;
mod sent;

use std::fs::DirEntry;
use std::path::Path;
use std::time::Duration;

use rusqlite::{OptionalExtension, Row};

use crate::sqlite::error::{Error, Result};
use crate::{Flavour, ProjectRow, Store};
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::private;
use tiro_base::scope::{OwnerId, ProjectId, Scope};
use tiro_redact::Redactor;

/// The registry of projects, in the owner's store. [The module](crate) says what all methods of a
/// registry promise.
#[derive(Clone)]
pub struct Registry {
    store: Store,
    scope: Scope,
}

impl Registry {
    /// Opens `owner.db` in the data directory; creates the file and the directory if they are missing.
    ///
    /// Errors as [`Store::open`] and [`private::data_dir`] do. Also errors with [`Kind::Store`] if `owner.db`
    /// is an empty file although there are stores of projects: then `owner.db` has lost its content.
    pub fn open(data_dir: &Path, owner: &OwnerId) -> Result<Registry> {
        private::data_dir(data_dir)?;
        let path = data_dir.join("owner.db");
        if is_empty(&path) && has_stores(&data_dir.join("projects")) {
            return Err(emptied(&path)
                .hint("move it away, then run `tiro doctor` to see which stores are left, or `tiro restore` a backup"));
        }
        let store = Store::open(&path, Flavour::Owner, ProjectId::owner_wide())?;
        Ok(Registry { store, scope: Scope::project(owner.clone(), ProjectId::owner_wide()) })
    }

    /// Errors with [`Kind::Store`] if the project's store at `path` was made earlier and is now an empty file.
    /// If it were opened as a new store, nobody would notice that its memories are lost.
    pub async fn refuse_emptied(&self, id: &ProjectId, path: &Path) -> error::Result<()> {
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
    pub async fn note_made(&self, id: &ProjectId) {
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

    /// Returns an empty registry in memory, called `name` within this process. It is gone when the process
    /// ends.
    pub fn blank(owner: &OwnerId, name: &str) -> Result<Registry> {
        let store = Store::blank(name, Flavour::Owner, ProjectId::owner_wide())?;
        Ok(Registry { store, scope: Scope::project(owner.clone(), ProjectId::owner_wide()) })
    }

    /// Returns the store of the memories that belong to the owner and to no project.
    pub fn memories(&self) -> &Store {
        &self.store
    }

    /// Returns the scope of the memories that belong to the owner and to no project.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Notes that `provider` asked us to send no requests before `until` (`Retry-After`). If several callers store a
    /// time, the last one wins.
    pub async fn note_retry_after(&self, provider: &str, until: Millis) -> error::Result<()> {
        let key = format!("left_alone:{provider}");
        self.store
            .write(&self.scope, move |connection, _| {
                connection
                    .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, until))?;
                Ok(())
            })
            .await
    }

    /// Returns the time until which `provider` last asked us to wait; `None` if it never asked. The time may be
    /// in the past.
    pub async fn retry_after(&self, provider: &str) -> error::Result<Option<Millis>> {
        let key = format!("left_alone:{provider}");
        self.store
            .read(&self.scope, move |_, connection, _| {
                let sql = "SELECT value FROM meta WHERE key = ?1";
                Ok(connection.query_row(sql, [key], |row| row.get(0)).optional()?)
            })
            .await
    }

    /// Returns the installation's secret, 32 random bytes. If there is none yet, `fresh` is stored as the
    /// secret. All callers get the same secret, even if several are the first at once.
    pub async fn secret(&self, fresh: [u8; 32]) -> error::Result<[u8; 32]> {
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

    /// Returns the project with the id `id`, or `None`.
    pub async fn by_id(&self, id: &ProjectId) -> error::Result<Option<ProjectRow>> {
        Ok(self.all().await?.into_iter().find(|row| row.id == *id))
    }

    /// Returns the project last seen at `place`, or `None`.
    pub async fn by_place(&self, place: &str) -> error::Result<Option<ProjectRow>> {
        Ok(self.all().await?.into_iter().find(|row| row.places.iter().any(|known| known == place)))
    }

    /// Returns every project, ordered by name, then by id.
    pub async fn all(&self) -> error::Result<Vec<ProjectRow>> {
        self.store
            .read(&self.scope, |_, connection, _| {
                let mut statement = connection.prepare_cached(
                    "SELECT p.id, p.name, p.folder, l.path FROM projects p LEFT JOIN places l ON l.project = p.id
                     ORDER BY p.name, p.id, l.seen DESC, l.path",
                )?;
                let mut rows = statement.query([])?;
                let mut projects: Vec<ProjectRow> = Vec::new();
                while let Some(row) = rows.next()? {
                    let Some(mut project) = project(row)? else { continue };
                    let place = project.places.pop();
                    match projects.last_mut() {
                        Some(last) if last.id == project.id => last.places.extend(place),
                        _ => projects.push(ProjectRow { places: place.into_iter().collect(), ..project }),
                    }
                }
                Ok(projects)
            })
            .await
    }

    /// Returns the projects that have a store in the data directory but are not in the registry, ordered by
    /// folder. There are such projects after the loss of `owner.db` or after a merge of two projects. The
    /// directories of these projects aren't known; the projects are named after the folders of their stores.
    pub async fn strays(&self) -> error::Result<Vec<ProjectRow>> {
        let known = self.all().await?;
        let folders = self.store.path().with_file_name("projects");
        let Ok(entries) = std::fs::read_dir(folders) else { return Ok(Vec::new()) };
        let stray = |entry: DirEntry| {
            let folder = entry.file_name().into_string().ok()?;
            let (name, id) = folder.rsplit_once('-')?;
            let (name, id) = (name.to_owned(), ProjectId::parse(id)?);
            let is_stray = entry.path().join("tiro.db").is_file() && known.iter().all(|row| row.id != id);
            is_stray.then_some(ProjectRow { id, name, folder, places: Vec::new() })
        };
        let mut strays: Vec<ProjectRow> = entries.flatten().filter_map(stray).collect();
        strays.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(strays)
    }

    /// Stores that the repository of the project `copy` is a copy of the repository of `original`.
    pub async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> error::Result<()> {
        let (key, original) = (copy_key(copy), original.as_str().to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection
                    .execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, original))?;
                Ok(())
            })
            .await
    }

    /// Returns the project of which `copy` is a copy, as [`Registry::note_copy`] stored it, or `None`.
    pub async fn original(&self, copy: &ProjectId) -> error::Result<Option<ProjectRow>> {
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

    /// Stores that the project was seen at `place` at the time `now`. If the project is new, it is registered
    /// with `name` and `folder`. A place belongs to the project that was last seen there.
    pub async fn record(
        &self,
        id: &ProjectId,
        name: &str,
        folder: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<()> {
        let (id, name) = (id.as_str().to_owned(), name.to_owned());
        let (folder, place) = (folder.to_owned(), place.to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute(
                    "INSERT OR IGNORE INTO projects (id, name, folder, created) VALUES (?1, ?2, ?3, ?4)",
                    (&id, name, folder, now),
                )?;
                connection.execute(
                    "INSERT INTO places (path, project, seen) VALUES (?1, ?2, ?3)
                     ON CONFLICT (path) DO UPDATE SET project = ?2, seen = ?3",
                    (place, &id, now),
                )?;
                Ok(())
            })
            .await
    }

    /// Registers a new project at `place`, unless a project is already registered there. Returns the project
    /// that is registered there afterwards. If several callers do this at once, one of them registers its
    /// project, and all get that project.
    pub async fn claim(
        &self,
        id: &ProjectId,
        name: &str,
        folder: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<ProjectRow> {
        let new = ProjectRow {
            id: id.clone(),
            name: name.into(),
            folder: folder.into(),
            places: vec![place.into()],
        };
        let place = place.to_owned();
        self.store
            .write(&self.scope, move |connection, _| {
                let first = connection
                    .query_row(
                        "SELECT p.id, p.name, p.folder, l.path FROM places l JOIN projects p ON p.id = l.project
                         WHERE l.path = ?1",
                        [&place],
                        project,
                    )
                    .optional()?
                    .flatten();
                if let Some(first) = first {
                    return Ok(first);
                }
                connection.execute(
                    "INSERT INTO projects (id, name, folder, created) VALUES (?1, ?2, ?3, ?4)",
                    (new.id.as_str(), &new.name, &new.folder, now),
                )?;
                connection.execute(
                    "INSERT OR REPLACE INTO places (path, project, seen) VALUES (?1, ?2, ?3)",
                    (&place, new.id.as_str(), now),
                )?;
                Ok(new)
            })
            .await
    }

    /// Stores that the store of the project lies in `folder`.
    pub async fn set_folder(&self, id: &ProjectId, folder: &str) -> error::Result<()> {
        let (id, folder) = (id.as_str().to_owned(), folder.to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("UPDATE projects SET folder = ?2 WHERE id = ?1", (id, folder))?;
                Ok(())
            })
            .await
    }

    /// Removes a place from its project.
    pub async fn forget_place(&self, place: &str) -> error::Result<()> {
        let place = place.to_owned();
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("DELETE FROM places WHERE path = ?1", [place])?;
                Ok(())
            })
            .await
    }

    /// Gives the places of the project `from` to the project `to`, and removes `from` from the registry. The
    /// store of `from` stays on disk.
    pub async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> error::Result<()> {
        let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("UPDATE places SET project = ?2 WHERE project = ?1", (&from, &to))?;
                connection.execute("UPDATE sent SET project = ?2 WHERE project = ?1", (&from, &to))?;
                connection.execute("DELETE FROM projects WHERE id = ?1", [&from])?;
                Ok(())
            })
            .await
    }
}

impl Registry {
    /// Removes a project and its places from the registry, and the names of what was sent for it. The project's store
    /// stays on disk.
    pub async fn remove(&self, id: &ProjectId) -> error::Result<()> {
        let (key, id) = (copy_key(id), id.as_str().to_owned());
        let forgotten = self
            .store
            .write(&self.scope, move |connection, _| {
                connection.execute("DELETE FROM places WHERE project = ?1", [&id])?;
                connection.execute("DELETE FROM projects WHERE id = ?1", [&id])?;
                connection.execute("DELETE FROM meta WHERE key = ?1", [key])?;
                sent::forget_project(connection, &id)
            })
            .await?;
        match forgotten {
            0 => Ok(()),
            _ => self.store.clean_files().await,
        }
    }
}

/// Returns whether there is an empty file at `path`. A store that is being made doesn't appear at its path
/// until it is complete.
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

fn project(row: &Row<'_>) -> rusqlite::Result<Option<ProjectRow>> {
    let id: String = row.get(0)?;
    let Some(id) = ProjectId::parse(&id) else { return Ok(None) };
    let places = row.get::<_, Option<String>>(3)?.into_iter().collect();
    // Earlier versions stored the names of directories as they are.
    let name = Redactor::blank().redact(&row.get::<_, String>(1)?).text.into_owned();
    Ok(Some(ProjectRow { id, name, folder: row.get(2)?, places }))
}
