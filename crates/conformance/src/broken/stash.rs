//! Faults of the stash.

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::Scope;
use tiro_store::*;

impl BrokenStore {
    pub async fn stash(&self, scope: &Scope, mut stashing: Stashing, now: Millis) -> Result<StashReceipt> {
        let scope = &self.scope(scope);
        if self.is(Fault::StashesNothing) {
            let given = stashing.given.iter().map(|memory| &memory.id);
            let outcomes = stashing.named.iter().chain(given).map(|id| (id.clone(), true)).collect();
            return Ok(StashReceipt { outcomes, ..StashReceipt::default() });
        }
        if self.is(Fault::StashesHalf) {
            for id in &stashing.named {
                let one = Stashing { named: vec![id.clone()], given: Vec::new(), ..stashing.clone() };
                let _ = self.inner.stash(scope, one, now).await;
            }
        }
        if self.is(Fault::DropsProtection) {
            stashing.is_protected = None;
        }
        let receipt = self.inner.stash(scope, stashing, now).await?;
        let freed = if self.is(Fault::FreesNothing) { 0 } else { receipt.freed };
        Ok(StashReceipt { freed, ..receipt })
    }

    pub async fn unstash(&self, scope: &Scope, ids: &[MemoryId], keep: bool) -> Result<Vec<MemoryId>> {
        match self.is(Fault::BringsBackNothing) {
            true => Ok(ids.to_vec()),
            false => self.inner.unstash(&self.scope(scope), ids, keep).await,
        }
    }

    pub async fn expire_stash(
        &self,
        scope: &Scope,
        times: (Millis, Millis),
        operation: &str,
        limit: usize,
    ) -> Result<StashExpired> {
        match self.is(Fault::ExpiresNothing) {
            true => self.inner.expiring_stash(&self.scope(scope), times.0, times.1).await,
            false => self.inner.expire_stash(&self.scope(scope), times, operation, limit).await,
        }
    }

    pub async fn stash_contents(&self, scope: &Scope, mut page: StashPage) -> Result<StashContents> {
        if self.is(Fault::IgnoresFilter) {
            page.filter = Filter::default();
        }
        let mut contents = self.inner.stash_contents(&self.scope(scope), page).await?;
        contents.page = self.ordered(contents.page);
        Ok(contents)
    }
}
