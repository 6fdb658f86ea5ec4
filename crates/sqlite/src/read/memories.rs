//! Reads memories: whole, as candidates for ranking, or through their neighbours and references.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::SqliteStore;
pub(crate) use crate::columns::MEMORY as COLUMNS;
use crate::columns::{id, word};
use crate::error::Result;
use crate::file::{sums, verify};
use crate::keys::{key, memory_key, optional_key};
use crate::read::conditions::Conditions;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::{Kind, Memory, MemoryId, MemoryKey, Provenance, Role};
use tiro_base::scope::{Scope, SessionId, Visibility};
use tiro_store::decide::exchange;
use tiro_store::{Before, ChunkKey, ChunkRange, Neighbour, ShownMemory};

impl SqliteStore {
    pub(crate) async fn memories(&self, scope: &Scope, keys: Vec<MemoryKey>) -> error::Result<Vec<Memory>> {
        self.read(scope, move |_, connection, scope| memories(connection, scope, keys)).await
    }

    pub(crate) async fn memory(&self, scope: &Scope, id: &MemoryId) -> error::Result<Option<Memory>> {
        let id = id.as_str().to_owned();
        self.read(scope, move |_, connection, scope| {
            one(connection, &Conditions::of_scope(connection, scope)?, "m.id = ?", Value::from(id))
        })
        .await
    }

    pub(crate) async fn surroundings(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
        before: usize,
        after: usize,
    ) -> error::Result<Vec<Memory>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            surroundings(connection, scope, &session, ordinal, before, after)
        })
        .await
    }

    pub(crate) async fn beside(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
        before: Option<Before>,
    ) -> error::Result<(Vec<Memory>, Vec<Memory>)> {
        self.read(scope, move |_, connection, scope| {
            let before = match before {
                Some(Before { session, ordinal, most }) => {
                    let mut before = surroundings(connection, scope, &session, ordinal, most, 0)?;
                    before.retain(|memory| memory.ordinal < Some(ordinal));
                    before
                }
                None => Vec::new(),
            };
            Ok((beside(connection, scope, &keys)?, before))
        })
        .await
    }

    pub(crate) async fn shown(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, ChunkKey)>,
    ) -> error::Result<Vec<ShownMemory>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let mut shown = Vec::with_capacity(found.len());
            for (place, (key, chunk)) in found.into_iter().enumerate() {
                let Some(memory) = one(connection, &conditions, "m.seq = ?", Value::from(key.in_store()))?
                else {
                    continue;
                };
                let chunk = connection
                    .prepare_cached(
                        "SELECT seq, start_byte, end_byte, tokens FROM chunks WHERE seq = ?1 AND memory = ?2",
                    )?
                    .query_row((chunk.in_store(), key.in_store()), chunk_range)
                    .optional()?;
                let Some(chunk) = chunk else { continue };
                let is_commit = memory.kind == Kind::Commit;
                let (conversations, confidences) = match is_commit {
                    true => conversations(connection, &conditions, key.in_store())?.into_iter().unzip(),
                    false => Default::default(),
                };
                shown.push(ShownMemory {
                    place,
                    chunk,
                    commit_ids: if is_commit {
                        commit_ids(connection, scope, key.in_store())?
                    } else {
                        Vec::new()
                    },
                    conversations,
                    confidences,
                    covered: covered(connection, &memory)?,
                    memory,
                });
            }
            Ok(shown)
        })
        .await
    }

    pub(crate) async fn commit_named(
        &self,
        scope: &Scope,
        prefix: &str,
    ) -> error::Result<Option<(MemoryKey, ChunkKey)>> {
        let prefix = prefix.to_owned();
        self.read(scope, move |_, connection, scope| commit_named(connection, scope, &prefix)).await
    }

    pub(crate) async fn known_commits(&self, scope: &Scope) -> error::Result<Vec<String>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached("SELECT sha FROM commit_ids WHERE owner = ?1")?;
            let rows = statement.query_map([scope.tenant.as_str()], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Returns living messages of the session in order: up to `before` messages before `ordinal`, the message at `ordinal`,
/// and up to `after` messages after it.
fn surroundings(
    connection: &Connection,
    scope: &Scope,
    session: &SessionId,
    ordinal: i64,
    before: usize,
    after: usize,
) -> Result<Vec<Memory>> {
    let conditions = Conditions::of_scope(connection, scope)?;
    let side = |comparison: &str, direction: &str| {
        format!(
            "SELECT {COLUMNS} FROM memories m JOIN sessions s ON s.seq = m.session
             WHERE {} AND s.owner = m.owner AND s.name = ? AND m.ordinal {comparison} ?
             ORDER BY m.ordinal {direction} LIMIT ?",
            conditions.sql
        )
    };
    let run = |sql: String, count: usize| -> Result<Vec<Memory>> {
        let own = [Value::from(session.as_str().to_owned()), Value::from(ordinal), Value::from(count as i64)];
        let values = conditions.values.iter().cloned().chain(own);
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), memory)?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let mut found = run(side("<", "DESC"), before)?;
    found.reverse();
    found.extend(run(side(">=", "ASC"), after + 1)?);
    Ok(found)
}

