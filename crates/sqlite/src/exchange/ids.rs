//! The ids under which memories travel, and how the memories are found by them.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::forget::IS_DERIVED;
use crate::read::parts;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::Incoming;
use tiro_store::decide::exchange;

/// The maximum number of memories that get their exchange id in one transaction. Arbitrary: this takes some tens of
/// milliseconds.
pub(super) const AT_ONCE: usize = 5_000;

/// The name of the cursor that has the last change up to which memories got exchange ids, and so did those that are not
/// here. The numbers of changes are never given again, unlike those of memories: after a purge, a new memory may get the
/// number of a purged one.
const CURSOR: &str = "exchange ids by number";

/// Gives exchange ids to up to `limit` memories of the tenant, who is the reader, in the order of their last changes.
/// Returns how many memories were looked at.
///
/// A memory that was given out must be found by its exchange id when it comes back, also if it was purged meanwhile. The
/// ids can't be turned back, so they are stored.
pub(super) fn assign(connection: &Connection, scope: &Scope, name: &AuthorId, limit: usize) -> Result<usize> {
    let [shared, mine] = parts::both(scope);
    let last: Option<String> = connection
        .prepare_cached("SELECT cursor FROM imports WHERE owner = ?1 AND source = ?2")?
        .query_row((&shared, CURSOR), |row| row.get(0))
        .optional()?;
    let last: i64 = last.and_then(|last| last.parse().ok()).unwrap_or(0);
    let mut statement = connection.prepare_cached(
        "SELECT e.changed AS changed, m.owner, m.id, m.kind, e.memory,
             m.author IS NULL AND e.exchange_id IS NULL AND m.kind <> 'commit'
         FROM exchange e JOIN memories m ON m.seq = e.memory WHERE e.owner IN (?1, ?2) AND e.changed > ?3
         UNION ALL
         SELECT changed, owner, id, kind, NULL, author IS NULL AND exchange_id IS NULL AND kind <> 'commit'
         FROM absent WHERE owner IN (?1, ?2) AND changed > ?3
         ORDER BY changed LIMIT ?4",
    )?;
    let rows = statement.query_map(params![shared, mine, last, limit as i64], |row| {
        let known = MemoryId::parse(&row.get::<_, String>(2)?).zip(Kind::parse(&row.get::<_, String>(3)?));
        let (number, owner, memory) = (row.get(0)?, row.get(1)?, row.get(4)?);
        Ok(Unnamed { number, owner, memory, known, is_unnamed: row.get(5)? })
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<Unnamed>>>()?;
    for Unnamed { owner, memory, known, .. } in rows.iter().filter(|row| row.is_unnamed) {
        let Some((id, kind)) = known else { continue };
        let travelling = exchange::exchange_id(name, *kind, id);
        match memory {
            Some(memory) => connection
                .prepare_cached("UPDATE exchange SET exchange_id = ?2 WHERE memory = ?1")?
                .execute((memory, travelling.as_str()))?,
            None => connection
                .prepare_cached("UPDATE absent SET exchange_id = ?3 WHERE owner = ?1 AND id = ?2")?
                .execute((owner, id.as_str(), travelling.as_str()))?,
        };
    }
    if let Some(last) = rows.last() {
        connection
            .prepare_cached(
                "INSERT INTO imports (owner, source, cursor, at) VALUES (?1, ?2, ?3, 0)
                 ON CONFLICT DO UPDATE SET cursor = excluded.cursor",
            )?
            .execute(params![shared, CURSOR, last.number.to_string()])?;
    }
    Ok(rows.len())
}

/// A memory that may need an exchange id.
struct Unnamed {
    /// The number of its last change.
    number: i64,
    owner: String,
    /// Its row; `None` if it is not here.
    memory: Option<i64>,
    known: Option<(MemoryId, Kind)>,
    is_unnamed: bool,
}

/// Returns the row of the memory that travels under the id `id`, in a part.
pub(super) fn row_of(connection: &Connection, owner: &str, id: &MemoryId) -> Result<Option<i64>> {
    let named = connection
        .prepare_cached("SELECT memory FROM exchange WHERE owner = ?1 AND exchange_id = ?2")?
        .query_row((owner, id.as_str()), |row| row.get(0))
        .optional()?;
    if named.is_some() {
        return Ok(named);
    }
    Ok(connection
        .prepare_cached(
            "SELECT m.seq FROM memories m JOIN exchange e ON e.memory = m.seq
             WHERE m.owner = ?1 AND m.id = ?2 AND e.exchange_id IS NULL",
        )?
        .query_row((owner, id.as_str()), |row| row.get(0))
        .optional()?)
}

/// Returns the id that a memory has here which travels under the id `id`, in the parts that the reader sees. If it is
/// not known, returns `id`.
pub(super) fn local(connection: &Connection, scope: &Scope, id: &MemoryId) -> Result<MemoryId> {
    for owner in parts::both(scope).iter().rev() {
        let found: Option<String> = connection
            .prepare_cached(
                "SELECT m.id FROM exchange e JOIN memories m ON m.seq = e.memory WHERE e.owner = ?1 AND e.exchange_id = ?2",
            )?
            .query_row((owner, id.as_str()), |row| row.get(0))
            .optional()?;
        if let Some(found) = found.as_deref().and_then(MemoryId::parse) {
            return Ok(found);
        }
    }
    Ok(id.clone())
}

/// Returns the id under which a new memory of `author` is stored in a part: that of the change, unless another memory has
/// this id, or had it before it was purged, or what is derived from a memory of somebody else refers to it.
pub(super) fn free(
    connection: &Connection,
    owner: &str,
    (Incoming { id, kind, .. }, author): (&Incoming, &AuthorId),
) -> Result<MemoryId> {
    let is_taken = connection
        .prepare_cached(&format!(
            "SELECT 1 FROM memories WHERE owner = ?1 AND id = ?2
             UNION ALL SELECT 1 FROM absent WHERE owner = ?1 AND id = ?2 AND exchange_id <> ?2
             UNION ALL SELECT 1 FROM purged WHERE owner = ?1 AND id = ?2
             UNION ALL SELECT 1 FROM memory_references r JOIN memories m ON m.seq = r.memory
                 WHERE r.target = ?2 AND {} AND {IS_DERIVED} AND coalesce(m.author, ?4) <> ?3",
            parts::of_tenant("m.owner", 1)
        ))?
        .exists((owner, id.as_str(), author.as_str(), parts::names(owner).0))?;
    Ok(if is_taken { exchange::id_beside(*kind, id) } else { id.clone() })
}
