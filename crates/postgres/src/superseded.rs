//! Memories that later memories replaced, either by request, or because a later statement has another value.
//!
//! Whether a memory is superseded is decided when it is read. So the decision depends only on living memories. If the
//! replacing memory is forgotten, the replaced memory is valid again. If the replacing memory is restored, the other
//! one is superseded again.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{id, memory_key, size};
use crate::database::sql::Sql;
use crate::error::{Error, Result};
use crate::read::conditions::{Which, of_scope};
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::error::Kind;
use tiro_base::memory::{MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ChunkKey, Superseded};

/// The columns of the memory `m` of the session `s`, which replaced another memory.
const BY: &str = "m.id, m.seq, m.time, s.name, m.ordinal";

/// The tables from which [`BY`] is read, after a table with the replacing memories.
const BY_FROM: &str = "LEFT JOIN sessions s ON s.owner = m.owner AND s.seq = m.session";

impl PostgresStore {
    pub(crate) async fn keys_of(
        &self,
        scope: &Scope,
        ids: Vec<MemoryId>,
    ) -> error::Result<Vec<Option<MemoryKey>>> {
        read!(self, scope, tx => {
            let found: HashMap<String, (i64, i64)> = living(&tx, scope, &ids).await?;
            Ok(ids.iter().map(|id| found.get(id.as_str()).map(|(_, seq)| MemoryKey::from_store(*seq))).collect())
        })
    }

    pub(crate) async fn supersedes(&self, scope: &Scope, memory: MemoryKey) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new("");
            let (parts, newer) = (sql.bind(tx.seen.parts.clone()), sql.bind(memory.in_store()));
            sql.push(&format!(
                "WITH RECURSIVE earlier (owner, seq) AS (
                     SELECT owner, memory FROM superseded WHERE newer_owner = ANY ({parts}) AND newer = {newer}
                     UNION SELECT s.owner, s.memory FROM earlier e
                     JOIN superseded s ON s.newer_owner = e.owner AND s.newer = e.seq)
                 SELECT m.seq FROM earlier e JOIN memories m ON m.owner = e.owner AND m.seq = e.seq WHERE "
            ));
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            sql.push(" ORDER BY m.seq");
            tx.query(&sql).await?.iter().map(|row| memory_key(row, 0)).collect()
        })
    }
}

/// Returns the part and the number of those of `ids` that living memories of the scope have. A private memory comes
/// before a shared one.
async fn living(tx: &Transaction, scope: &Scope, ids: &[MemoryId]) -> Result<HashMap<String, (i64, i64)>> {
    let mut sql = Sql::new("SELECT m.id, m.owner, m.seq FROM memories m WHERE ");
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let ids = sql.bind(ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<String>>());
    let mine = sql.bind(tx.seen.mine);
    // Later rows replace earlier ones in the map.
    sql.push(&format!(" AND m.id = ANY ({ids}) ORDER BY m.owner = {mine}"));
    let rows = tx.query(&sql).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)))).collect()
}

/// Records that the memory `newer` of the part `owner` replaces the memories `older`, which the reader sees. Unless
/// `is_strict` is true, memories that can't be replaced are skipped: storing a derived memory must not fail because
/// another memory was forgotten.
///
/// Errors with [`Kind::NotFound`] if one of `older` is not a living memory of the scope, and with [`Kind::BadInput`] if
/// `newer` itself is one of `older`, or if one of `older` replaces `newer`.
pub(crate) async fn supersede(
    tx: &Transaction,
    scope: &Scope,
    owner: i64,
    newer: &MemoryId,
    older: &[MemoryId],
    is_strict: bool,
) -> Result<()> {
    let row =
        tx.row("SELECT seq FROM memories WHERE owner = $1 AND id = $2", &[&owner, &newer.as_str()]).await?;
    let by = row.ok_or_else(|| Error::not_found(format!("no memory with id `{newer}`")))?.try_get(0)?;
    let found = living(tx, scope, older).await?;
    for id in older {
        let refusal = match found.get(id.as_str()) {
            _ if id == newer => Error::new(Kind::BadInput, format!("`{id}` can't supersede itself"))
                .hint("a memory with the same text has the same id; leave `supersedes` out"),
            None => Error::not_found(format!("no memory with id `{id}` to supersede"))
                .hint("nothing was stored; search for the memory to replace, or leave `supersedes` out"),
            Some(memory) if link(tx, *memory, (owner, by)).await? => continue,
            Some(_) => Error::new(Kind::BadInput, format!("`{id}` already supersedes `{newer}`"))
                .hint("nothing was stored; forget the one that no longer holds, or store it in other words"),
        };
        if is_strict {
            return Err(refusal);
        }
    }
    Ok(())
}

