//! The ids under which memories travel.

use std::collections::HashMap;

use crate::columns::{self, number, word};
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::AuthorId;
use tiro_store::decide::exchange;

/// The maximum number of memories that get their exchange id in one transaction. Arbitrary: this takes some tens of
/// milliseconds.
pub(super) const AT_ONCE: usize = 5_000;

/// The name of the cursor that has the last memory that got an exchange id.
const CURSOR: &str = "exchange ids";

/// Gives exchange ids to up to `limit` memories of the tenant, who is the reader, in the order in which they were stored.
/// Returns how many memories were looked at.
///
/// A memory that was given out must be found by its exchange id when it comes back, also if it was purged meanwhile. The
/// ids can't be turned back, so they are stored.
pub(super) async fn assign(tx: &Transaction, name: &AuthorId, limit: usize) -> Result<usize> {
    let sql = "SELECT cursor FROM imports WHERE owner = $1 AND source = $2";
    let last = tx.row(sql, &[&tx.seen.shared, &CURSOR]).await?;
    let last: i64 = last.and_then(|row| row.get::<_, String>(0).parse().ok()).unwrap_or(0);
    let rows = tx
        .rows(
            "SELECT x.owner, x.memory, m.id, m.kind, m.kind <> 'commit' AND x.exchange_id IS NULL
                 AND m.author = (SELECT tenant FROM owners WHERE seq = $1)
             FROM exchange x JOIN memories m ON m.owner = x.owner AND m.seq = x.memory
             WHERE x.owner = ANY ($2) AND x.memory > $3 ORDER BY x.memory LIMIT $4",
            &[&tx.seen.shared, &tx.seen.parts, &last, &number(limit)],
        )
        .await?;
    let (mut owners, mut memories, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.get(4)) {
        let kind = word(row, 3, Kind::parse)?;
        owners.push(row.get::<_, i64>(0));
        memories.push(row.get::<_, i64>(1));
        ids.push(exchange::exchange_id(name, kind, &columns::id(row, 2)?).as_str().to_owned());
    }
    set(tx, &owners, &memories, &ids).await?;
    name_absent(tx, name).await?;
    if let Some(last) = rows.last() {
        tx.execute(
            "INSERT INTO imports (owner, source, cursor, at) VALUES ($1, $2, $3, 0)
             ON CONFLICT (owner, source) DO UPDATE SET cursor = excluded.cursor",
            &[&tx.seen.shared, &CURSOR, &last.get::<_, i64>(1).to_string()],
        )
        .await?;
    }
    Ok(rows.len())
}

/// Gives exchange ids to the tenant's memories that are not here.
async fn name_absent(tx: &Transaction, name: &AuthorId) -> Result<()> {
    let sql = "SELECT owner, id, kind FROM absent WHERE owner = ANY ($2) AND exchange_id IS NULL AND kind <> 'commit'
                   AND author = (SELECT tenant FROM owners WHERE seq = $1)";
    let (mut owners, mut ids, mut travelling) = (Vec::new(), Vec::new(), Vec::new());
    for row in tx.rows(sql, &[&tx.seen.shared, &tx.seen.parts]).await? {
        let (id, kind) = (columns::id(&row, 1)?, word(&row, 2, Kind::parse)?);
        owners.push(row.get::<_, i64>(0));
        ids.push(id.as_str().to_owned());
        travelling.push(exchange::exchange_id(name, kind, &id).as_str().to_owned());
    }
    if owners.is_empty() {
        return Ok(());
    }
    tx.execute(
        "UPDATE absent a SET exchange_id = u.travelling
         FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u (owner, id, travelling)
         WHERE a.owner = u.owner AND a.id = u.id",
        &[&owners, &ids, &travelling],
    )
    .await?;
    Ok(())
}

/// Stores the ids under which memories travel.
pub(super) async fn set(tx: &Transaction, owners: &[i64], memories: &[i64], ids: &[String]) -> Result<()> {
    if owners.is_empty() {
        return Ok(());
    }
    tx.execute(
        "UPDATE exchange x SET exchange_id = u.id
         FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u (owner, memory, id)
         WHERE x.owner = u.owner AND x.memory = u.memory",
        &[&owners, &memories, &ids],
    )
    .await?;
    Ok(())
}

/// Returns the ids that memories have here which travel under other ids, by these ids, in the parts that the reader sees.
pub(super) async fn local(tx: &Transaction, ids: &[&str]) -> Result<HashMap<MemoryId, MemoryId>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql =
        "SELECT x.exchange_id, m.id FROM exchange x JOIN memories m ON m.owner = x.owner AND m.seq = x.memory
               WHERE x.owner = ANY ($1) AND x.exchange_id = ANY ($2) ORDER BY x.owner = $3";
    let rows = tx.rows(sql, &[&tx.seen.parts, &ids, &tx.seen.mine]).await?;
    rows.iter().map(|row| Ok((columns::id(row, 0)?, columns::id(row, 1)?))).collect()
}
