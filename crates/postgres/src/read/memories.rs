//! Reads memories: whole, by key or id, and with what stands around them.

use std::collections::HashMap;

use crate::PostgresStore;
use crate::columns::{self, MEMORY, MEMORY_FROM, memory_key, number, size};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::{SessionRef, session_called};
use crate::read::conditions::{Which, of_scope};
use crate::read::conversations::conversations;
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::memory::{Kind, Memory, MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Before, ChunkKey, ChunkRange, ShownMemory};

impl PostgresStore {
    pub(crate) async fn memories(&self, scope: &Scope, keys: Vec<MemoryKey>) -> error::Result<Vec<Memory>> {
        read!(self, scope, tx => { memories(&tx, scope, &keys).await })
    }

    pub(crate) async fn memory(&self, scope: &Scope, id: &MemoryId) -> error::Result<Option<Memory>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new(format!("SELECT {MEMORY} FROM {MEMORY_FROM} WHERE "));
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            let id = sql.bind(id.as_str().to_owned());
            sql.push(&format!(" AND m.id = {id} ORDER BY o.author = '' LIMIT 1"));
            tx.query(&sql).await?.first().map(columns::memory).transpose()
        })
    }

    pub(crate) async fn surroundings(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
        before: usize,
        after: usize,
    ) -> error::Result<Vec<Memory>> {
        read!(self, scope, tx => { surroundings(&tx, scope, session, ordinal, (before, after)).await })
    }

    pub(crate) async fn beside(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
        before: Option<Before>,
    ) -> error::Result<(Vec<Memory>, Vec<Memory>)> {
        read!(self, scope, tx => {
            let before = match &before {
                Some(Before { session, ordinal, most }) => {
                    let mut before = surroundings(&tx, scope, session, *ordinal, (*most, 0)).await?;
                    before.retain(|memory| memory.ordinal < Some(*ordinal));
                    before
                }
                None => Vec::new(),
            };
            Ok((beside(&tx, scope, &keys).await?, before))
        })
    }

    pub(crate) async fn shown(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, ChunkKey)>,
    ) -> error::Result<Vec<ShownMemory>> {
        read!(self, scope, tx => { shown(&tx, scope, &found).await })
    }
}

/// Returns the memories in `keys`, in the order of `keys`. Memories that are not living or not in the scope are left
/// out.
pub(crate) async fn memories(tx: &Transaction, scope: &Scope, keys: &[MemoryKey]) -> Result<Vec<Memory>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new(format!("SELECT {MEMORY} FROM {MEMORY_FROM} WHERE "));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let seqs = sql.bind(seqs(keys));
    sql.push(&format!(" AND m.seq = ANY ({seqs})"));
    let mut found: HashMap<MemoryKey, Memory> = HashMap::new();
    for row in tx.query(&sql).await? {
        found.insert(memory_key(&row, 1)?, columns::memory(&row)?);
    }
    Ok(keys.iter().filter_map(|key| found.get(key).cloned()).collect())
}

/// Returns living messages of the session in order: up to `before` messages before `ordinal`, the message at `ordinal`,
/// and up to `after` messages after it.
async fn surroundings(
    tx: &Transaction,
    scope: &Scope,
    session: &SessionId,
    ordinal: i64,
    (before, after): (usize, usize),
) -> Result<Vec<Memory>> {
    let Some(session) = session_called(tx, session).await? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let sides = [("<", "DESC", before), (">=", "ASC", after.saturating_add(1))];
    for (comparison, direction, count) in sides {
        let mut sql = Sql::new(format!("SELECT {MEMORY} FROM {MEMORY_FROM} WHERE "));
        of_scope(tx, scope, Which::Living, &mut sql).await?;
        let (owner, seq) = (sql.bind(session.owner), sql.bind(session.seq));
        let (ordinal, count) = (sql.bind(ordinal), sql.bind(number(count)));
        sql.push(&format!(
            " AND m.owner = {owner} AND m.session = {seq} AND m.ordinal {comparison} {ordinal}
             ORDER BY m.ordinal {direction} LIMIT {count}"
        ));
        for row in tx.query(&sql).await? {
            found.push(columns::memory(&row)?);
        }
    }
    found.sort_by_key(|memory| memory.ordinal);
    Ok(found)
}

