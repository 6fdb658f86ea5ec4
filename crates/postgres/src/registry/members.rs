//! The users of a server: their keys, their teams, and what is shared with the teams.

use async_trait::async_trait;
use tokio_postgres::Row;

use super::{NAME_TENANT, PostgresRegistry, audit, nothing_seen};
use crate::error::Result;
use crate::transactions::{Transaction, read, transact, write};
use tiro_base::error;
use tiro_base::memory::Kind;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::{
    Access, AuditFilter, AuditRow, KeyChange, KeyRow, Members, ProjectRights, Rights, ShareRow, TeamChange,
    TeamRow, decide,
};

/// The columns of a key, in the order of [`key`].
const KEY: &str = "id, name, access, hash, made, expires, revoked, used";

#[async_trait]
impl Members for PostgresRegistry {
    async fn keys(&self) -> error::Result<Vec<KeyRow>> {
        read!(self, &self.scope, tx => { self.all_keys(&tx).await })
    }

    async fn key_with_hash(&self, hash: &str) -> error::Result<Option<KeyRow>> {
        let sql = format!("SELECT {KEY} FROM user_keys WHERE tenant = $1 AND hash = $2");
        read!(self, &self.scope, tx => {
            Ok(tx.row(&sql, &[&self.tenant(), &hash]).await?.as_ref().map(key).transpose()?.flatten())
        })
    }

    async fn change_keys(&self, change: KeyChange) -> error::Result<Vec<KeyRow>> {
        let put = format!(
            "INSERT INTO user_keys (tenant, {KEY}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (tenant, id) DO UPDATE SET revoked = excluded.revoked, used = excluded.used"
        );
        write!(self, &self.scope, tx => {
            let changed = decide::keys::changed(&self.all_keys(&tx).await?, &change)?;
            for row in &changed {
                let KeyRow { id, name, access, hash, made, expires, revoked, used } = row;
                tx.execute(
                    &put,
                    &[&self.tenant(), id, name, &access.as_str(), hash, made, expires, revoked, used],
                )
                .await?;
            }
            Ok(changed)
        })
    }

    async fn teams(&self) -> error::Result<Vec<TeamRow>> {
        read!(self, &self.scope, tx => {
            let sql = "SELECT t.name, t.made, ARRAY(SELECT m.username FROM team_members m
                           WHERE m.tenant = t.tenant AND m.team = t.name ORDER BY m.username)
                       FROM teams t WHERE t.tenant = $1 ORDER BY t.name";
            let rows = tx.rows(sql, &[&self.tenant()]).await?;
            let team = |row: &Row| {
                Ok(TeamRow { name: row.try_get(0)?, made: row.try_get(1)?, members: row.try_get(2)? })
            };
            rows.iter().map(team).collect()
        })
    }

    async fn change_teams(&self, change: TeamChange) -> error::Result<bool> {
        let tenant = self.tenant();
        write!(self, &self.scope, tx => {
            let changed = match &change {
                TeamChange::Create { team, now } => {
                    let sql = "INSERT INTO teams (tenant, name, made) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
                    tx.execute(sql, &[&tenant, team, now]).await?
                }
                TeamChange::Remove { team } => {
                    let sql = "DELETE FROM teams WHERE tenant = $1 AND name = $2";
                    tx.execute(sql, &[&tenant, team]).await?
                }
                TeamChange::Add { team, user } => {
                    let sql = "INSERT INTO team_members (tenant, team, username)
                               SELECT tenant, name, $3 FROM teams WHERE tenant = $1 AND name = $2
                               ON CONFLICT DO NOTHING";
                    tx.execute(sql, &[&tenant, team, user]).await?
                }
                TeamChange::Leave { team, user } => {
                    let sql = "DELETE FROM team_members WHERE tenant = $1 AND team = $2 AND username = $3";
                    tx.execute(sql, &[&tenant, team, user]).await?
                }
            };
            Ok(changed > 0)
        })
    }

    async fn shares(&self) -> error::Result<Vec<ShareRow>> {
        read!(self, &self.scope, tx => {
            let sql = "SELECT project, team, may_write, kinds FROM shares WHERE tenant = $1 ORDER BY project, team";
            let rows = tx.rows(sql, &[&self.tenant()]).await?;
            rows.iter().filter_map(|row| share(row).transpose()).collect()
        })
    }

    async fn share(&self, share: ShareRow) -> error::Result<bool> {
        let (tenant, project, kinds) = (self.tenant(), share.project.as_str(), kinds_text(&share.kinds));
        write!(self, &self.scope, tx => {
            let shared = tx
                .execute(
                    "INSERT INTO shares (tenant, project, team, may_write, kinds)
                     SELECT p.tenant, p.id, t.name, $4, $5 FROM projects p JOIN teams t ON t.tenant = p.tenant
                     WHERE p.tenant = $1 AND p.id = $2 AND p.created IS NOT NULL AND t.name = $3
                     ON CONFLICT (tenant, project, team) DO UPDATE SET may_write = excluded.may_write",
                    &[&tenant, &project, &share.team, &share.may_write, &kinds],
                )
                .await?;
            if shared > 0 {
                let sql = "UPDATE shares SET kinds = $3 WHERE tenant = $1 AND project = $2";
                tx.execute(sql, &[&tenant, &project, &kinds]).await?;
            }
            Ok(shared > 0)
        })
    }

    async fn unshare(&self, project: &ProjectId, team: Option<&str>) -> error::Result<bool> {
        write!(self, &self.scope, tx => {
            let sql = "DELETE FROM shares
                       WHERE tenant = $1 AND project = $2 AND ($3::text IS NULL OR team = $3)";
            Ok(tx.execute(sql, &[&self.tenant(), &project.as_str(), &team]).await? > 0)
        })
    }

    async fn rights(&self, user: &str) -> error::Result<Vec<ProjectRights>> {
        read!(self, &self.scope, tx => {
            let sql = "SELECT p.id, p.name, bool_or(s.may_write), max(s.kinds)
                       FROM team_members m JOIN shares s ON s.tenant = m.tenant AND s.team = m.team
                       JOIN projects p ON p.tenant = s.tenant AND p.id = s.project
                       WHERE m.tenant = $1 AND m.username = $2 AND p.created IS NOT NULL
                       GROUP BY p.id, p.name ORDER BY p.name, p.id";
            let rows = tx.rows(sql, &[&self.tenant(), &user]).await?;
            rows.iter().filter_map(|row| rights(row).transpose()).collect()
        })
    }

    async fn note_call(&self, call: AuditRow) -> error::Result<()> {
        transact!(self.begin_light(&self.scope), tx => {
            audit::note(&tx, self.tenant(), &call, decide::keys::MOST_CALLS).await
        })
    }

    async fn calls(&self, filter: AuditFilter) -> error::Result<Vec<AuditRow>> {
        read!(self, &self.scope, tx => { audit::calls(&tx, self.tenant(), &filter).await })
    }
}