/// Records that the memory `newer` replaces the memory `memory`, each given by its part and its number. If `memory`
/// itself replaces `newer`, directly or through others, does nothing and returns false.
pub(crate) async fn link(tx: &Transaction, memory: (i64, i64), newer: (i64, i64)) -> Result<bool> {
    let is_circle = memory == newer
        || tx
            .exists(
                "WITH RECURSIVE later (owner, seq) AS (
                     SELECT newer_owner, newer FROM superseded WHERE owner = $1 AND memory = $2
                     UNION SELECT s.newer_owner, s.newer FROM later l
                     JOIN superseded s ON s.owner = l.owner AND s.memory = l.seq)
                 SELECT FROM later WHERE seq = $3",
                &[&newer.0, &newer.1, &memory.1],
            )
            .await?;
    if !is_circle {
        tx.execute(
            "INSERT INTO superseded (owner, memory, newer_owner, newer) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            &[&memory.0, &memory.1, &newer.0, &newer.1],
        )
        .await?;
    }
    Ok(!is_circle)
}

/// Returns those of `keys` that a later living memory of the scope replaced, in the order of `keys`: once if it was
/// replaced by request, else once for each statement.
pub(crate) async fn superseded(
    tx: &Transaction,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<Vec<Superseded>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut by_request = by_request(tx, scope, keys).await?;
    let left: Vec<MemoryKey> = keys.iter().copied().filter(|key| !by_request.contains_key(key)).collect();
    let mut by_statements = by_statements(tx, scope, &left).await?;
    let mut found: Vec<Superseded> = Vec::new();
    for key in keys {
        found.extend(by_request.remove(key));
        found.extend(by_statements.remove(key).into_iter().flatten());
    }
    add_chunks(tx, &mut found).await?;
    Ok(found)
}

