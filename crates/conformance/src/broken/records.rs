//! Faults of what is recorded beside the memories.

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::*;

impl BrokenStore {
    pub async fn add_statements(
        &self,
        scope: &Scope,
        statements: Vec<NewStatement>,
        noted: Option<(SessionId, i64)>,
    ) -> Result<()> {
        match self.is(Fault::LosesStatements) {
            true => Ok(()),
            false => self.inner.add_statements(&self.scope(scope), statements, noted).await,
        }
    }

    pub async fn checked_texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<(MemoryKey, String, bool)>> {
        Ok(self.ordered(self.inner.checked_texts(&self.scope(scope), keys).await?))
    }

    pub async fn rename_authors(&self, scope: &Scope, renamed: Vec<Renamed>) -> Result<()> {
        match self.is(Fault::RenamesNothing) {
            true => Ok(()),
            false => self.inner.rename_authors(&self.scope(scope), renamed).await,
        }
    }

    pub async fn finish_purges(&self, scope: &Scope, before: Millis) -> Result<Forgotten> {
        let scope = &self.scope(scope);
        if self.is(Fault::PurgesForgotten) {
            for operation in self.inner.operations(scope, 9).await? {
                self.inner.purge(scope, &operation.id, 9).await?;
            }
        }
        self.inner.finish_purges(scope, before).await
    }

    pub async fn foresee_version(&self, scope: &Scope, summary: Summary, since: Millis) -> Result<Saved> {
        match self.is(Fault::StoresWhatItForesees) {
            true => self.inner.save_version(&self.scope(scope), summary, since, since).await,
            false => self.inner.foresee_version(&self.scope(scope), summary, since).await,
        }
    }

    pub async fn paces(
        &self,
        scope: &Scope,
        provider: String,
        model: String,
        most: usize,
    ) -> Result<Vec<Pace>> {
        Ok(self.ordered(self.inner.paces(&self.scope(scope), provider, model, most).await?))
    }

    pub async fn is_leased(&self, scope: &Scope, name: &str) -> Result<bool> {
        Ok(!self.is(Fault::HidesLeases) && self.inner.is_leased(&self.scope(scope), name).await?)
    }
}