impl PostgresRegistry {
    async fn all_keys(&self, tx: &Transaction) -> Result<Vec<KeyRow>> {
        let sql = format!("SELECT {KEY} FROM user_keys WHERE tenant = $1 ORDER BY name, made, id");
        let rows = tx.rows(&sql, &[&self.tenant()]).await?;
        rows.iter().filter_map(|row| key(row).transpose()).collect()
    }

    /// Begins a transaction that only adds to the record of calls. It waits for no other one, and its effect may be lost
    /// in a crash of the database server.
    async fn begin_light(&self, _scope: &Scope) -> Result<Transaction> {
        let connection = self.databases.first().connection().await?;
        connection
            .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off")
            .await?;
        let transaction = Transaction::begun(connection, nothing_seen());
        transaction.execute(NAME_TENANT, &[&self.tenant()]).await?;
        Ok(transaction)
    }
}

/// Reads a key; `None` if what it allows is unknown to this version.
fn key(row: &Row) -> Result<Option<KeyRow>> {
    let Ok(access) = row.try_get::<_, &str>(2)?.parse::<Access>() else { return Ok(None) };
    Ok(Some(KeyRow {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        access,
        hash: row.try_get(3)?,
        made: row.try_get(4)?,
        expires: row.try_get(5)?,
        revoked: row.try_get(6)?,
        used: row.try_get(7)?,
    }))
}

fn share(row: &Row) -> Result<Option<ShareRow>> {
    let Some(project) = ProjectId::parse(row.try_get(0)?) else { return Ok(None) };
    let (team, may_write, kinds) = (row.try_get(1)?, row.try_get(2)?, read_kinds(row.try_get(3)?));
    Ok(Some(ShareRow { project, team, may_write, kinds }))
}

fn rights(row: &Row) -> Result<Option<ProjectRights>> {
    let Some(project) = ProjectId::parse(row.try_get(0)?) else { return Ok(None) };
    let rights = Rights { may_write: row.try_get(2)?, kinds: read_kinds(row.try_get(3)?) };
    Ok(Some(ProjectRights { project, name: row.try_get(1)?, rights }))
}

/// Returns the kinds as they are stored.
fn kinds_text(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

/// Returns the stored kinds. Kinds of later versions are left out, so that nothing of them is shared.
fn read_kinds(text: &str) -> Vec<Kind> {
    text.split(',').filter_map(Kind::parse).collect()
}
