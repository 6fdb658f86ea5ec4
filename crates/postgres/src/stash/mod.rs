//! The stash. Memories can be put aside, found again, and brought back.
//!
//! The state of a stashed memory is stored in a separate table (`stashed`), so its text, its vectors and its index
//! entries don't change. Only memories that were given to the stash as text are removed when they expire.

mod assembled;
mod expire_stash;
mod read;

use std::collections::{HashMap, HashSet};

use crate::PostgresStore;
use crate::columns;
use crate::database::sql::Sql;
use crate::error::{Error, Result};
use crate::read::conditions::{Which, of_scope};
use crate::transactions::{Transaction, write};
use crate::write::reindex::reindex_memories;
use crate::write::save_batch;
use tiro_base::error;
use tiro_base::humanize;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::Scope;
use tiro_store::{Outcome, PreparedMemory, StashReceipt, Stashing};

impl PostgresStore {
    pub(crate) async fn stash(
        &self,
        scope: &Scope,
        stashing: Stashing,
        now: Millis,
    ) -> error::Result<StashReceipt> {
        write!(self, scope, tx => { stash(&tx, scope, &stashing, now).await })
    }

    pub(crate) async fn unstash(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        keep: bool,
    ) -> error::Result<Vec<MemoryId>> {
        let sql = match keep {
            true => {
                "UPDATE stashed x SET is_held_out = false FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
                 WHERE x.owner = u.owner AND x.memory = u.memory RETURNING x.memory"
            }
            false => {
                "DELETE FROM stashed x USING unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
                 WHERE x.owner = u.owner AND x.memory = u.memory RETURNING x.memory"
            }
        };
        write!(self, scope, tx => {
            let rows = living(&tx, scope, ids).await?;
            let (owners, seqs): (Vec<i64>, Vec<i64>) = rows.values().map(|row| (row.owner, row.seq)).unzip();
            let came: HashSet<i64> = tx.rows(sql, &[&owners, &seqs]).await?.iter().map(|row| row.get(0)).collect();
            let mut seen = HashSet::new();
            let is_back = |id: &&MemoryId| rows.get(id).is_some_and(|row| came.contains(&row.seq));
            Ok(ids.iter().filter(is_back).filter(|id| seen.insert(*id)).cloned().collect())
        })
    }
}

/// Does the work of [`PostgresStore::stash`] in the transaction of the caller.
async fn stash(tx: &Transaction, scope: &Scope, stashing: &Stashing, now: Millis) -> Result<StashReceipt> {
    let named = living(tx, scope, &stashing.named).await?;
    let unknown: Vec<String> =
        stashing.named.iter().filter(|id| !named.contains_key(id)).map(MemoryId::to_string).collect();
    if !unknown.is_empty() {
        return Err(Error::not_found(format!("no memory is called {}", humanize::some(&unknown)))
            .hint("nothing was stashed; search results show ids, and SESSION#NUMBER names a message"));
    }
    let pending = store_given(tx, scope, &stashing.given, now).await?;
    let given: Vec<MemoryId> = stashing.given.iter().map(|memory| memory.id.clone()).collect();
    let stored = living(tx, scope, &given).await?;
    let is_given: HashSet<&MemoryId> = given.iter().collect();
    let mut rows: Vec<(&MemoryId, Row)> = Vec::new();
    let mut seen = HashSet::new();
    for id in stashing.named.iter().chain(&given) {
        let row = *named.get(id).or_else(|| stored.get(id)).ok_or_else(|| gone(id))?;
        if seen.insert(row.seq) {
            rows.push((id, Row { is_given: is_given.contains(id), ..row }));
        }
    }
    let kept: Vec<Row> = rows.iter().map(|(_, row)| *row).collect();
    let new = put(tx, stashing, &kept, now).await?;
    let shown: Vec<(i64, i64, i64)> =
        kept.iter().filter_map(|row| Some((row.owner, row.session?, row.seq))).collect();
    let freed = if stashing.cause.holds_out() { assembled::free(tx, &shown).await? } else { 0 };
    Ok(StashReceipt {
        outcomes: rows.iter().map(|(id, row)| ((*id).clone(), new.contains(&row.seq))).collect(),
        tokens: kept.iter().map(|row| row.tokens).sum(),
        freed,
        pending,
    })
}

/// A memory to stash.
#[derive(Clone, Copy)]
struct Row {
    owner: i64,
    seq: i64,
    tokens: i64,
    session: Option<i64>,
    is_given: bool,
}

/// Returns the rows of those of `ids` that are living memories of the scope. The reader's private part comes first.
async fn living(tx: &Transaction, scope: &Scope, ids: &[MemoryId]) -> Result<HashMap<MemoryId, Row>> {
    let mut sql = Sql::new(
        "SELECT DISTINCT ON (m.id) m.id, m.owner, m.seq, m.tokens, m.session FROM memories m WHERE ",
    );
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let ids = sql.bind(ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<String>>());
    let mine = sql.bind(tx.seen.mine);
    sql.push(&format!(" AND m.id = ANY ({ids}) ORDER BY m.id, m.owner = {mine} DESC"));
    let row = |row: &tokio_postgres::Row| {
        let found = Row {
            owner: row.get(1),
            seq: row.get(2),
            tokens: row.get(3),
            session: row.get(4),
            is_given: false,
        };
        Ok((columns::id(row, 0)?, found))
    };
    tx.query(&sql).await?.iter().map(row).collect()
}

