//! Records of what was sent to providers of models: the time, the receiver, the purpose, and the memories and files
//! from which the content came. The records contain no text.
//!
//! The row of a request is written in the transaction that reserves the cost, so it is durable before anything is sent.
//! If the process dies, the row stays without an answer. If the request was never sent, its row is removed. The number
//! of rows and the bytes of their names are limited. The oldest rows are removed to make room.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use crate::SqliteRegistry;
use crate::error::Result;
use tiro_base::error;
use tiro_base::scope::ProjectId;
use tiro_store::{Planned, Reservation, SentFilter, SentRow, Sources, Spent};

/// The maximum number of requests that are kept. Arbitrary: years of a person's work.
const MOST_ROWS: i64 = 50_000;

/// The maximum number of bytes of all names of sources together. Arbitrary.
const MOST_BYTES: i64 = 64 << 20;

/// The bytes are counted only once in this many requests, because counting reads all rows.
const BYTES_EVERY: i64 = 64;

/// The names of sources as they are stored.
#[derive(Default, Serialize, Deserialize)]
struct Named {
    memories: Vec<String>,
    files: Vec<String>,
}

/// Records the request of `planned` with the reservation `id`. Removes the oldest rows if there are too many.
pub(super) fn record(connection: &Connection, id: i64, planned: &Planned, now: i64) -> Result<()> {
    let parcel = &planned.parcel;
    let Sources { memories, files } = parcel.matter.sources.clone();
    let count = |names: &[String]| i64::try_from(names.len()).unwrap_or(i64::MAX);
    let counts = (count(&memories), count(&files));
    let sources = serde_json::to_string(&Named { memories, files }).expect("names are JSON");
    connection
        .prepare_cached(
            "INSERT INTO sent (id, at, project, provider, model, place, is_local, purpose, requests, tokens, received,
                 secrets, memories, files, session, assistant, sources)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, 0, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            id,
            now,
            planned.project,
            planned.provider,
            planned.model,
            parcel.place,
            parcel.is_local,
            parcel.matter.purpose.as_str(),
            parcel.tokens,
            parcel.secrets,
            counts.0,
            counts.1,
            parcel.matter.session,
            parcel.matter.assistant,
            sources,
        ])?;
    remove_oldest(connection, id, (MOST_ROWS, MOST_BYTES), id % BYTES_EVERY == 0)
}

/// Removes the oldest rows so that at most `rows` rows stay. If `by_bytes` is true, also removes rows until the names
/// of the others have at most `bytes` bytes. `newest` is the id of the newest row.
fn remove_oldest(
    connection: &Connection,
    newest: i64,
    (rows, bytes): (i64, i64),
    by_bytes: bool,
) -> Result<()> {
    connection.prepare_cached("DELETE FROM sent WHERE id <= ?1")?.execute([newest - rows])?;
    if by_bytes {
        connection.execute(
            "DELETE FROM sent WHERE id <= (
                 SELECT id FROM (SELECT id, sum(length(sources)) OVER (ORDER BY id DESC) AS bytes FROM sent)
                 WHERE bytes > ?1 ORDER BY id DESC LIMIT 1)",
            [bytes],
        )?;
    }
    Ok(())
}

/// Records that the request with the reservation `id` is sent once more.
pub(super) fn repeat(connection: &Connection, id: i64, planned: &Planned) -> Result<()> {
    let parcel = &planned.parcel;
    connection
        .prepare_cached(
            "UPDATE sent SET requests = requests + 1, tokens = tokens + ?2, secrets = secrets + ?3 WHERE id = ?1",
        )?
        .execute((id, parcel.tokens, parcel.secrets))?;
    Ok(())
}

/// Records how the request with the reservation `id` ended. If the request was never sent, its row is removed.
pub(super) fn settle(connection: &Connection, id: i64, outcome: &Spent) -> Result<()> {
    if outcome.requests == 0 {
        connection.prepare_cached("DELETE FROM sent WHERE id = ?1")?.execute([id])?;
        return Ok(());
    }
    connection
        .prepare_cached(
            "UPDATE sent SET secrets = secrets / max(requests, 1) * ?2, requests = ?2, tokens = ?3, received = ?4,
                 answered = ?5 WHERE id = ?1",
        )?
        .execute((id, outcome.requests, outcome.input, outcome.output, !outcome.has_failed))?;
    Ok(())
}

