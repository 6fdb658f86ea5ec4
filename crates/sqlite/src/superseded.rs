//! Memories that later memories replaced, either by request, or because a later statement has another value.
//!
//! Whether a memory is superseded is decided when it is read. So the decision depends only on living memories. If the
//! replacing memory is forgotten, the replaced memory is valid again. If the replacing memory is restored, the other
//! one is superseded again.

use std::collections::HashSet;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::SqliteStore;
use crate::columns;
use crate::error::{Error, Result};
use crate::keys::{key, memory_key};
use crate::read::conditions::Conditions;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::{MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::Superseded;

/// The columns of the memory `m`, which replaced another memory.
const BY: &str = "m.id, m.seq, m.time, (SELECT name FROM sessions WHERE seq = m.session), m.ordinal";

impl SqliteStore {
    pub(crate) async fn keys_of(
        &self,
        scope: &Scope,
        ids: Vec<MemoryId>,
    ) -> error::Result<Vec<Option<MemoryKey>>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!("SELECT m.seq FROM memories m WHERE m.id = ? AND {}", conditions.sql);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut keys = Vec::with_capacity(ids.len());
            for id in ids {
                let values =
                    std::iter::once(Value::from(id.as_str().to_owned())).chain(conditions.values.clone());
                keys.push(
                    statement.query_row(params_from_iter(values), |row| memory_key(row, 0)).optional()?,
                );
            }
            Ok(keys)
        })
        .await
    }

    pub(crate) async fn supersedes(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!(
                "WITH RECURSIVE earlier (seq) AS (
                     SELECT memory FROM superseded WHERE newer = ?
                     UNION SELECT s.memory FROM earlier e JOIN superseded s ON s.newer = e.seq)
                 SELECT m.seq FROM earlier e CROSS JOIN memories m ON m.seq = e.seq WHERE {} ORDER BY m.seq",
                conditions.sql
            );
            let values = std::iter::once(Value::from(memory.in_store())).chain(conditions.values);
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), |row| memory_key(row, 0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

/// Returns those of `keys` that a later living memory of the scope replaced, in the order of `keys`.
pub(crate) fn superseded(
    connection: &Connection,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<Vec<Superseded>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let conditions = Conditions::of_scope(connection, scope)?;
    let mut found = Vec::new();
    let may_be = may_be_superseded(connection, scope, keys)?;
    for key in keys.iter().copied().filter(|key| may_be.contains(key)) {
        match by_request(connection, &conditions, key)? {
            Some(superseded) => found.push(superseded),
            None => found.extend(by_statements(connection, &conditions, key)?),
        }
    }
    Ok(found)
}

/// Records that the memory `newer` of a part replaces the memories `older`, which the reader sees. Unless `is_strict`
/// is true, memories that can't be replaced are skipped: storing a derived memory must not fail because another memory
/// was forgotten.
///
/// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if one of `older` is not a living memory of the
/// scope, and with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if `newer` itself is one of `older`, or if one
/// of `older` replaces `newer`.
pub(super) fn supersede(
    connection: &Connection,
    scope: &Scope,
    part: &Scope,
    newer: &MemoryId,
    older: &[MemoryId],
    is_strict: bool,
) -> Result<()> {
    let by = row_of(connection, part.tenant.as_str(), newer)?
        .ok_or_else(|| Error::not_found(format!("no memory with id `{newer}`")))?;
    let parts = parts::seen(connection, scope)?;
    for id in older {
        if id == newer {
            if !is_strict {
                continue;
            }
            return Err(Error::bad_input(format!("`{id}` can't supersede itself"))
                .hint("a memory with the same text has the same id; leave `supersedes` out"));
        }
        let mut found: Option<i64> = None;
        for part in &parts {
            let Conditions { sql, values } = Conditions::of_scope(connection, part)?;
            let sql = format!("SELECT m.seq FROM memories m WHERE m.id = ? AND {sql}");
            let values = std::iter::once(Value::from(id.as_str().to_owned())).chain(values);
            let here = connection
                .prepare_cached(&sql)?
                .query_row(params_from_iter(values), |row| row.get(0))
                .optional()?;
            found = found.or(here);
        }
        let Some(memory) = found else {
            if !is_strict {
                continue;
            }
            return Err(Error::not_found(format!("no memory with id `{id}` to supersede"))
                .hint("nothing was stored; search for the memory to replace, or leave `supersedes` out"));
        };
        if !link(connection, memory, by)? && is_strict {
            return Err(Error::bad_input(format!("`{id}` already supersedes `{newer}`")).hint(
                "nothing was stored; forget the one that no longer holds, or store it in other words",
            ));
        }
    }
    Ok(())
}

/// Returns those of `keys` that may have been replaced. The function is a fast first check for all keys at once: most
/// memories were not replaced by request, and have no statement that shares its subject with another.
fn may_be_superseded(
    connection: &Connection,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<HashSet<MemoryKey>> {
    let list: Vec<String> = keys.iter().map(|key| key.in_store().to_string()).collect();
    let mut statement = connection.prepare_cached(
        "SELECT k.value FROM json_each(?1) k
         WHERE EXISTS (SELECT 1 FROM superseded s WHERE s.memory = k.value)
             OR EXISTS (SELECT 1 FROM statements t WHERE t.memory = k.value AND t.subject IS NOT NULL)
             OR EXISTS (SELECT 1 FROM memory_references r CROSS JOIN memories o ON o.owner = ?2 AND o.id = r.target
                            CROSS JOIN statements t ON t.memory = o.seq
                        WHERE r.memory = k.value AND t.subject IS NOT NULL)",
    )?;
    let rows = statement
        .query_map((format!("[{}]", list.join(",")), scope.tenant.as_str()), |row| memory_key(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the row of the memory `id`, whether living or forgotten.
pub(super) fn row_of(connection: &Connection, owner: &str, id: &MemoryId) -> Result<Option<i64>> {
    Ok(connection
        .prepare_cached("SELECT seq FROM memories WHERE owner = ?1 AND id = ?2")?
        .query_row((owner, id.as_str()), |row| row.get(0))
        .optional()?)
}

/// Records that the memory in row `newer` replaces the memory in row `memory`. If `memory` itself replaces `newer`,
/// directly or through others, does nothing and returns false.
pub(super) fn link(connection: &Connection, memory: i64, newer: i64) -> Result<bool> {
    let is_circle = memory == newer
        || connection
            .prepare_cached(
                "WITH RECURSIVE later (seq) AS (
                     SELECT newer FROM superseded WHERE memory = ?1
                     UNION SELECT s.newer FROM later l JOIN superseded s ON s.memory = l.seq)
                 SELECT 1 FROM later WHERE seq = ?2",
            )?
            .exists((newer, memory))?;
    if !is_circle {
        connection
            .prepare_cached("INSERT OR IGNORE INTO superseded (memory, newer) VALUES (?1, ?2)")?
            .execute((memory, newer))?;
    }
    Ok(!is_circle)
}

/// The query for the statements of the memory `?1`. If the memory is a fact that was extracted from a message, the
/// query selects the message's statements, as far as the fact repeats them.
///
/// `CROSS JOIN` begins with the memory. With a plain `JOIN`, SQLite may read all memories of the owner.
const OWN: &str = "
    SELECT t.seq, t.subject, t.time, t.value, t.start_byte, t.end_byte, t.words, t.number
        FROM statements t WHERE t.memory = ?1 AND t.subject IS NOT NULL
    UNION ALL
    SELECT t.seq, t.subject, t.time, t.value, NULL, NULL, t.words, t.number
        FROM memories f CROSS JOIN memory_references r ON r.memory = f.seq
        CROSS JOIN memories o ON o.owner = f.owner AND o.id = r.target
        CROSS JOIN statements t ON t.memory = o.seq AND t.subject IS NOT NULL
        WHERE f.seq = ?1 AND f.provenance = 'derived' AND f.kind IN ('fact', 'decision')
            AND instr(f.text, CAST(substr(CAST(o.text AS BLOB), t.start_byte + 1, t.end_byte - t.start_byte) AS TEXT)) > 0
    ORDER BY number";

/// Returns the query for the living memory that replaced the memory `?` as a whole, because a caller asked for it.
///
/// `CROSS JOIN` reads the replacements first. With a plain `JOIN`, SQLite may read all memories of a session for each
/// key.
fn later_sql(conditions: &Conditions) -> String {
    format!(
        "WITH RECURSIVE later (seq) AS (
             SELECT newer FROM superseded WHERE memory = ?
             UNION SELECT s.newer FROM later l JOIN superseded s ON s.memory = l.seq)
         SELECT {BY} FROM later l CROSS JOIN memories m ON m.seq = l.seq WHERE {}
         ORDER BY EXISTS (SELECT 1 FROM superseded s WHERE s.memory = m.seq), m.time DESC, m.seq DESC LIMIT 1",
        conditions.sql
    )
}

/// Returns the query for the latest living statement of the subject `?`. It reads the statements first.
fn latest_sql(conditions: &Conditions) -> String {
    format!(
        "SELECT {BY}, t.start_byte, t.end_byte, t.value, t.time, t.seq
         FROM statements t CROSS JOIN memories m ON m.seq = t.memory WHERE t.subject = ? AND {}
         ORDER BY t.time DESC, t.seq DESC LIMIT 1",
        conditions.sql
    )
}

/// Returns the living memory that replaced the whole memory `key` by request. If several memories did, returns the
/// latest.
fn by_request(
    connection: &Connection,
    conditions: &Conditions,
    key: MemoryKey,
) -> Result<Option<Superseded>> {
    let values = std::iter::once(Value::from(key.in_store())).chain(conditions.values.iter().cloned());
    let found = connection
        .prepare_cached(&later_sql(conditions))?
        .query_row(params_from_iter(values), |row| by(row, key, None, None))
        .optional()?;
    found.map(|found| with_chunk(connection, found)).transpose()
}

/// Returns the statements of the memory `key` whose value differs from the value of the latest living statement about
/// the same subject. A fact that was extracted from a message is superseded together with the statement that it
/// repeats.
fn by_statements(
    connection: &Connection,
    conditions: &Conditions,
    key: MemoryKey,
) -> Result<Vec<Superseded>> {
    /// The key, the subject, the time, the value, the range of bytes, and the words of a statement.
    type Own = (i64, i64, i64, String, Option<i64>, Option<i64>, String);
    let own: Vec<Own> = connection
        .prepare_cached(OWN)?
        .query_map([key.in_store()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
        })?
        .collect::<Result<_, _>>()?;
    let latest = latest_sql(conditions);
    let mut found = Vec::new();
    for (seq, subject, time, value, start, end, words) in own {
        let values = std::iter::once(Value::from(subject)).chain(conditions.values.iter().cloned());
        let newest = connection
            .prepare_cached(&latest)?
            .query_row(params_from_iter(values), |row| {
                let range = (row.get::<_, i64>(5)? as usize, row.get::<_, i64>(6)? as usize);
                let statement = start.zip(end).map(|(start, end)| (start as usize, end as usize));
                let (new_value, place): (String, (i64, i64)) = (row.get(7)?, (row.get(8)?, row.get(9)?));
                Ok((new_value, place, by(row, key, statement, Some(range))?))
            })
            .optional()?;
        let newest = newest.filter(|(new_value, place, superseded)| {
            *new_value != value && *place > (time, seq) && superseded.by_key != key
        });
        if let Some((.., superseded)) = newest {
            let superseded = Superseded { words: Some(words), ..superseded };
            found.push(with_chunk(connection, superseded)?);
        }
    }
    Ok(found)
}

/// Adds the chunk that has the new statement.
fn with_chunk(connection: &Connection, superseded: Superseded) -> Result<Superseded> {
    let at = superseded.by_statement.map_or(0, |(start, _)| start as i64);
    let by_chunk = connection
        .prepare_cached(
            "SELECT seq FROM chunks WHERE memory = ?1 ORDER BY start_byte <= ?2 AND ?2 < end_byte DESC, ordinal LIMIT 1",
        )?
        .query_row((superseded.by_key.in_store(), at), |row| key(row, 0))
        .optional()?;
    Ok(Superseded { by_chunk, ..superseded })
}

/// Reads the columns [`BY`].
fn by(
    row: &Row<'_>,
    memory: MemoryKey,
    statement: Option<(usize, usize)>,
    by_statement: Option<(usize, usize)>,
) -> rusqlite::Result<Superseded> {
    Ok(Superseded {
        memory,
        statement,
        words: None,
        by: columns::id(row, 0)?,
        by_key: memory_key(row, 1)?,
        by_time: row.get(2)?,
        by_session: row.get::<_, Option<String>>(3)?.and_then(|name| SessionId::parse(&name)),
        by_ordinal: row.get(4)?,
        by_statement,
        by_chunk: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::scope::{ProjectId, TenantId};
    use tiro_store::Flavour;

    /// A context asks for each message of its session. If SQLite looked up memories by session, each question would
    /// read all messages of the session.
    #[tokio::test]
    async fn what_replaced_a_memory_is_found_without_reading_its_session() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let scope = Scope::own(TenantId::new("ines"), project);
        let plans = store.read(&scope, |_, connection, scope| {
            let mut conditions = Conditions::of_scope(connection, scope)?;
            conditions.sql.push_str(" AND m.session IN (1)");
            let mut plans = Vec::new();
            for sql in [later_sql(&conditions).as_str(), &latest_sql(&conditions), OWN] {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let values = std::iter::once(Value::from(1)).chain(conditions.values.iter().cloned());
                let values: Vec<Value> = values.take(statement.parameter_count()).collect();
                let steps =
                    statement.query_map(params_from_iter(values), |row| row.get::<_, String>("detail"))?;
                plans.push(steps.collect::<rusqlite::Result<Vec<_>>>()?);
            }
            Ok(plans)
        });
        let plans = plans.await.unwrap();
        let has = |plan: &[String], start: &str| plan.iter().any(|step| step.starts_with(start));
        for plan in &plans[..2] {
            assert!(has(plan, "SEARCH m USING INTEGER PRIMARY KEY"), "{plan:?}");
        }
        assert!(has(&plans[2], "SEARCH f USING INTEGER PRIMARY KEY"), "{:?}", plans[2]);
        let all_statements =
            |step: &String| step.starts_with("SCAN") || step.contains("statements_by_subject");
        assert!(!plans[2].iter().any(all_statements), "{:?}", plans[2]);
    }
}