/// Stores the given memories, and restores those that were forgotten. Returns how many chunks of these memories have no
/// embedding.
async fn store_given(
    tx: &Transaction,
    scope: &Scope,
    given: &[PreparedMemory],
    now: Millis,
) -> Result<usize> {
    if given.is_empty() {
        return Ok(0);
    }
    let receipt = save_batch(tx, scope, given, now).await?;
    if let Some((id, _)) = receipt.outcomes.iter().find(|(_, outcome)| *outcome == Outcome::Conflict) {
        return Err(gone(id));
    }
    let forgotten = receipt.outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Forgotten);
    let forgotten: Vec<&str> = forgotten.map(|(id, _)| id.as_str()).collect();
    // A forgotten memory that is given to the stash again is restored, unless it was purged.
    if !forgotten.is_empty() {
        let sql = "UPDATE memories m SET tombstoned_at = NULL FROM (
                 SELECT DISTINCT ON (id) owner, seq FROM memories WHERE owner = ANY ($1) AND id = ANY ($2)
                 ORDER BY id, owner = $3 DESC) f
             WHERE m.owner = f.owner AND m.seq = f.seq AND m.tombstoned_at IS NOT NULL RETURNING m.owner, m.seq";
        let rows = tx.rows(sql, &[&tx.seen.parts, &forgotten, &tx.seen.mine]).await?;
        let (owners, seqs): (Vec<i64>, Vec<i64>) =
            rows.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1))).unzip();
        reindex_memories(tx, &owners, &seqs).await?;
    }
    renew(tx, given, now).await?;
    Ok(receipt.pending)
}

/// Handles texts that are given again after they expired. Removes their former rows of the stash, and sets their new
/// times, so that they do not expire again because of their age.
async fn renew(tx: &Transaction, given: &[PreparedMemory], now: Millis) -> Result<()> {
    let ids: Vec<&str> = given.iter().map(|memory| memory.id.as_str()).collect();
    let times: Vec<Millis> = given.iter().map(|memory| memory.draft.time).collect();
    let rows = tx
        .rows(
            "SELECT DISTINCT ON (m.id) m.owner, m.seq, u.time, m.time < u.time
             FROM unnest($2::text[], $3::bigint[]) AS u (id, time) JOIN memories m ON m.owner = ANY ($1) AND m.id = u.id
             ORDER BY m.id, m.owner = $4 DESC, u.time DESC",
            &[&tx.seen.parts, &ids, &times, &tx.seen.mine],
        )
        .await?;
    let (owners, seqs): (Vec<i64>, Vec<i64>) =
        rows.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1))).unzip();
    tx.execute(
        "DELETE FROM stashed x USING unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
         WHERE x.owner = u.owner AND x.memory = u.memory AND NOT x.is_protected AND x.expires_at <= $3",
        &[&owners, &seqs, &now],
    )
    .await?;
    if rows.iter().any(|row| row.get::<_, bool>(3)) {
        let times: Vec<Millis> = rows.iter().map(|row| row.get(2)).collect();
        tx.execute(
            "UPDATE memories m SET time = u.time FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (owner, seq, time)
             WHERE m.owner = u.owner AND m.seq = u.seq AND m.time < u.time",
            &[&owners, &seqs, &times],
        )
        .await?;
    }
    Ok(())
}

fn gone(id: &MemoryId) -> Error {
    Error::not_found(format!("the text of segment `{id}` was purged before, so it is not stored again"))
        .hint("nothing was stashed; leave that segment out")
}

/// Puts memories into the stash, or changes their terms if they are already there. Returns the numbers of the memories
/// that are new in the stash.
async fn put(tx: &Transaction, stashing: &Stashing, rows: &[Row], now: Millis) -> Result<HashSet<i64>> {
    let holds_out = stashing.cause.holds_out();
    let (owners, seqs): (Vec<i64>, Vec<i64>) = rows.iter().map(|row| (row.owner, row.seq)).unzip();
    let given: Vec<bool> = rows.iter().map(|row| row.is_given).collect();
    let Stashing { expires_at, is_protected, topic, cause, .. } = stashing;
    let new = tx
        .rows(
            "INSERT INTO stashed (owner, memory, stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause)
             SELECT m.owner, m.seq, $4, $5, coalesce($6, false), $7, u.is_given, coalesce($8, m.topic), $9
             FROM unnest($1::bigint[], $2::bigint[], $3::bool[]) AS u (owner, seq, is_given)
             JOIN memories m ON m.owner = u.owner AND m.seq = u.seq ON CONFLICT DO NOTHING RETURNING memory",
            &[&owners, &seqs, &given, &now, expires_at, is_protected, &holds_out, topic, &cause.as_str()],
        )
        .await?;
    let new: HashSet<i64> = new.iter().map(|row| row.get(0)).collect();
    let (owners, seqs): (Vec<i64>, Vec<i64>) =
        rows.iter().filter(|row| !new.contains(&row.seq)).map(|row| (row.owner, row.seq)).unzip();
    if holds_out && !seqs.is_empty() {
        tx.execute(
            "UPDATE stashed x SET expires_at = coalesce($3, x.expires_at), topic = coalesce($5, x.topic),
                 is_protected = coalesce($4, x.is_protected), is_held_out = true, cause = $6
             FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
             WHERE x.owner = u.owner AND x.memory = u.memory",
            &[&owners, &seqs, expires_at, is_protected, topic, &cause.as_str()],
        )
        .await?;
    }
    Ok(new)
}