/// Removes the names of sessions, memories and files from the rows of `project`. Returns how many rows had such names.
pub(super) fn forget_project(connection: &Connection, project: &str) -> Result<usize> {
    let forget = "UPDATE sent SET session = NULL, assistant = NULL, sources = NULL WHERE project = ?1";
    Ok(connection.execute(forget, [project])?)
}

impl SqliteRegistry {
    pub(crate) async fn note_sent_again(&self, reservation: &Reservation) -> error::Result<()> {
        let (id, planned) = (reservation.id, reservation.planned.clone());
        self.store.write(self.scope(), move |connection, _| repeat(connection, id, &planned)).await
    }

    pub(crate) async fn sent(&self, filter: SentFilter) -> error::Result<(Vec<SentRow>, i64)> {
        self.store
            .read(self.scope(), move |_, connection, _| {
                let condition = "(?1 IS NULL OR provider = ?1) AND (?2 IS NULL OR at >= ?2)";
                let all = connection
                    .prepare_cached(&format!("SELECT count(*) FROM sent WHERE {condition}"))?
                    .query_row((&filter.provider, filter.since), |row| row.get(0))?;
                let mut statement = connection.prepare_cached(&format!(
                    "SELECT at, project, provider, model, place, is_local, purpose, requests, tokens, received, secrets,
                         answered, memories, files, session, assistant, sources
                     FROM sent WHERE {condition} ORDER BY id DESC LIMIT ?3"
                ))?;
                let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
                let rows = statement.query_map((&filter.provider, filter.since, limit), row)?;
                Ok((rows.collect::<rusqlite::Result<_>>()?, all))
            })
            .await
    }

    pub(crate) async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> error::Result<()> {
        if sessions.is_empty() {
            return Ok(());
        }
        let project = project.as_str().to_owned();
        let sessions = serde_json::to_string(sessions).expect("names are JSON");
        let forgotten = self
            .store
            .write(self.scope(), move |connection, _| {
                Ok(connection
                    .prepare_cached(
                        "UPDATE sent SET session = NULL, assistant = NULL, sources = NULL
                         WHERE project = ?1 AND session IN (SELECT value FROM json_each(?2))",
                    )?
                    .execute((project, sessions))?)
            })
            .await?;
        match forgotten {
            0 => Ok(()),
            _ => self.store.clean_files().await,
        }
    }
}

