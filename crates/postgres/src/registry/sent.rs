//! Records of what was sent to providers of models: the time, the receiver, the purpose, and the memories and files
//! from which the content came. The records contain no text.
//!
//! The row of a request is written in the transaction that reserves the cost, so it is durable before anything is sent.
//! If the process dies, the row stays without an answer. If the request was never sent, its row is removed. The number
//! of rows and the bytes of their names are limited. The oldest rows are removed to make room.

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use super::PostgresRegistry;
use crate::columns::number;
use crate::error::Result;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::scope::ProjectId;
use tiro_store::{Planned, Reservation, SentFilter, SentRow, Sources, Spent};

/// The maximum number of requests that are kept. Arbitrary: years of a person's work.
const MOST_ROWS: i64 = 50_000;

/// The maximum number of bytes of all names of sources together. Arbitrary.
const MOST_BYTES: i64 = 64 << 20;

/// The oldest rows are removed only once in about this many requests, because counting reads all rows.
const REMOVED_EVERY: i64 = 64;

/// The names of sources as they are stored.
#[derive(Default, Serialize, Deserialize)]
struct Named {
    memories: Vec<String>,
    files: Vec<String>,
}

/// Records the request of `planned` with the reservation `id`. Removes the oldest rows if there are too many.
pub(super) async fn record(
    tx: &Transaction,
    tenant: &str,
    id: i64,
    planned: &Planned,
    now: i64,
) -> Result<()> {
    let parcel = &planned.parcel;
    let Sources { memories, files } = parcel.matter.sources.clone();
    let counts = (number(memories.len()), number(files.len()));
    let sources = serde_json::to_string(&Named { memories, files }).expect("names are JSON");
    tx.execute(
        "INSERT INTO sent (tenant, id, at, project, provider, model, place, is_local, purpose, requests, tokens,
             received, secrets, memories, files, session, assistant, sources)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, 0, $11, $12, $13, $14, $15, $16)",
        &[
            &tenant,
            &id,
            &now,
            &planned.project,
            &planned.provider,
            &planned.model,
            &parcel.place,
            &parcel.is_local,
            &parcel.matter.purpose.as_str(),
            &parcel.tokens,
            &parcel.secrets,
            &counts.0,
            &counts.1,
            &parcel.matter.session,
            &parcel.matter.assistant,
            &sources,
        ],
    )
    .await?;
    if id % REMOVED_EVERY == 0 {
        remove_oldest(tx, tenant, (MOST_ROWS, MOST_BYTES)).await?;
    }
    Ok(())
}

/// Removes the oldest rows so that at most `rows` rows stay, and the names in them have at most `bytes` bytes.
async fn remove_oldest(tx: &Transaction, tenant: &str, (rows, bytes): (i64, i64)) -> Result<()> {
    tx.execute(
        "DELETE FROM sent WHERE tenant = $1 AND id <= (
             SELECT max(id) FROM (
                 SELECT id, row_number() OVER newest AS place, sum(octet_length(sources)) OVER newest AS bytes
                 FROM sent WHERE tenant = $1 WINDOW newest AS (ORDER BY id DESC)) s
             WHERE place > $2 OR bytes > $3)",
        &[&tenant, &rows, &bytes],
    )
    .await?;
    Ok(())
}

/// Records that the request with the reservation `id` is sent once more.
pub(super) async fn repeat(tx: &Transaction, tenant: &str, id: i64, planned: &Planned) -> Result<()> {
    let parcel = &planned.parcel;
    tx.execute(
        "UPDATE sent SET requests = requests + 1, tokens = tokens + $3, secrets = secrets + $4
         WHERE tenant = $1 AND id = $2",
        &[&tenant, &id, &parcel.tokens, &parcel.secrets],
    )
    .await?;
    Ok(())
}

/// Records how the request with the reservation `id` ended. If the request was never sent, its row is removed.
pub(super) async fn settle(tx: &Transaction, tenant: &str, id: i64, outcome: &Spent) -> Result<()> {
    if outcome.requests == 0 {
        tx.execute("DELETE FROM sent WHERE tenant = $1 AND id = $2", &[&tenant, &id]).await?;
        return Ok(());
    }
    tx.execute(
        "UPDATE sent SET secrets = secrets / greatest(requests, 1) * $3::bigint, requests = $3::bigint, tokens = $4,
             received = $5, answered = $6 WHERE tenant = $1 AND id = $2",
        &[&tenant, &id, &outcome.requests, &outcome.input, &outcome.output, &!outcome.has_failed],
    )
    .await?;
    Ok(())
}

