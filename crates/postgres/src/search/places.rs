//! Reads what ranking needs about memories.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::columns::{id, memory_key, word};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::read::conditions::{Which, of_scope};
use crate::transactions::Transaction;
use tiro_base::memory::{Kind, MemoryKey, Role};
use tiro_base::scope::Scope;
use tiro_store::{Neighbour, SessionKey};

/// Returns the data that ranking needs about each memory in `keys`, in the order of `keys`. Memories that are not
/// living or not in the scope are left out.
pub(crate) async fn places(tx: &Transaction, scope: &Scope, keys: &[MemoryKey]) -> Result<Vec<Neighbour>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("");
    let parts = sql.bind(tx.seen.parts.clone());
    sql.push(&format!(
        "SELECT m.seq, m.id, m.kind, m.session, m.ordinal, m.speaker, m.time, m.marked, m.importance, m.text_hash,
             CASE WHEN m.provenance = 'derived' AND m.kind IN ('fact', 'decision') THEN (
                 SELECT o.seq FROM memory_references r JOIN memories o ON o.owner = ANY ({parts}) AND o.id = r.target
                 WHERE r.owner = m.owner AND r.memory = m.seq ORDER BY r.target, o.owner <> m.owner LIMIT 1) END,
             m.role, m.tokens
         FROM memories m WHERE "
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let seqs = sql.bind(keys.iter().map(|key| key.in_store()).collect::<Vec<i64>>());
    sql.push(&format!(" AND m.seq = ANY ({seqs})"));
    let mut found: HashMap<MemoryKey, Neighbour> = HashMap::with_capacity(keys.len());
    for row in tx.query(&sql).await? {
        let place = place(&row)?;
        found.insert(place.key, place);
    }
    Ok(keys.iter().filter_map(|key| found.get(key).cloned()).collect())
}

fn place(row: &Row) -> Result<Neighbour> {
    let hash: &[u8] = row.try_get(9)?;
    Ok(Neighbour {
        key: memory_key(row, 0)?,
        id: id(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        session: row.try_get::<_, Option<i64>>(3)?.map(SessionKey::from_store),
        ordinal: row.try_get(4)?,
        speaker: row.try_get(5)?,
        time: row.try_get(6)?,
        marked: row.try_get(7)?,
        importance: row.try_get(8)?,
        text_hash: hash.first_chunk().copied().unwrap_or_default(),
        taken_from: row.try_get::<_, Option<i64>>(10)?.map(MemoryKey::from_store),
        role: row.try_get::<_, Option<&str>>(11)?.and_then(Role::parse),
        tokens: row.try_get(12)?,
    })
}