/// Returns the living messages right before and right after each of the messages in `keys`, ordered by key.
fn beside(connection: &Connection, scope: &Scope, keys: &[MemoryKey]) -> Result<Vec<Memory>> {
    let conditions = Conditions::of_scope(connection, scope)?;
    let mut statement = connection.prepare_cached(
        "SELECT o.seq FROM memories m JOIN memories o ON o.session = m.session
             AND o.ordinal IN (m.ordinal - 1, m.ordinal + 1) WHERE m.seq = ?1",
    )?;
    let mut beside: BTreeSet<i64> = BTreeSet::new();
    for key in keys {
        for neighbour in statement.query_map([key.in_store()], |row| row.get(0))? {
            beside.insert(neighbour?);
        }
    }
    let mut found = Vec::with_capacity(beside.len());
    for key in beside {
        found.extend(one(connection, &conditions, "m.seq = ?", Value::from(key))?);
    }
    Ok(found)
}

/// Returns up to `limit` living messages of the session that are marked, or at least as important as `importance`, the
/// latest first.
pub(super) fn important_messages(
    connection: &Connection,
    session: i64,
    importance: f64,
    limit: usize,
) -> Result<Vec<Memory>> {
    // The first condition is the same as the condition of a partial index, which has only a few rows even for a long
    // session.
    let which = "(m.marked = 1 OR m.importance IS NOT NULL) AND m.ordinal IS NOT NULL
        AND (m.marked = 1 OR m.importance >= ?) ORDER BY m.ordinal DESC LIMIT ?";
    in_session(connection, session, which, vec![importance.into(), (limit as i64).into()])
}

/// Returns up to `limit` living facts and decisions of the session, the latest first.
pub(super) fn facts(connection: &Connection, session: i64, limit: usize) -> Result<Vec<Memory>> {
    let which = "m.ordinal IS NULL AND m.kind IN ('fact', 'decision') ORDER BY m.time DESC, m.id LIMIT ?";
    in_session(connection, session, which, vec![(limit as i64).into()])
}

fn in_session(
    connection: &Connection,
    session: i64,
    which: &'static str,
    values: Vec<Value>,
) -> Result<Vec<Memory>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m JOIN sessions s ON s.seq = m.session
         WHERE m.session = ? AND m.tombstoned_at IS NULL AND {which}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let values = std::iter::once(Value::from(session)).chain(values);
    let rows = statement.query_map(params_from_iter(values), memory)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the memories in `keys`, in the order of `keys`. Memories that are not living or not in the scope are left out.
pub(crate) fn memories(connection: &Connection, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<Memory>> {
    let conditions = Conditions::of_scope(connection, scope)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        found.extend(one(connection, &conditions, "m.seq = ?", Value::from(key.in_store()))?);
    }
    Ok(found)
}