/// Removes the names of sessions, memories and files from the rows of `project`.
pub(super) async fn forget_project(tx: &Transaction, tenant: &str, project: &ProjectId) -> Result<()> {
    let forget =
        "UPDATE sent SET session = NULL, assistant = NULL, sources = NULL WHERE tenant = $1 AND project = $2";
    tx.execute(forget, &[&tenant, &project.as_str()]).await?;
    Ok(())
}

impl PostgresRegistry {
    pub(crate) async fn note_sent_again(&self, reservation: &Reservation) -> error::Result<()> {
        write!(self, &self.scope, tx => {
            repeat(&tx, self.tenant(), reservation.id, &reservation.planned).await
        })
    }

    pub(crate) async fn sent(&self, filter: SentFilter) -> error::Result<(Vec<SentRow>, i64)> {
        const WHICH: &str =
            "tenant = $1 AND ($2::text IS NULL OR provider = $2) AND ($3::bigint IS NULL OR at >= $3)";
        let SentFilter { provider, since, limit } = &filter;
        read!(self, &self.scope, tx => {
            let count = format!("SELECT count(*) FROM sent WHERE {WHICH}");
            let all = tx.only(&count, &[&self.tenant(), provider, since]).await?.try_get(0)?;
            let sql = format!(
                "SELECT at, project, provider, model, place, is_local, purpose, requests, tokens, received, secrets,
                     answered, memories, files, session, assistant, sources
                 FROM sent WHERE {WHICH} ORDER BY id DESC LIMIT $4"
            );
            let rows = tx.rows(&sql, &[&self.tenant(), provider, since, &number(*limit)]).await?;
            Ok((rows.iter().map(row).collect::<Result<_>>()?, all))
        })
    }

    pub(crate) async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> error::Result<()> {
        if sessions.is_empty() {
            return Ok(());
        }
        write!(self, &self.scope, tx => {
            tx.execute(
                "UPDATE sent SET session = NULL, assistant = NULL, sources = NULL
                 WHERE tenant = $1 AND project = $2 AND session = ANY ($3)",
                &[&self.tenant(), &project.as_str(), &sessions],
            )
            .await?;
            Ok(())
        })
    }
}

fn row(row: &Row) -> Result<SentRow> {
    let sources: Option<&str> = row.try_get(16)?;
    let named = sources.map(|json| serde_json::from_str(json).unwrap_or_default());
    Ok(SentRow {
        at: row.try_get(0)?,
        project: row.try_get(1)?,
        provider: row.try_get(2)?,
        model: row.try_get(3)?,
        place: row.try_get(4)?,
        is_local: row.try_get(5)?,
        purpose: row.try_get(6)?,
        requests: row.try_get(7)?,
        tokens: row.try_get(8)?,
        received: row.try_get(9)?,
        secrets: row.try_get(10)?,
        answered: row.try_get(11)?,
        memories: row.try_get(12)?,
        files: row.try_get(13)?,
        session: row.try_get(14)?,
        assistant: row.try_get(15)?,
        sources: named.map(|Named { memories, files }| Sources { memories, files }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::engine::Postgres;
    use crate::transactions::Durability;
    use tiro_base::money::Money;
    use tiro_base::scope::TenantId;
    use tiro_store::{Matter, Parcel, Purpose, SpendLimits};

    fn planned(file: &str) -> Planned {
        let sources = Sources { memories: vec!["m1".into()], files: vec![file.into()] };
        let matter = Matter::of(Purpose::Test, sources);
        Planned {
            project: "p".into(),
            provider: "o3".into(),
            model: "m".into(),
            most: Money(5),
            limits: SpendLimits::default(),
            until: 0,
            parcel: Parcel { matter, place: "host".into(), is_local: false, tokens: 100, secrets: 2 },
        }
    }

    #[tokio::test]
    async fn the_oldest_rows_are_removed_by_number_and_by_bytes() {
        let Some(engine) = Postgres::new() else { return };
        let registry = PostgresRegistry::of(engine.installation(), &TenantId::new("o"));
        for n in 0..10 {
            registry.reserve(planned(&format!("{n:0100}")), n).await.unwrap();
        }
        let remove = async |rows, bytes| {
            let tx = registry.begin_write(&registry.scope, Durability::Synced).await.unwrap();
            remove_oldest(&tx, "o", (rows, bytes)).await.unwrap();
            tx.end().await.unwrap();
            let filter = SentFilter { limit: 99, ..SentFilter::default() };
            registry.sent(filter).await.unwrap().0.iter().map(|row| row.at).collect::<Vec<_>>()
        };
        assert_eq!(remove(5, 1 << 20).await, [9, 8, 7, 6, 5]);
        // The names of a row have some 130 bytes.
        assert_eq!(remove(99, 300).await, [9, 8]);
        assert_eq!(remove(99, 300).await, [9, 8]);
    }
}
