//! Reads and stores statements.

use async_trait::async_trait;

use crate::NewStatement;
use tiro_base::error::Result;
use tiro_base::scope::{Scope, SessionId};

/// Reads statements.
#[async_trait]
pub trait ReadStatements: Send + Sync {
    /// Returns the ordinal of the last message of the session whose facts are extracted; -1 if there is none.
    async fn noted(&self, scope: &Scope, session: &SessionId) -> Result<i64>;
}

/// Stores statements.
#[async_trait]
pub trait WriteStatements: Send + Sync {
    /// Stores statements that are not stored yet. A statement in a memory that isn't living is skipped. `noted` has a
    /// session and the ordinal of its last message whose facts are now extracted.
    async fn add_statements(
        &self,
        scope: &Scope,
        statements: Vec<NewStatement>,
        noted: Option<(SessionId, i64)>,
    ) -> Result<()>;

    /// Removes up to `limit` living facts and decisions that were extracted from messages of the session. Memories that
    /// the user marked or gave an importance stay, and those that came from a peer. Returns how many were removed.
    async fn remove_extracts(&self, scope: &Scope, session: &SessionId, limit: usize) -> Result<usize>;
}