/// Returns the data that ranking needs about each memory in `keys`, in the order of `keys`. Memories that are not
/// living or not in the scope are left out.
pub(crate) fn places(connection: &Connection, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<Neighbour>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let conditions = Conditions::of_scope(connection, scope)?;
    let sql = format!(
        "SELECT m.seq, m.id, m.kind, m.session, m.ordinal, m.speaker, m.time, m.marked, m.importance,
             m.text_hash, CASE WHEN m.provenance = 'derived' AND m.kind IN ('fact', 'decision') THEN (
                 SELECT o.seq FROM memory_references r CROSS JOIN memories o
                 ON o.owner = m.owner AND o.id = r.target WHERE r.memory = m.seq LIMIT 1) END, m.role, m.tokens
         FROM memories m WHERE m.seq = ? AND {}",
        conditions.sql
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let values = std::iter::once(Value::from(key.in_store())).chain(conditions.values.iter().cloned());
        found.extend(statement.query_row(params_from_iter(values), place).optional()?);
    }
    Ok(found)
}

/// Implements [`ReadCommits::commit_named`](tiro_store::ReadCommits::commit_named).
pub(crate) fn commit_named(
    connection: &Connection,
    scope: &Scope,
    prefix: &str,
) -> Result<Option<(MemoryKey, ChunkKey)>> {
    let prefix = prefix.to_ascii_lowercase();
    let conditions = Conditions::of_scope(connection, scope)?;
    // `g` comes right after the hexadecimal digits, so the range contains exactly the ids that begin with `prefix`.
    let sql = format!(
        "SELECT DISTINCT m.seq, (SELECT min(c.seq) FROM chunks c WHERE c.memory = m.seq)
         FROM commit_ids i JOIN memories m ON m.seq = i.memory
         WHERE i.owner = ? AND i.sha >= ? AND i.sha < ? AND {} LIMIT 2",
        conditions.sql
    );
    let own = [scope.tenant.as_str().to_owned(), prefix.clone(), format!("{prefix}g")].map(Value::from);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(own.into_iter().chain(conditions.values)), |row| {
        Ok(memory_key(row, 0)?)
            .and_then(|key| Ok(row.get::<_, Option<i64>>(1)?.map(|chunk| (key, ChunkKey::from_store(chunk)))))
    })?;
    let found: Vec<Option<(MemoryKey, ChunkKey)>> = rows.collect::<Result<_, _>>()?;
    Ok(if let [only] = found[..] { only } else { None })
}

fn chunk_range(row: &Row<'_>) -> rusqlite::Result<ChunkRange> {
    Ok(ChunkRange {
        key: key(row, 0)?,
        start: row.get::<_, i64>(1)? as usize,
        end: row.get::<_, i64>(2)? as usize,
        tokens: row.get(3)?,
    })
}

/// Returns the ordinal of the last message that the summary of a session covers, if `memory` is a summary with a session.
fn covered(connection: &Connection, memory: &Memory) -> Result<Option<i64>> {
    if !matches!(memory.kind, Kind::Conversation | Kind::Summary) || memory.session.is_none() {
        return Ok(None);
    }
    Ok(connection
        .prepare_cached(
            "SELECT c.last FROM memories m JOIN conversations c ON c.session = m.session WHERE m.seq = ?1",
        )?
        .query_row([memory.key.in_store()], |row| row.get(0))
        .optional()?)
}

