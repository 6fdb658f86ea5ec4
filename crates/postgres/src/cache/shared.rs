//! Answers that all servers of a database share in Valkey, in place of the table.
//!
//! Each part of a store has a group of answers there. Whoever purges memories removes the groups of all parts.

use crate::PostgresStore;
use crate::database::Database;
use crate::database::seen::{NO_OWNER, seen};
use crate::error::Result;
use crate::owners;
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;

impl PostgresStore {
    /// Returns the answer to the scope's reader that is shared under `key`, if there is one.
    pub(crate) async fn shared_answer(&self, scope: &Scope, key: [u8; 32], now: Millis) -> Option<String> {
        let valkey = self.database().shared_cache()?;
        valkey.cached(&self.group_of(scope).await?, key, now).await
    }

    /// Shares an answer. Returns whether answers are shared.
    pub(crate) async fn share_answer(
        &self,
        scope: &Scope,
        key: [u8; 32],
        body: &str,
        (now, ttl): (Millis, Millis),
    ) -> bool {
        let Some(valkey) = self.database().shared_cache() else { return false };
        let Some(group) = self.group_of(scope).await else { return false };
        valkey.cache(&group, key, body, now, ttl).await;
        true
    }

    /// Removes what all parts of the store share, because any answer may contain what is purged. If Valkey can't be reached,
    /// the answers leave it within an hour.
    pub(crate) async fn drop_shared_answers(&self, scope: &Scope) -> error::Result<()> {
        let database = self.database();
        let Some(valkey) = database.shared_cache() else { return Ok(()) };
        let parts = read!(self, scope, tx => { owners::of_store(&tx, scope).await })?;
        for part in parts {
            if !valkey.drop_group(&group(database, part).await?).await {
                tracing::warn!(
                    "valkey can't be reached: cached answers with what was purged leave it within an hour"
                );
            }
        }
        Ok(())
    }

    /// Returns the group of the answers of the scope's reader; `None` if the reader stored nothing yet.
    async fn group_of(&self, scope: &Scope) -> Option<String> {
        let database = self.database();
        let found = async {
            let connection = database.connection().await?;
            let seen = seen(database, &connection, scope).await?;
            let owner = if scope.is_own() { seen.shared } else { seen.mine };
            Ok::<_, crate::error::Error>((owner != NO_OWNER).then_some(group(database, owner).await?))
        };
        found.await.ok().flatten()
    }
}

/// Returns the name of the group of a part's answers.
async fn group(database: &Database, owner: i64) -> Result<String> {
    Ok(format!("{:016x}:{owner}", database.id().await?))
}
