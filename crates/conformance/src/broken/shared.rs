//! Faults of sessions, links, the graph of commits, measurements and backups.

use std::collections::HashSet;
use std::path::Path;

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId, TenantId};
use tiro_store::*;

impl BrokenStore {
    pub async fn sessions(&self, scope: &Scope, offset: usize, limit: usize) -> Result<Vec<SessionRow>> {
        let offset = if self.is(Fault::IgnoresPage) { 0 } else { offset };
        Ok(self.ordered(self.inner.sessions(&self.scope(scope), offset, self.limit(limit)).await?))
    }

    pub async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<(Option<String>, Option<String>)> {
        let stands = self.inner.session_stands(&self.scope(scope), session).await?;
        Ok(if self.is(Fault::LosesStands) { (None, None) } else { stands })
    }

    pub async fn sessions_called(&self, scope: &Scope, text: &str, limit: usize) -> Result<Vec<SessionId>> {
        Ok(self.ordered(self.inner.sessions_called(&self.scope(scope), text, self.limit(limit)).await?))
    }

    pub async fn describe_session(
        &self,
        scope: &Scope,
        session: &SessionId,
        mut origin: Origin,
    ) -> Result<()> {
        match self.fault {
            Fault::LosesOrigins => return Ok(()),
            Fault::LosesAliases => origin.aliases.clear(),
            Fault::OverwritesOrigins => {
                origin.client.get_or_insert_default();
                origin.title.get_or_insert_default();
            }
            _ => {}
        }
        self.inner.describe_session(&self.scope(scope), session, origin).await
    }

    pub async fn commits_of(&self, scope: &Scope, session: &SessionId) -> Result<Vec<MemoryKey>> {
        Ok(self.ordered(self.inner.commits_of(&self.scope(scope), session).await?))
    }

    pub async fn linked_commits(
        &self,
        scope: &Scope,
        session: &SessionId,
        head: Option<String>,
        time: Millis,
        limit: usize,
    ) -> Result<(Vec<LinkedCommit>, usize)> {
        let limit = self.limit(limit);
        let (found, all) = self.inner.linked_commits(&self.scope(scope), session, head, time, limit).await?;
        Ok((self.ordered(found), all))
    }

    pub async fn behind(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
        time: Millis,
    ) -> Result<Vec<BehindRow>> {
        Ok(self.ordered(self.inner.behind(&self.scope(scope), sessions, time).await?))
    }

    pub async fn sessions_behind(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> Result<Vec<Vec<(SessionId, f64)>>> {
        let behind = self.inner.sessions_behind(&self.scope(scope), commits).await?;
        Ok(behind.into_iter().map(|sessions| self.ordered(sessions)).collect())
    }

    pub async fn link_commits(&self, scope: &Scope, mut links: Vec<CommitLinks>) -> Result<()> {
        let scope = &self.scope(scope);
        match self.fault {
            Fault::LosesLinks => return Ok(()),
            Fault::AddsLinks => {
                for (commit, sessions) in &mut links {
                    let old = self.inner.links_of(scope, vec![*commit]).await?;
                    let old = old.into_iter().flat_map(|(_, old)| old);
                    let new: HashSet<SessionKey> = sessions.iter().map(|(session, _)| *session).collect();
                    sessions.extend(old.filter(|(session, _)| !new.contains(session)));
                }
            }
            _ => {}
        }
        self.inner.link_commits(scope, links).await
    }

    pub async fn replace_commits(
        &self,
        scope: &Scope,
        mut commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()> {
        match self.fault {
            Fault::LosesReplacements => return Ok(()),
            Fault::ReplacesForever => commits.clear(),
            _ => {}
        }
        self.inner.replace_commits(&self.scope(scope), commits, among, replaced).await
    }

    pub async fn commit_named(&self, scope: &Scope, prefix: &str) -> Result<Option<(MemoryKey, ChunkKey)>> {
        let scope = &self.scope(scope);
        let found = self.inner.commit_named(scope, prefix).await?;
        if found.is_some() || !self.is(Fault::TakesFirstMatch) {
            return Ok(found);
        }
        let all = self.inner.commits_made(scope, (Millis::MIN, None), Millis::MAX, 100).await?;
        let first = all.into_iter().flat_map(|row| row.shas).find(|sha| sha.starts_with(prefix));
        match first {
            Some(sha) => self.inner.commit_named(scope, &sha).await,
            None => Ok(None),
        }
    }

    pub async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, Option<MemoryKey>),
        until: Millis,
        limit: usize,
    ) -> Result<Vec<CommitRow>> {
        let after = if self.is(Fault::IgnoresPage) { (Millis::MIN, None) } else { after };
        let until = if self.is(Fault::IgnoresRange) { Millis::MAX } else { until };
        let limit = self.limit(limit);
        Ok(self.ordered(self.inner.commits_made(&self.scope(scope), after, until, limit).await?))
    }