fn commit_ids(connection: &Connection, scope: &Scope, commit: i64) -> Result<Vec<String>> {
    let mut statement = connection
        .prepare_cached("SELECT sha FROM commit_ids WHERE memory = ?1 AND owner = ?2 ORDER BY sha")?;
    let rows = statement.query_map((commit, scope.tenant.as_str()), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the sessions that led to the commit and have memories in the scope, the likeliest first, each with
/// the confidence in its link.
///
/// A session that an agent saved itself has no tool calls as evidence. Such a session is linked, with the lowest
/// confidence, if a parent of the commit was checked out in it.
pub(crate) fn conversations(
    connection: &Connection,
    conditions: &Conditions,
    commit: i64,
) -> Result<Vec<(SessionId, f64)>> {
    let by_head = parts::indexed_by(connection, "memories_by_head")?;
    let sql = format!(
        "WITH linked AS (
             SELECT l.session, l.place, l.confidence, 0 AS latest FROM commit_sessions l WHERE l.memory = ?
             UNION ALL
             SELECT m.session, 1000000, 0.5, -max(m.time) FROM commit_parents p
             CROSS JOIN memories m {by_head} ON m.head_sha = p.sha
             CROSS JOIN sessions o ON o.seq = m.session
             WHERE p.memory = ? AND o.client IS NULL GROUP BY m.session)
         SELECT s.name, max(l.confidence) FROM linked l JOIN sessions s ON s.seq = l.session
         WHERE EXISTS (SELECT 1 FROM memories m WHERE m.session = l.session AND {})
         GROUP BY s.name ORDER BY min(l.place), min(l.latest), s.name LIMIT 5",
        conditions.sql
    );
    let commit = [Value::from(commit), Value::from(commit)];
    let values = commit.into_iter().chain(conditions.values.iter().cloned());
    let mut statement = connection.prepare_cached(&sql)?;
    let rows =
        statement.query_map(params_from_iter(values), |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let found: Vec<(String, f64)> = rows.collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter_map(|(name, sure)| Some((SessionId::parse(&name)?, sure))).collect())
}

fn one(
    connection: &Connection,
    conditions: &Conditions,
    which: &str,
    value: Value,
) -> Result<Option<Memory>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m LEFT JOIN sessions s ON s.seq = m.session WHERE {which} AND {}",
        conditions.sql
    );
    let values = std::iter::once(value).chain(conditions.values.iter().cloned());
    Ok(connection.prepare_cached(&sql)?.query_row(params_from_iter(values), memory).optional()?)
}

pub(crate) fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        id: id(row, 0)?,
        key: memory_key(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        provenance: word(row, 3, Provenance::parse)?,
        author: parts::author(row, (21, 25))?,
        visibility: match row.get(26)? {
            0 => Visibility::Private,
            _ => Visibility::Project,
        },
        text: verify::text(row, 4)?,
        session: row.get::<_, Option<String>>(5)?.and_then(|name| SessionId::parse(&name)),
        ordinal: row.get(6)?,
        role: row.get::<_, Option<String>>(7)?.and_then(|word| Role::parse(&word)),
        speaker: row.get(8)?,
        title: row.get(9)?,
        topic: row.get(10)?,
        source_id: row.get(11)?,
        path: row.get(12)?,
        branch: row.get(13)?,
        head_sha: row.get(14)?,
        time: row.get(15)?,
        importance: row.get(16)?,
        marked: row.get(17)?,
        tokens: row.get(18)?,
        indexed: row.get(19)?,
        is_damaged: verify::differs(row, 4, 20)? || sums::is_row_damaged(row)?,
    })
}

/// Returns whether `text` equals the text that is stored under `id`, ignoring the digits of redaction marks, and what
/// stores in its place that can't store U+0000.
pub(crate) fn is_alike(connection: &Connection, owner: &str, id: &MemoryId, text: &str) -> Result<bool> {
    let stored: String = connection
        .prepare_cached("SELECT text FROM memories WHERE owner = ?1 AND id = ?2")?
        .query_row((owner, id.as_str()), |row| row.get(0))?;
    Ok(tiro_redact::alike(&exchange::comparable(&stored), &exchange::comparable(text)))
}

fn place(row: &Row<'_>) -> rusqlite::Result<Neighbour> {
    let hash: Vec<u8> = row.get(9)?;
    Ok(Neighbour {
        key: memory_key(row, 0)?,
        id: id(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        session: optional_key(row, 3)?,
        ordinal: row.get(4)?,
        speaker: row.get(5)?,
        time: row.get(6)?,
        marked: row.get(7)?,
        importance: row.get(8)?,
        text_hash: hash.first_chunk().copied().unwrap_or_default(),
        taken_from: row.get::<_, Option<i64>>(10)?.map(MemoryKey::from_store),
        role: row.get::<_, Option<String>>(11)?.and_then(|word| Role::parse(&word)),
        tokens: row.get(12)?,
    })
}