fn row(row: &Row<'_>) -> rusqlite::Result<SentRow> {
    let sources: Option<String> = row.get(16)?;
    let named = sources.map(|json| serde_json::from_str(&json).unwrap_or_default());
    Ok(SentRow {
        at: row.get(0)?,
        project: row.get(1)?,
        provider: row.get(2)?,
        model: row.get(3)?,
        place: row.get(4)?,
        is_local: row.get(5)?,
        purpose: row.get(6)?,
        requests: row.get(7)?,
        tokens: row.get(8)?,
        received: row.get(9)?,
        secrets: row.get(10)?,
        answered: row.get(11)?,
        memories: row.get(12)?,
        files: row.get(13)?,
        session: row.get(14)?,
        assistant: row.get(15)?,
        sources: named.map(|Named { memories, files }| Sources { memories, files }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::money::Money;
    use tiro_base::scope::TenantId;
    use tiro_store::{Matter, Parcel, Purpose, SpendLimits};

    fn planned(session: &str, file: &str) -> Planned {
        let sources = Sources { memories: vec!["m1".into()], files: vec![file.into()] };
        let matter = Matter {
            session: Some(session.into()),
            assistant: Some("o3".into()),
            ..Matter::of(Purpose::Consultation, sources)
        };
        Planned {
            project: "p".into(),
            provider: "o3".into(),
            model: "m".into(),
            most: Money(5),
            limits: SpendLimits::default(),
            until: 0,
            parcel: Parcel { matter, place: "api.example".into(), is_local: false, tokens: 100, secrets: 2 },
        }
    }

    fn spent(requests: i64, has_failed: bool) -> Spent {
        Spent { cost: Money(1), requests, input: 80 * requests, output: 9, has_failed }
    }

    async fn all(registry: &SqliteRegistry) -> Vec<SentRow> {
        registry.sent(SentFilter { limit: 99, ..SentFilter::default() }).await.unwrap().0
    }

    #[tokio::test]
    async fn a_request_is_listed_before_it_is_settled_and_says_then_how_it_ended() {
        let registry = SqliteRegistry::blank(&TenantId::new("o"), "sent-1").unwrap();
        let mut held = registry.reserve(planned("lease", "src/a.rs"), 10).await.unwrap();
        let open = all(&registry).await.remove(0);
        assert_eq!((open.at, open.requests, open.tokens, open.secrets, open.answered), (10, 1, 100, 2, None));
        assert_eq!((open.purpose.as_str(), open.session.as_deref()), ("consultation", Some("lease")));
        assert_eq!(open.sources.unwrap().files, ["src/a.rs"]);
        registry.reserve_again(&mut held, 11).await.unwrap();
        registry.note_sent_again(&held).await.unwrap();
        let again = all(&registry).await.remove(0);
        assert_eq!((again.requests, again.tokens, again.secrets), (3, 300, 6));
        registry.settle(held, spent(3, false)).await.unwrap();
        let done = all(&registry).await.remove(0);
        assert_eq!((done.tokens, done.received, done.secrets, done.answered), (240, 9, 6, Some(true)));
        let failed = registry.reserve(planned("lease", "src/b.rs"), 12).await.unwrap();
        registry.settle(failed, spent(1, true)).await.unwrap();
        assert_eq!(all(&registry).await[0].answered, Some(false));
        let unsent = registry.reserve(planned("lease", "src/c.rs"), 13).await.unwrap();
        registry.settle(unsent, spent(0, true)).await.unwrap();
        assert_eq!(all(&registry).await.len(), 2, "what never left is not listed");
        let filter = SentFilter { since: Some(12), limit: 1, ..SentFilter::default() };
        assert_eq!(registry.sent(filter).await.unwrap().1, 1);
        let filter = SentFilter { provider: Some("nobody".into()), limit: 1, ..SentFilter::default() };
        assert_eq!(registry.sent(filter).await.unwrap(), (Vec::new(), 0));
    }

    #[tokio::test]
    async fn the_oldest_rows_are_removed_by_number_and_by_bytes() {
        let registry = SqliteRegistry::blank(&TenantId::new("o"), "sent-2").unwrap();
        for n in 0..10 {
            let held = registry.reserve(planned("s", &format!("{n:0100}")), n).await.unwrap();
            registry.settle(held, spent(1, false)).await.unwrap();
        }
        let remove = async |rows, bytes| {
            let limits = (rows, bytes);
            let removed = move |connection: &Connection, _: &_| remove_oldest(connection, 10, limits, true);
            registry.store.write(registry.scope(), removed).await.unwrap();
            all(&registry).await.iter().map(|row| row.at).collect::<Vec<_>>()
        };
        assert_eq!(remove(5, 1 << 20).await, [9, 8, 7, 6, 5]);
        // The names of a row have some 130 bytes.
        assert_eq!(remove(99, 300).await, [9, 8]);
        assert_eq!(remove(99, 300).await, [9, 8]);
    }

    #[tokio::test]
    async fn names_of_a_purged_session_and_of_a_removed_project_go_and_counts_stay() {
        let registry = SqliteRegistry::blank(&TenantId::new("o"), "sent-3").unwrap();
        let id = ProjectId::parse("p").unwrap_or_else(ProjectId::owner_wide);
        for session in ["kept", "gone"] {
            let planned = Planned { project: id.as_str().into(), ..planned(session, "src/a.rs") };
            let held = registry.reserve(planned, 1).await.unwrap();
            registry.settle(held, spent(1, false)).await.unwrap();
        }
        registry.forget_sent(&id, &["gone".to_owned()]).await.unwrap();
        let rows = all(&registry).await;
        assert_eq!((&rows[0].session, &rows[0].assistant, &rows[0].sources), (&None, &None, &None));
        assert_eq!((rows[0].memories, rows[0].files, rows[0].tokens), (1, 1, 80));
        assert_eq!(rows[1].session.as_deref(), Some("kept"));
        registry.remove(&id).await.unwrap();
        assert!(all(&registry).await.iter().all(|row| row.session.is_none() && row.sources.is_none()));
    }
}