    fn range(&self, from: Millis, until: Millis) -> (Millis, Millis) {
        if self.is(Fault::IgnoresRange) { (Millis::MIN, Millis::MAX) } else { (from, until) }
    }

    pub async fn file_writes(&self, scope: &Scope, from: Millis, until: Millis) -> Result<Vec<WriteRow>> {
        let (from, until) = self.range(from, until);
        Ok(self.ordered(self.inner.file_writes(&self.scope(scope), from, until).await?))
    }

    pub async fn writes_of(
        &self,
        scope: &Scope,
        paths: Vec<String>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<WriteRow>> {
        let until = if self.is(Fault::IgnoresRange) { Millis::MAX } else { until };
        let limit = self.limit(limit);
        Ok(self.ordered(self.inner.writes_of(&self.scope(scope), paths, until, limit).await?))
    }

    pub async fn commit_calls(&self, scope: &Scope, from: Millis, until: Millis) -> Result<Vec<CallRow>> {
        let (from, until) = self.range(from, until);
        Ok(self.ordered(self.inner.commit_calls(&self.scope(scope), from, until).await?))
    }

    pub async fn add_to_commit_graph(&self, scope: &Scope, part: GraphRow) -> Result<bool> {
        if self.is(Fault::LosesGraph) {
            return Ok(true);
        }
        let is_added = self.inner.add_to_commit_graph(&self.scope(scope), part).await?;
        Ok(is_added || self.is(Fault::TakesEveryPart))
    }

    pub async fn left_sessions(&self, scope: &Scope, before: Millis) -> Result<Vec<LeftSession>> {
        let before = if self.is(Fault::IgnoresRange) { Millis::MAX } else { before };
        Ok(self.ordered(self.inner.left_sessions(&self.scope(scope), before).await?))
    }

    pub async fn measure(
        &self,
        scope: &Scope,
        measurements: Vec<Measurement>,
        savings: Savings,
    ) -> Result<()> {
        if self.is(Fault::LosesMeasurements) {
            return Ok(());
        }
        self.inner.measure(&self.scope(scope), measurements, savings).await
    }

    pub async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        let mut scope = self.scope(scope);
        match self.fault {
            Fault::BacksUpNothing => scope.tenant = TenantId::new("nobody"),
            Fault::OverwritesBackups => drop(std::fs::remove_file(target)),
            _ => {}
        }
        self.inner.back_up(&scope, target).await
    }

    pub async fn restore_sessions(&self, scope: &Scope, sessions: Vec<ForeignSession>) -> Result<()> {
        let scope = &self.scope(scope);
        match self.fault {
            Fault::RestoresNoSessions => return Ok(()),
            Fault::OverwritesOrigins => {
                for restored in sessions {
                    self.inner.describe_session(scope, &restored.session, restored.origin).await?;
                }
                return Ok(());
            }
            _ => {}
        }
        self.inner.restore_sessions(scope, sessions).await
    }

    pub async fn restore(
        &self,
        scope: &Scope,
        restored: Vec<RestoredMemory>,
        now: Millis,
    ) -> Result<Receipt> {
        let scope = &self.scope(scope);
        if self.is(Fault::RestoresAsNew) {
            let memories = restored.into_iter().map(|restored| restored.memory).collect();
            return self.inner.save(scope, memories, now).await;
        }
        self.inner.restore(scope, restored, now).await
    }

    pub async fn restore_forgotten(&self, scope: &Scope, forgotten: ForeignForgotten) -> Result<usize> {
        let scope = &self.scope(scope);
        if self.is(Fault::PurgesNothing) {
            return Ok(forgotten.purged.len());
        }
        self.inner.restore_forgotten(scope, forgotten).await
    }
}
