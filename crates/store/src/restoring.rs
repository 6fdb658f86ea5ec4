//! Restores the content of a backup.

use async_trait::async_trait;

use crate::{ForeignForgotten, ForeignSession, Receipt, RestoredMemory};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

/// Restores the content of a backup.
#[async_trait]
pub trait Restore: Send + Sync {
    /// Stores the client, work tree, title, aliases, branch and commit of sessions of a backup. Values that are
    /// already stored here are kept.
    async fn restore_sessions(&self, scope: &Scope, sessions: Vec<ForeignSession>) -> Result<()>;

    /// Stores memories of a backup in one transaction, with their rows of other tables, and returns the result
    /// of each. A message keeps its ordinal if that ordinal is still free in its session. A memory that is
    /// forgotten in the backup is forgotten here too.
    ///
    /// Existing memories don't change, whether living or forgotten, so a repeated restore has no effect.
    async fn restore(&self, scope: &Scope, restored: Vec<RestoredMemory>, now: Millis) -> Result<Receipt>;

    /// Stores the purged ids and the operations of a backup. So memories that were purged there can't be stored here,
    /// and memories that were forgotten there can be restored by an undo. Returns how many of the purged ids were new
    /// here.
    async fn restore_forgotten(&self, scope: &Scope, forgotten: ForeignForgotten) -> Result<usize>;
}
