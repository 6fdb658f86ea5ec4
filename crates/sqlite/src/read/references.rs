//! Reads which memories refer to which others.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::SqliteStore;
use crate::keys::memory_key;
use crate::read::conditions::Conditions;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;

impl SqliteStore {
    pub(crate) async fn references(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            // The joins begin with the references, because SQLite would otherwise read all memories of the owner.
            let sql = format!(
                "SELECT m.seq FROM (
                     SELECT o.seq AS seq FROM memory_references r
                         CROSS JOIN memories o ON o.owner = ? AND o.id = r.target WHERE r.memory = ?
                     UNION SELECT r.memory FROM memories o
                         CROSS JOIN memory_references r ON r.target = o.id WHERE o.seq = ?) x
                 CROSS JOIN memories m ON m.seq = x.seq WHERE {} ORDER BY m.seq",
                conditions.sql
            );
            let owner = Value::from(scope.tenant.as_str().to_owned());
            let own = [owner, Value::from(memory.in_store()), Value::from(memory.in_store())];
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement
                .query_map(params_from_iter(own.into_iter().chain(conditions.values)), |row| {
                    memory_key(row, 0)
                })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn refers_to(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!(
                "SELECT m.seq FROM memories m WHERE {}
                 AND m.id IN (SELECT target FROM memory_references WHERE memory = ?) ORDER BY m.seq",
                conditions.sql
            );
            let values = conditions.values.into_iter().chain([Value::from(memory.in_store())]);
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), |row| memory_key(row, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
