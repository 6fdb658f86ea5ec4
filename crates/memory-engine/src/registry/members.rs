//! The users of a server, in RAM.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::MemoryRegistry;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Millis};
use tiro_base::scope::ProjectId;
use tiro_store::{
    AuditFilter, AuditRow, KeyChange, KeyRow, Members, ProjectRights, Rights, ShareRow, TeamChange, TeamRow,
    decide,
};

/// The keys, the teams, the shares and the record of calls.
#[derive(Clone, Default)]
pub(super) struct Users {
    keys: Vec<KeyRow>,
    /// When each team was made, and its members.
    teams: BTreeMap<String, (Millis, BTreeSet<String>)>,
    /// Of each project and team whether the team may write.
    shares: BTreeMap<(ProjectId, String), bool>,
    /// The shared kinds of each project.
    kinds: BTreeMap<ProjectId, Vec<Kind>>,
    calls: Vec<AuditRow>,
}

impl Users {
    /// Ends that the project is shared with the team, or with any team. Returns whether it was.
    pub fn unshare(&mut self, project: &ProjectId, team: Option<&str>) -> bool {
        let before = self.shares.len();
        self.shares.retain(|(shared, with), _| shared != project || team.is_some_and(|team| team != with));
        before != self.shares.len()
    }

    fn change_keys(&mut self, change: &KeyChange) -> Result<Vec<KeyRow>> {
        let changed = decide::keys::changed(&self.keys, change)?;
        for row in &changed {
            self.keys.retain(|known| known.id != row.id);
            self.keys.push(row.clone());
        }
        self.keys.sort_by(|a, b| (&a.name, a.made, &a.id).cmp(&(&b.name, b.made, &b.id)));
        Ok(changed)
    }

    fn change_teams(&mut self, change: TeamChange) -> bool {
        match change {
            TeamChange::Create { team, now } => match self.teams.contains_key(&team) {
                true => false,
                false => self.teams.insert(team, (now, BTreeSet::new())).is_none(),
            },
            TeamChange::Remove { team } => {
                self.shares.retain(|(_, with), _| *with != team);
                self.teams.remove(&team).is_some()
            }
            TeamChange::Add { team, user } => {
                self.teams.get_mut(&team).is_some_and(|(_, members)| members.insert(user))
            }
            TeamChange::Leave { team, user } => {
                self.teams.get_mut(&team).is_some_and(|(_, members)| members.remove(&user))
            }
        }
    }

    fn kinds_of(&self, project: &ProjectId) -> Vec<Kind> {
        self.kinds.get(project).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Members for MemoryRegistry {
    async fn keys(&self) -> Result<Vec<KeyRow>> {
        Ok(self.read(|state| state.users.keys.clone()))
    }

    async fn key_with_hash(&self, hash: &str) -> Result<Option<KeyRow>> {
        Ok(self.read(|state| state.users.keys.iter().find(|row| row.hash == hash).cloned()))
    }

    async fn change_keys(&self, change: KeyChange) -> Result<Vec<KeyRow>> {
        self.write(|state| state.users.change_keys(&change))
    }

    async fn teams(&self) -> Result<Vec<TeamRow>> {
        let team = |(name, (made, members)): (&String, &(Millis, BTreeSet<String>))| TeamRow {
            name: name.clone(),
            made: *made,
            members: members.iter().cloned().collect(),
        };
        Ok(self.read(|state| state.users.teams.iter().map(team).collect()))
    }

    async fn change_teams(&self, change: TeamChange) -> Result<bool> {
        self.write(|state| Ok(state.users.change_teams(change)))
    }

    async fn shares(&self) -> Result<Vec<ShareRow>> {
        Ok(self.read(|state| {
            let row = |((project, team), may_write): (&(ProjectId, String), &bool)| ShareRow {
                project: project.clone(),
                team: team.clone(),
                may_write: *may_write,
                kinds: state.users.kinds_of(project),
            };
            state.users.shares.iter().map(row).collect()
        }))
    }

    async fn share(&self, share: ShareRow) -> Result<bool> {
        self.write(|state| {
            let ShareRow { project, team, may_write, kinds } = share;
            if !state.projects.contains_key(&project) || !state.users.teams.contains_key(&team) {
                return Ok(false);
            }
            state.users.kinds.insert(project.clone(), kinds);
            state.users.shares.insert((project, team), may_write);
            Ok(true)
        })
    }

    async fn unshare(&self, project: &ProjectId, team: Option<&str>) -> Result<bool> {
        self.write(|state| Ok(state.users.unshare(project, team)))
    }

    async fn rights(&self, user: &str) -> Result<Vec<ProjectRights>> {
        Ok(self.read(|state| {
            let mut may_write: BTreeMap<(&String, &ProjectId), bool> = BTreeMap::new();
            for ((project, team), writes) in &state.users.shares {
                let is_member =
                    state.users.teams.get(team).is_some_and(|(_, members)| members.contains(user));
                if let Some(name) = state.projects.get(project).filter(|_| is_member) {
                    *may_write.entry((name, project)).or_default() |= writes;
                }
            }
            let row = |((name, project), may_write): ((&String, &ProjectId), bool)| ProjectRights {
                project: project.clone(),
                name: name.clone(),
                rights: Rights { may_write, kinds: state.users.kinds_of(project) },
            };
            may_write.into_iter().map(row).collect()
        }))
    }

    async fn note_call(&self, call: AuditRow) -> Result<()> {
        self.write(|state| {
            state.users.calls.push(call);
            Ok(())
        })
    }

    async fn calls(&self, filter: AuditFilter) -> Result<Vec<AuditRow>> {
        let is_admitted = |call: &&AuditRow| {
            filter.since.is_none_or(|since| call.at >= since)
                && filter.user.as_ref().is_none_or(|user| call.user == *user)
                && filter.project.as_ref().is_none_or(|project| call.project.as_ref() == Some(project))
        };
        Ok(self.read(|state| {
            state.users.calls.iter().rev().filter(is_admitted).take(filter.limit).cloned().collect()
        }))
    }
}
