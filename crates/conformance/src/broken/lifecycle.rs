//! What the sound engine does for itself; only the fault in a backup changes it.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use super::BrokenStore;
use tiro_base::error::Result;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::clock::Clock;
use tiro_store::*;

impl Placed for BrokenStore {
    fn project(&self) -> &ProjectId {
        self.inner.project()
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

#[async_trait]
impl Lifecycle for BrokenStore {
    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn is_current(&self) -> bool {
        self.inner.is_current()
    }

    fn leave(&self) -> bool {
        self.inner.leave()
    }

    fn close(&self, patience: Duration) -> bool {
        self.inner.close(patience)
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()> {
        self.inner.await_turn(&self.scope(scope), patience).await
    }

    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool> {
        self.inner.tend(&self.scope(scope), work).await
    }

    async fn mend(&self, scope: &Scope) -> Result<Mended> {
        self.inner.mend(&self.scope(scope)).await
    }

    async fn shrink(&self, scope: &Scope) -> Result<u64> {
        self.inner.shrink(&self.scope(scope)).await
    }

    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        BrokenStore::back_up(self, scope, target).await
    }

    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()> {
        self.inner.copy_whole(&self.scope(scope), target).await
    }
}
