//! The users of a server: their keys, their teams, and what is shared with the teams.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::audit;
use crate::SqliteRegistry;
use crate::error::Result;
use async_trait::async_trait;
use tiro_base::error;
use tiro_base::memory::Kind;
use tiro_base::scope::ProjectId;
use tiro_store::{
    Access, AuditFilter, AuditRow, KeyChange, KeyRow, Members, ProjectRights, Rights, ShareRow, TeamChange,
    TeamRow, decide,
};

/// The columns of a key, in the order of [`key`].
const KEY: &str = "id, name, access, hash, made, expires, revoked, used";

#[async_trait]
impl Members for SqliteRegistry {
    async fn keys(&self) -> error::Result<Vec<KeyRow>> {
        self.store.read(&self.scope, |_, connection, _| keys(connection)).await
    }

    async fn key_with_hash(&self, hash: &str) -> error::Result<Option<KeyRow>> {
        let hash = hash.to_owned();
        let found = self.store.read(&self.scope, move |_, connection, _| {
            let sql = format!("SELECT {KEY} FROM user_keys WHERE hash = ?1");
            Ok(connection.prepare_cached(&sql)?.query_row([hash], key).optional()?)
        });
        Ok(found.await?.flatten())
    }

    async fn change_keys(&self, change: KeyChange) -> error::Result<Vec<KeyRow>> {
        self.store
            .write(&self.scope, move |connection, _| {
                let changed = decide::keys::changed(&keys(connection)?, &change)?;
                for row in &changed {
                    connection
                        .prepare_cached(&format!(
                            "INSERT OR REPLACE INTO user_keys ({KEY}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                        ))?
                        .execute(params![
                            row.id,
                            row.name,
                            row.access.as_str(),
                            row.hash,
                            row.made,
                            row.expires,
                            row.revoked,
                            row.used
                        ])?;
                }
                Ok(changed)
            })
            .await
    }

    async fn teams(&self) -> error::Result<Vec<TeamRow>> {
        self.store
            .read(&self.scope, |_, connection, _| {
                let mut statement = connection.prepare_cached(
                    "SELECT t.name, t.made, m.user FROM teams t LEFT JOIN team_members m ON m.team = t.name
                     ORDER BY t.name, m.user",
                )?;
                let mut rows = statement.query([])?;
                let mut teams: Vec<TeamRow> = Vec::new();
                while let Some(row) = rows.next()? {
                    let (name, made, user): (String, i64, Option<String>) =
                        (row.get(0)?, row.get(1)?, row.get(2)?);
                    match teams.last_mut() {
                        Some(last) if last.name == name => last.members.extend(user),
                        _ => teams.push(TeamRow { name, made, members: user.into_iter().collect() }),
                    }
                }
                Ok(teams)
            })
            .await
    }

    async fn change_teams(&self, change: TeamChange) -> error::Result<bool> {
        self.store
            .write(&self.scope, move |connection, _| {
                let changed = match &change {
                    TeamChange::Create { team, now } => connection
                        .execute("INSERT OR IGNORE INTO teams (name, made) VALUES (?1, ?2)", (team, now))?,
                    TeamChange::Remove { team } => {
                        connection.execute("DELETE FROM team_members WHERE team = ?1", [team])?;
                        connection.execute("DELETE FROM shares WHERE team = ?1", [team])?;
                        connection.execute("DELETE FROM teams WHERE name = ?1", [team])?
                    }
                    TeamChange::Add { team, user } => connection.execute(
                        "INSERT OR IGNORE INTO team_members (team, user) SELECT name, ?2 FROM teams WHERE name = ?1",
                        (team, user),
                    )?,
                    TeamChange::Leave { team, user } => connection
                        .execute("DELETE FROM team_members WHERE team = ?1 AND user = ?2", (team, user))?,
                };
                Ok(changed > 0)
            })
            .await
    }

    async fn shares(&self) -> error::Result<Vec<ShareRow>> {
        self.store
            .read(&self.scope, |_, connection, _| {
                let sql = "SELECT project, team, may_write, kinds FROM shares ORDER BY project, team";
                let mut statement = connection.prepare_cached(sql)?;
                let rows = statement.query_map([], |row| {
                    let project: String = row.get(0)?;
                    let (team, may_write) = (row.get(1)?, row.get(2)?);
                    let kinds = read_kinds(&row.get::<_, String>(3)?);
                    Ok(ProjectId::parse(&project).map(|project| ShareRow { project, team, may_write, kinds }))
                })?;
                Ok(rows.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    async fn share(&self, share: ShareRow) -> error::Result<bool> {
        self.store
            .write(&self.scope, move |connection, _| {
                let (project, kinds) = (share.project.as_str(), kinds_text(&share.kinds));
                let shared = connection.execute(
                    "INSERT INTO shares (project, team, may_write, kinds)
                     SELECT p.id, t.name, ?3, ?4 FROM projects p, teams t WHERE p.id = ?1 AND t.name = ?2
                     ON CONFLICT (project, team) DO UPDATE SET may_write = excluded.may_write",
                    (project, &share.team, share.may_write, &kinds),
                )?;
                if shared > 0 {
                    connection
                        .execute("UPDATE shares SET kinds = ?2 WHERE project = ?1", (project, kinds))?;
                }
                Ok(shared > 0)
            })
            .await
    }

    async fn unshare(&self, project: &ProjectId, team: Option<&str>) -> error::Result<bool> {
        let (project, team) = (project.as_str().to_owned(), team.map(str::to_owned));
        self.store
            .write(&self.scope, move |connection, _| {
                let sql = "DELETE FROM shares WHERE project = ?1 AND (?2 IS NULL OR team = ?2)";
                Ok(connection.execute(sql, (project, team))? > 0)
            })
            .await
    }

    async fn rights(&self, user: &str) -> error::Result<Vec<ProjectRights>> {
        let user = user.to_owned();
        self.store
            .read(&self.scope, move |_, connection, _| {
                let mut statement = connection.prepare_cached(
                    "SELECT p.id, p.name, max(s.may_write), max(s.kinds)
                     FROM team_members m JOIN shares s ON s.team = m.team JOIN projects p ON p.id = s.project
                     WHERE m.user = ?1 GROUP BY p.id, p.name ORDER BY p.name, p.id",
                )?;
                let rows = statement.query_map([user], |row| {
                    let id: String = row.get(0)?;
                    let rights =
                        Rights { may_write: row.get(2)?, kinds: read_kinds(&row.get::<_, String>(3)?) };
                    let name = row.get(1)?;
                    Ok(ProjectId::parse(&id).map(|project| ProjectRights { project, name, rights }))
                })?;
                Ok(rows.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    async fn note_call(&self, call: AuditRow) -> error::Result<()> {
        let noted = self.store.write_unsynced(&self.scope, move |connection, _| {
            audit::note(connection, &call, decide::keys::MOST_CALLS)
        });
        noted.await
    }

    async fn calls(&self, filter: AuditFilter) -> error::Result<Vec<AuditRow>> {
        self.store.read(&self.scope, move |_, connection, _| audit::calls(connection, &filter)).await
    }
}

fn keys(connection: &Connection) -> Result<Vec<KeyRow>> {
    let sql = format!("SELECT {KEY} FROM user_keys ORDER BY name, made, id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], key)?;
    Ok(rows.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<_>>()?)
}

/// Reads a key; `None` if what it allows is unknown to this version.
fn key(row: &Row<'_>) -> rusqlite::Result<Option<KeyRow>> {
    let Ok(access) = row.get::<_, String>(2)?.parse::<Access>() else { return Ok(None) };
    Ok(Some(KeyRow {
        id: row.get(0)?,
        name: row.get(1)?,
        access,
        hash: row.get(3)?,
        made: row.get(4)?,
        expires: row.get(5)?,
        revoked: row.get(6)?,
        used: row.get(7)?,
    }))
}

/// Returns the kinds as they are stored.
fn kinds_text(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

/// Returns the stored kinds. Kinds of later versions are left out, so that nothing of them is shared.
fn read_kinds(text: &str) -> Vec<Kind> {
    text.split(',').filter_map(Kind::parse).collect()
}