/// Returns the living messages right before and right after each of the messages in `keys`, ordered by key.
async fn beside(tx: &Transaction, scope: &Scope, keys: &[MemoryKey]) -> Result<Vec<Memory>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("");
    let (parts, keys) = (sql.bind(tx.seen.parts.clone()), sql.bind(seqs(keys)));
    sql.push(&format!(
        "SELECT {MEMORY} FROM {MEMORY_FROM}
         JOIN (SELECT DISTINCT n.owner, n.seq FROM memories k
             CROSS JOIN LATERAL (VALUES (k.ordinal - 1), (k.ordinal + 1)) p (ordinal)
             JOIN memories n ON n.owner = k.owner AND n.session = k.session AND n.ordinal = p.ordinal
             WHERE k.owner = ANY ({parts}) AND k.seq = ANY ({keys})) b ON b.owner = m.owner AND b.seq = m.seq
         WHERE "
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    sql.push(" ORDER BY m.seq");
    tx.query(&sql).await?.iter().map(columns::memory).collect()
}

/// Returns the memories of `found`, each with the chunk beside it, in the form in which answers show them.
async fn shown(tx: &Transaction, scope: &Scope, found: &[(MemoryKey, ChunkKey)]) -> Result<Vec<ShownMemory>> {
    let keys: Vec<MemoryKey> = found.iter().map(|(key, _)| *key).collect();
    let memories: HashMap<MemoryKey, Memory> =
        memories(tx, scope, &keys).await?.into_iter().map(|memory| (memory.key, memory)).collect();
    let of_kinds = |kinds: &[Kind]| -> Vec<i64> {
        let wanted = memories.values().filter(|memory| kinds.contains(&memory.kind));
        wanted.map(|memory| memory.key.in_store()).collect()
    };
    let chunks = chunks(tx, found).await?;
    let commits = of_kinds(&[Kind::Commit]);
    let ids = commit_ids(tx, &commits).await?;
    let behind = conversations(tx, scope, &commits).await?;
    let covered = covered(tx, &of_kinds(&[Kind::Conversation, Kind::Summary])).await?;
    let mut shown = Vec::with_capacity(found.len());
    for (place, (key, chunk)) in found.iter().enumerate() {
        let (Some(memory), Some((of, chunk))) = (memories.get(key), chunks.get(chunk)) else { continue };
        if of != key {
            continue;
        }
        let seq = key.in_store();
        let (conversations, confidences) = behind.get(&seq).cloned().unwrap_or_default().into_iter().unzip();
        shown.push(ShownMemory {
            place,
            chunk: *chunk,
            commit_ids: ids.get(&seq).cloned().unwrap_or_default(),
            conversations,
            confidences,
            covered: covered.get(&seq).copied(),
            memory: memory.clone(),
        });
    }
    Ok(shown)
}

/// Returns the chunks of `found`, each with its memory.
async fn chunks(
    tx: &Transaction,
    found: &[(MemoryKey, ChunkKey)],
) -> Result<HashMap<ChunkKey, (MemoryKey, ChunkRange)>> {
    let seqs: Vec<i64> = found.iter().map(|(_, chunk)| chunk.in_store()).collect();
    let sql = "SELECT memory, seq, start_byte, end_byte, tokens FROM chunks WHERE owner = ANY ($1) AND seq = ANY ($2)";
    let mut chunks = HashMap::with_capacity(found.len());
    for row in tx.rows(sql, &[&tx.seen.parts, &seqs]).await? {
        let key = ChunkKey::from_store(row.try_get(1)?);
        let chunk = ChunkRange { key, start: size(&row, 2)?, end: size(&row, 3)?, tokens: row.try_get(4)? };
        chunks.insert(key, (memory_key(&row, 0)?, chunk));
    }
    Ok(chunks)
}

/// Returns the git ids of the commits, in order.
async fn commit_ids(tx: &Transaction, commits: &[i64]) -> Result<HashMap<i64, Vec<String>>> {
    let mut ids: HashMap<i64, Vec<String>> = HashMap::new();
    if !commits.is_empty() {
        let sql =
            "SELECT memory, sha FROM commit_ids WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY sha";
        for row in tx.rows(sql, &[&tx.seen.parts, &commits]).await? {
            ids.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
        }
    }
    Ok(ids)
}

/// Returns, for each of the summaries that has a session, the ordinal of the last message that the summary of this
/// session covers.
async fn covered(tx: &Transaction, summaries: &[i64]) -> Result<HashMap<i64, i64>> {
    let mut covered = HashMap::new();
    if !summaries.is_empty() {
        let sql = "SELECT m.seq, c.last FROM memories m
                   JOIN conversations c ON c.owner = m.owner AND c.session = m.session
                   WHERE m.owner = ANY ($1) AND m.seq = ANY ($2)";
        for row in tx.rows(sql, &[&tx.seen.parts, &summaries]).await? {
            covered.insert(row.try_get(0)?, row.try_get(1)?);
        }
    }
    Ok(covered)
}

/// Returns up to `limit` living messages of the session that are marked, or at least as important as `importance`, the
/// latest first.
pub(crate) async fn important_messages(
    tx: &Transaction,
    session: SessionRef,
    importance: f64,
    limit: usize,
) -> Result<Vec<Memory>> {
    // The first condition is the same as the condition of a partial index, which has only a few rows even for a long
    // session.
    let sql = format!(
        "SELECT {MEMORY} FROM {MEMORY_FROM}
         WHERE m.owner = $1 AND m.session = $2 AND m.tombstoned_at IS NULL
             AND (m.marked OR m.importance IS NOT NULL) AND m.ordinal IS NOT NULL
             AND (m.marked OR m.importance >= $3) ORDER BY m.ordinal DESC LIMIT $4"
    );
    let rows = tx.rows(&sql, &[&session.owner, &session.seq, &importance, &number(limit)]).await?;
    rows.iter().map(columns::memory).collect()
}

/// Returns up to `limit` living facts and decisions of the session, the latest first.
pub(crate) async fn facts(tx: &Transaction, session: SessionRef, limit: usize) -> Result<Vec<Memory>> {
    let sql = format!(
        "SELECT {MEMORY} FROM {MEMORY_FROM}
         WHERE m.owner = $1 AND m.session = $2 AND m.tombstoned_at IS NULL
             AND m.ordinal IS NULL AND m.kind IN ('fact', 'decision') ORDER BY m.time DESC, m.id LIMIT $3"
    );
    let rows = tx.rows(&sql, &[&session.owner, &session.seq, &number(limit)]).await?;
    rows.iter().map(columns::memory).collect()
}

fn seqs(keys: &[MemoryKey]) -> Vec<i64> {
    keys.iter().map(|key| key.in_store()).collect()
}
