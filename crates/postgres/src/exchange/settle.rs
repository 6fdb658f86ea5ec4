//! Writes the states that a merge gives to memories.

use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::Kind;
use tiro_store::ExchangedState;

/// The states of memories that are here, in order.
#[derive(Default)]
pub(super) struct Settled {
    pub owner: Vec<i64>,
    pub seq: Vec<i64>,
    pub state: Vec<ExchangedState>,
    /// The peer, where the state is the peer's.
    pub by: Vec<Option<String>>,
}

/// The states of memories that are not here, in order.
#[derive(Default)]
pub(super) struct Remembered {
    pub owner: Vec<i64>,
    pub id: Vec<String>,
    pub kind: Vec<Kind>,
    pub author: Vec<String>,
    pub state: Vec<ExchangedState>,
    /// The peer, where the state is the peer's.
    pub by: Vec<Option<String>>,
    /// The id under which the memory travels, where that is another one.
    pub travelling: Vec<Option<String>>,
}

/// Returns numbers for changes, in order.
async fn numbers(tx: &Transaction, count: usize) -> Result<Vec<i64>> {
    let sql = "SELECT nextval('keys') FROM generate_series(1, $1::bigint)";
    let rows = tx.rows(sql, &[&crate::columns::number(count)]).await?;
    let mut numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Settled {
    /// Sets the marks and the importance of the memories.
    pub async fn mark(&self, tx: &Transaction) -> Result<()> {
        let marked: Vec<bool> = self.state.iter().map(|state| state.is_marked).collect();
        let importance: Vec<Option<f64>> = self.state.iter().map(|state| state.importance).collect();
        tx.execute(
            "UPDATE memories m SET marked = u.marked, importance = u.importance
             FROM unnest($1::bigint[], $2::bigint[], $3::bool[], $4::float8[]) AS u (owner, seq, marked, importance)
             WHERE m.owner = u.owner AND m.seq = u.seq
                 AND (m.marked <> u.marked OR m.importance IS DISTINCT FROM u.importance)",
            &[&self.owner, &self.seq, &marked, &importance],
        )
        .await?;
        Ok(())
    }

    /// Gives the memories their stamps and numbers. If a memory is forgotten only because it is derived from another one,
    /// the peer has to learn of it.
    pub async fn number(&self, tx: &Transaction) -> Result<()> {
        let numbers = numbers(tx, self.seq.len()).await?;
        let marked_at: Vec<i64> = self.state.iter().map(|state| state.marked_at.number()).collect();
        let forgotten_at: Vec<i64> = self.state.iter().map(|state| state.forgotten_at.number()).collect();
        let forgotten: Vec<bool> = self.state.iter().map(|state| state.is_forgotten).collect();
        tx.execute(
            "UPDATE exchange x SET changed = u.number, marked_at = u.marked_at,
                 changed_by = CASE WHEN (m.tombstoned_at IS NOT NULL) = u.is_forgotten THEN u.by END,
                 forgotten_at = CASE WHEN (m.tombstoned_at IS NOT NULL) = u.is_forgotten THEN u.forgotten_at
                     ELSE x.forgotten_at END
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bool[])
                 AS u (owner, seq, number, by, marked_at, forgotten_at, is_forgotten)
             JOIN memories m ON m.owner = u.owner AND m.seq = u.seq
             WHERE x.owner = u.owner AND x.memory = u.seq",
            &[&self.owner, &self.seq, &numbers, &self.by, &marked_at, &forgotten_at, &forgotten],
        )
        .await?;
        let purged: Vec<bool> = self.state.iter().map(|state| state.is_purged).collect();
        if purged.contains(&true) {
            tx.execute(
                "UPDATE absent a SET changed = u.number, changed_by = u.by, marked_at = u.marked_at
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bool[], $6::bigint[])
                     AS u (owner, seq, number, by, is_purged, marked_at)
                 JOIN memories m ON m.owner = u.owner AND m.seq = u.seq
                 WHERE u.is_purged AND a.owner = m.owner AND a.id = m.id",
                &[&self.owner, &self.seq, &numbers, &self.by, &purged, &marked_at],
            )
            .await?;
        }
        Ok(())
    }
}

impl Remembered {
    /// Stores the states.
    pub async fn insert(&self, tx: &Transaction) -> Result<()> {
        if self.id.is_empty() {
            return Ok(());
        }
        let numbers = numbers(tx, self.id.len()).await?;
        let kinds: Vec<&str> = self.kind.iter().map(|kind| kind.as_str()).collect();
        let marked: Vec<bool> = self.state.iter().map(|state| state.is_marked).collect();
        let importance: Vec<Option<f64>> = self.state.iter().map(|state| state.importance).collect();
        let marked_at: Vec<i64> = self.state.iter().map(|state| state.marked_at.number()).collect();
        let forgotten: Vec<bool> = self.state.iter().map(|state| state.is_forgotten).collect();
        let forgotten_at: Vec<i64> = self.state.iter().map(|state| state.forgotten_at.number()).collect();
        let purged: Vec<bool> = self.state.iter().map(|state| state.is_purged).collect();
        tx.execute(
            "INSERT INTO absent (owner, id, kind, author, changed, changed_by, is_marked, importance, marked_at,
                 is_forgotten, forgotten_at, is_purged, exchange_id)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[],
                 $7::bool[], $8::float8[], $9::bigint[], $10::bool[], $11::bigint[], $12::bool[], $13::text[])
             ON CONFLICT (owner, id) DO UPDATE SET changed = excluded.changed, changed_by = excluded.changed_by,
                 is_marked = excluded.is_marked, importance = excluded.importance, marked_at = excluded.marked_at,
                 is_forgotten = excluded.is_forgotten, forgotten_at = excluded.forgotten_at,
                 is_purged = excluded.is_purged",
            &[
                &self.owner,
                &self.id,
                &kinds,
                &self.author,
                &numbers,
                &self.by,
                &marked,
                &importance,
                &marked_at,
                &forgotten,
                &forgotten_at,
                &purged,
                &self.travelling,
            ],
        )
        .await?;
        tx.execute(
            "INSERT INTO purged (owner, id) SELECT u.owner, u.id
             FROM unnest($1::bigint[], $2::text[], $3::bool[]) AS u (owner, id, is_purged) WHERE u.is_purged
             ON CONFLICT DO NOTHING",
            &[&self.owner, &self.id, &purged],
        )
        .await?;
        Ok(())
    }
}
