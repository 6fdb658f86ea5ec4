//! Faults of keys, teams, shares and the record of calls.

use async_trait::async_trait;

use super::Fault;
use super::registry::BrokenRegistry;
use tiro_base::error::Result;
use tiro_base::memory::Kind;
use tiro_base::scope::ProjectId;
use tiro_store::*;

#[async_trait]
impl Members for BrokenRegistry {
    async fn keys(&self) -> Result<Vec<KeyRow>> {
        self.inner().keys().await
    }

    async fn key_with_hash(&self, hash: &str) -> Result<Option<KeyRow>> {
        self.inner().key_with_hash(hash).await
    }

    async fn change_keys(&self, change: KeyChange) -> Result<Vec<KeyRow>> {
        match change {
            KeyChange::Revoke { which, now } if self.is(Fault::RevokesNothing) => {
                let keys = self.inner().keys().await?.into_iter().filter(|row| row.name == which);
                Ok(keys.map(|row| KeyRow { revoked: Some(now), ..row }).collect())
            }
            KeyChange::Replace { id, hash, now, .. } if self.is(Fault::RevokesNothing) => {
                let mut row = self.inner().keys().await?.swap_remove(0);
                (row.id, row.hash, row.name, row.made) = (id, hash, "another".into(), now);
                self.inner().change_keys(KeyChange::Add(row)).await
            }
            KeyChange::Add(mut row) if self.is(Fault::AddsSecondKeys) => {
                row.made = row.expires.unwrap_or(row.made).max(90);
                self.inner().change_keys(KeyChange::Add(row)).await
            }
            KeyChange::Use { .. } if self.is(Fault::ForgetsUses) => Ok(Vec::new()),
            change => self.inner().change_keys(change).await,
        }
    }

    async fn teams(&self) -> Result<Vec<TeamRow>> {
        self.inner().teams().await
    }

    async fn change_teams(&self, change: TeamChange) -> Result<bool> {
        match change {
            TeamChange::Leave { .. } if self.is(Fault::KeepsMembers) => Ok(true),
            TeamChange::Remove { .. } if self.is(Fault::KeepsShares) => Ok(true),
            TeamChange::Create { .. } if self.is(Fault::KeepsShares) => {
                self.inner().change_teams(change).await.map(|_| true)
            }
            change => self.inner().change_teams(change).await,
        }
    }

    async fn shares(&self) -> Result<Vec<ShareRow>> {
        self.inner().shares().await
    }

    async fn share(&self, mut share: ShareRow) -> Result<bool> {
        if self.is(Fault::KeepsKinds) {
            let shares = self.inner().shares().await?;
            let known = shares.into_iter().find(|row| row.project == share.project);
            share.kinds = known.map_or(share.kinds, |row| row.kinds);
        }
        self.inner().share(share).await
    }

    async fn unshare(&self, project: &ProjectId, team: Option<&str>) -> Result<bool> {
        self.inner().unshare(project, team).await
    }

    async fn rights(&self, user: &str) -> Result<Vec<ProjectRights>> {
        let mut rights = self.inner().rights(user).await?;
        if self.is(Fault::AllowsEverything) {
            rights.iter_mut().for_each(|row| row.rights.may_write = true);
        }
        if self.is(Fault::IgnoresTeams) {
            let all = self.inner().shares().await?.into_iter();
            let row = |share: ShareRow| ProjectRights {
                project: share.project,
                name: "willow".into(),
                rights: Rights { may_write: share.may_write, kinds: vec![Kind::Decision, Kind::Commit] },
            };
            rights = all.map(row).collect();
        }
        Ok(rights)
    }

    async fn note_call(&self, call: AuditRow) -> Result<()> {
        self.inner().note_call(call).await
    }

    async fn calls(&self, mut filter: AuditFilter) -> Result<Vec<AuditRow>> {
        if self.is(Fault::IgnoresFilter) {
            filter = AuditFilter { limit: filter.limit, ..AuditFilter::default() };
        }
        let mut calls = self.inner().calls(filter).await?;
        if self.is(Fault::ReordersResults) {
            calls.reverse();
        }
        Ok(calls)
    }
}
