//! The projects in the registry, and the places where they were seen: how they are registered and removed.

use rusqlite::OptionalExtension;

use super::{copy_key, project, sent};
use crate::SqliteRegistry;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::ProjectId;
use tiro_store::ProjectRow;

impl SqliteRegistry {
    pub(crate) async fn record(
        &self,
        id: &ProjectId,
        name: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<()> {
        let folder = self.new_folder(id, name);
        let (id, name, place) = (id.as_str().to_owned(), name.to_owned(), place.to_owned());
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

    pub(crate) async fn claim(
        &self,
        id: &ProjectId,
        name: &str,
        place: &str,
        now: Millis,
    ) -> error::Result<ProjectRow> {
        let (folder, projects) = (self.new_folder(id, name), self.projects());
        let new = ProjectRow {
            id: id.clone(),
            name: name.into(),
            file: self.file(&folder),
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
                        |row| project(row, &projects),
                    )
                    .optional()?
                    .flatten();
                if let Some(first) = first {
                    return Ok(first);
                }
                connection.execute(
                    "INSERT INTO projects (id, name, folder, created) VALUES (?1, ?2, ?3, ?4)",
                    (new.id.as_str(), &new.name, folder, now),
                )?;
                connection.execute(
                    "INSERT OR REPLACE INTO places (path, project, seen) VALUES (?1, ?2, ?3)",
                    (&place, new.id.as_str(), now),
                )?;
                Ok(new)
            })
            .await
    }

    pub(crate) async fn register(
        &self,
        id: &ProjectId,
        name: &str,
        now: Millis,
    ) -> error::Result<ProjectRow> {
        let (folder, key, called) = (self.new_folder(id, name), id.as_str().to_owned(), name.to_owned());
        let registered: error::Result<Option<String>> = self
            .store
            .write(&self.scope, move |connection, _| {
                let first = connection
                    .query_row(
                        "SELECT id FROM projects WHERE name = ?1 ORDER BY id LIMIT 1",
                        [&called],
                        |row| row.get(0),
                    )
                    .optional()?;
                if first.is_none() {
                    connection.execute(
                        "INSERT INTO projects (id, name, folder, created) VALUES (?1, ?2, ?3, ?4)",
                        (&key, called, folder, now),
                    )?;
                }
                Ok(first)
            })
            .await;
        let first = registered?.as_deref().and_then(ProjectId::parse);
        let id = first.as_ref().unwrap_or(id);
        self.by_id(id)
            .await?
            .ok_or_else(|| error::Error::not_found(format!("the project `{}` was removed", id.as_str())))
    }

    pub(crate) async fn forget_place(&self, place: &str) -> error::Result<()> {
        let place = place.to_owned();
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("DELETE FROM places WHERE path = ?1", [place])?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> error::Result<()> {
        let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
        self.store
            .write(&self.scope, move |connection, _| {
                connection.execute("UPDATE places SET project = ?2 WHERE project = ?1", (&from, &to))?;
                connection.execute("UPDATE sent SET project = ?2 WHERE project = ?1", (&from, &to))?;
                connection.execute("DELETE FROM shares WHERE project = ?1", [&from])?;
                connection.execute("DELETE FROM projects WHERE id = ?1", [&from])?;
                Ok(())
            })
            .await
    }

    pub(crate) async fn remove(&self, id: &ProjectId) -> error::Result<()> {
        let (key, id) = (copy_key(id), id.as_str().to_owned());
        let forgotten = self
            .store
            .write(&self.scope, move |connection, _| {
                connection.execute("DELETE FROM places WHERE project = ?1", [&id])?;
                connection.execute("DELETE FROM shares WHERE project = ?1", [&id])?;
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