/// Returns, for each of `keys` that was replaced as a whole by request, the living memory that replaced it. If several
/// memories did, the latest that nothing replaced.
async fn by_request(
    tx: &Transaction,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<HashMap<MemoryKey, Superseded>> {
    let mut sql = Sql::new("");
    let (parts, keys) = (sql.bind(tx.seen.parts.clone()), sql.bind(numbers(keys)));
    sql.push(&format!(
        "WITH RECURSIVE later (first, owner, seq) AS (
             SELECT memory, newer_owner, newer FROM superseded WHERE owner = ANY ({parts}) AND memory = ANY ({keys})
             UNION SELECT l.first, s.newer_owner, s.newer FROM later l
             JOIN superseded s ON s.owner = l.owner AND s.memory = l.seq)
         SELECT DISTINCT ON (l.first) {BY}, l.first
         FROM later l JOIN memories m ON m.owner = l.owner AND m.seq = l.seq {BY_FROM} WHERE "
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    sql.push(
        " ORDER BY l.first, EXISTS (SELECT FROM superseded x WHERE x.owner = m.owner AND x.memory = m.seq),
             m.time DESC, m.seq DESC",
    );
    let rows = tx.query(&sql).await?;
    let replaced = |row: &Row| {
        let memory = memory_key(row, 5)?;
        Ok((memory, by(row, memory)?))
    };
    rows.iter().map(replaced).collect()
}

/// A statement of a memory, or a statement of a message that a fact repeats.
struct Own {
    memory: MemoryKey,
    seq: i64,
    subject: i64,
    time: i64,
    value: String,
    /// The bytes of the statement; `None` if it is the whole fact.
    place: Option<(usize, usize)>,
    words: String,
}

/// Returns the statements of the memories `keys` whose value differs from the value of the latest living statement about
/// the same subject. A fact that was extracted from a message is superseded together with the statement that it
/// repeats.
async fn by_statements(
    tx: &Transaction,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<HashMap<MemoryKey, Vec<Superseded>>> {
    let mut found: HashMap<MemoryKey, Vec<Superseded>> = HashMap::new();
    let own = own_statements(tx, keys).await?;
    if own.is_empty() {
        return Ok(found);
    }
    let mut sql = Sql::new(format!(
        "SELECT DISTINCT ON (t.subject) {BY}, t.subject, t.start_byte, t.end_byte, t.value, t.time, t.seq
         FROM statements t JOIN memories m ON m.owner = t.owner AND m.seq = t.memory {BY_FROM} WHERE "
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let parts = sql.bind(tx.seen.parts.clone());
    let subjects = sql.bind(own.iter().map(|own| own.subject).collect::<Vec<i64>>());
    sql.push(&format!(
        " AND t.owner = ANY ({parts}) AND t.subject = ANY ({subjects})
         ORDER BY t.subject, t.time DESC, t.seq DESC"
    ));
    let mut latest: HashMap<i64, Row> = HashMap::new();
    for row in tx.query(&sql).await? {
        latest.insert(row.try_get(5)?, row);
    }
    for Own { memory, seq, subject, time, value, place, words } in own {
        let Some(row) = latest.get(&subject) else { continue };
        let (new_value, new_place): (String, (i64, i64)) =
            (row.try_get(8)?, (row.try_get(9)?, row.try_get(10)?));
        let superseded = by(row, memory)?;
        if new_value != value && new_place > (time, seq) && superseded.by_key != memory {
            let by_statement = Some((size(row, 6)?, size(row, 7)?));
            let superseded = Superseded { statement: place, words: Some(words), by_statement, ..superseded };
            found.entry(memory).or_default().push(superseded);
        }
    }
    Ok(found)
}

/// Returns the statements of the memories that share their subject with others, in order. If a memory is a fact that was
/// extracted from messages, returns the messages' statements, as far as the fact repeats them.
async fn own_statements(tx: &Transaction, keys: &[MemoryKey]) -> Result<Vec<Own>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "
        SELECT t.memory, t.seq, t.subject, t.time, t.value, t.start_byte, t.end_byte, t.words, t.number
            FROM statements t WHERE t.owner = ANY ($1) AND t.memory = ANY ($2) AND t.subject IS NOT NULL
        UNION ALL
        SELECT f.seq, t.seq, t.subject, t.time, t.value, NULL, NULL, t.words, t.number
            FROM memories f JOIN memory_references r ON r.owner = f.owner AND r.memory = f.seq
            JOIN memories o ON o.owner = ANY ($1) AND o.id = r.target
            JOIN statements t ON t.owner = o.owner AND t.memory = o.seq AND t.subject IS NOT NULL
            WHERE f.owner = ANY ($1) AND f.seq = ANY ($2) AND f.provenance = 'derived'
                AND f.kind IN ('fact', 'decision')
                AND position(substr(convert_to(o.text, 'UTF8'), t.start_byte::int + 1,
                    (t.end_byte - t.start_byte)::int) IN convert_to(f.text, 'UTF8')) > 0
        ORDER BY number, seq";
    let rows = tx.rows(sql, &[&tx.seen.parts, &numbers(keys)]).await?;
    let own = |row: &Row| {
        let is_part = row.try_get::<_, Option<i64>>(5)?.is_some();
        Ok(Own {
            memory: memory_key(row, 0)?,
            seq: row.try_get(1)?,
            subject: row.try_get(2)?,
            time: row.try_get(3)?,
            value: row.try_get(4)?,
            place: if is_part { Some((size(row, 5)?, size(row, 6)?)) } else { None },
            words: row.try_get(7)?,
        })
    };
    rows.iter().map(own).collect()
}

/// Adds, to each of `found`, the chunk that has the new statement.
async fn add_chunks(tx: &Transaction, found: &mut [Superseded]) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let by: Vec<i64> = found.iter().map(|superseded| superseded.by_key.in_store()).collect();
    let sql = "SELECT memory, seq, start_byte, end_byte FROM chunks
               WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY memory, ordinal";
    let mut chunks: HashMap<MemoryKey, Vec<(ChunkKey, usize, usize)>> = HashMap::new();
    for row in tx.rows(sql, &[&tx.seen.parts, &by]).await? {
        let chunk = (ChunkKey::from_store(row.try_get(1)?), size(&row, 2)?, size(&row, 3)?);
        chunks.entry(memory_key(&row, 0)?).or_default().push(chunk);
    }
    for superseded in found {
        let at = superseded.by_statement.map_or(0, |(start, _)| start);
        let chunks = chunks.get(&superseded.by_key).map_or(&[][..], Vec::as_slice);
        let with = chunks.iter().find(|(_, start, end)| (*start..*end).contains(&at));
        superseded.by_chunk = with.or(chunks.first()).map(|(chunk, ..)| *chunk);
    }
    Ok(())
}

/// Reads the columns [`BY`].
fn by(row: &Row, memory: MemoryKey) -> Result<Superseded> {
    Ok(Superseded {
        memory,
        statement: None,
        words: None,
        by: id(row, 0)?,
        by_key: memory_key(row, 1)?,
        by_time: row.try_get(2)?,
        by_session: row.try_get::<_, Option<&str>>(3)?.and_then(SessionId::parse),
        by_ordinal: row.try_get(4)?,
        by_statement: None,
        by_chunk: None,
    })
}

fn numbers(keys: &[MemoryKey]) -> Vec<i64> {
    keys.iter().map(|key| key.in_store()).collect()
}
