//! Reads which memories refer to which others.

use crate::PostgresStore;
use crate::columns::memory_key;
use crate::database::sql::Sql;
use crate::read::conditions::{Which, of_scope};
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;

impl PostgresStore {
    pub(crate) async fn references(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new("SELECT m.seq FROM memories m WHERE ");
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            let (parts, memory) = (sql.bind(tx.seen.parts.clone()), sql.bind(memory.in_store()));
            sql.push(&format!(
                " AND (m.owner, m.seq) IN (
                     SELECT o.owner, o.seq FROM memory_references r
                         JOIN memories o ON o.owner = ANY ({parts}) AND o.id = r.target
                         WHERE r.owner = ANY ({parts}) AND r.memory = {memory}
                     UNION SELECT r.owner, r.memory FROM memories o
                         JOIN memory_references r ON r.owner = ANY ({parts}) AND r.target = o.id
                         WHERE o.owner = ANY ({parts}) AND o.seq = {memory})
                 ORDER BY m.seq"
            ));
            tx.query(&sql).await?.iter().map(|row| memory_key(row, 0)).collect()
        })
    }

    pub(crate) async fn refers_to(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new("SELECT m.seq FROM memories m WHERE ");
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            let (parts, memory) = (sql.bind(tx.seen.parts.clone()), sql.bind(memory.in_store()));
            sql.push(&format!(
                " AND m.id IN (SELECT r.target FROM memory_references r
                     WHERE r.owner = ANY ({parts}) AND r.memory = {memory})
                 ORDER BY m.seq"
            ));
            tx.query(&sql).await?.iter().map(|row| memory_key(row, 0)).collect()
        })
    }
}
