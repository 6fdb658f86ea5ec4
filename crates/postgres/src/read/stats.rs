//! Reads counts of a store, durations of tool calls, and saved tokens.

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::size;
use crate::error::Result;
use crate::owners::is_named;
use crate::transactions::{Params, Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Kind, Millis};
use tiro_base::scope::Scope;
use tiro_store::{DayCount, Growth, KindCount, Measurement, Savings, Sizes, Stats};

/// Selects the sessions of the parts `$1` that changed a file, if a commit changed the same file within the next month.
const COMMITTED: &str = "SELECT DISTINCT m.owner, m.session FROM file_writes w
    JOIN memories m ON m.owner = w.owner AND m.seq = w.memory
    WHERE w.owner = ANY ($1) AND m.tombstoned_at IS NULL AND m.session IS NOT NULL AND EXISTS (
        SELECT FROM memory_paths p JOIN memories c ON c.owner = p.owner AND c.seq = p.memory
        WHERE p.owner = ANY ($1) AND p.path = w.path AND c.kind = 'commit' AND c.tombstoned_at IS NULL
            AND c.time BETWEEN w.time - 999 AND w.time + 2592000000)";

/// Selects the living commits of the parts `$1` since the first session began.
const COMMITS_SINCE: &str = "SELECT m.owner, m.seq FROM memories m
    WHERE m.owner = ANY ($1) AND m.kind = 'commit' AND m.tombstoned_at IS NULL
        AND m.time >= (SELECT min(f.time) FROM memories f WHERE f.owner = ANY ($1) AND f.session IS NOT NULL)";

/// The length of a week in milliseconds.
const WEEK: Millis = 7 * 24 * 60 * 60 * 1000;

impl PostgresStore {
    pub(crate) async fn sizes(&self, scope: &Scope) -> error::Result<Sizes> {
        read!(self, scope, tx => {
            let mut sizes = Sizes::default();
            // Derived memories repeat their sources, so only the sources are counted.
            let sql = "SELECT kind, count(*) FROM memories WHERE owner = ANY ($1) AND tombstoned_at IS NULL
                           AND (kind = 'message' OR provenance <> 'derived') GROUP BY kind";
            for row in tx.rows(sql, &[&tx.seen.parts]).await? {
                let count: i64 = row.try_get(1)?;
                match Kind::parse(row.try_get(0)?) {
                    Some(Kind::Commit) => sizes.commits += count,
                    Some(Kind::Message | Kind::Summary) => sizes.messages += count,
                    _ => sizes.notes += count,
                }
            }
            sizes.sessions = living_sessions(&tx).await?;
            let sql = "SELECT count(*) FROM stashed x JOIN memories m ON m.owner = x.owner AND m.seq = x.memory
                       WHERE x.owner = ANY ($1) AND m.tombstoned_at IS NULL";
            sizes.stashed = count(&tx, sql, &[&tx.seen.parts]).await?;
            Ok(sizes)
        })
    }

    pub(crate) async fn is_empty(&self, scope: &Scope) -> error::Result<bool> {
        read!(self, scope, tx => {
            let sql = "SELECT FROM memories WHERE owner = ANY ($1) AND tombstoned_at IS NULL LIMIT 1";
            Ok(!tx.exists(sql, &[&tx.seen.parts]).await?)
        })
    }

    pub(crate) async fn measure(
        &self,
        scope: &Scope,
        measurements: Vec<Measurement>,
        savings: Savings,
    ) -> error::Result<()> {
        let saved = Savings::COUNTERS.into_iter().zip([savings.answers, savings.whole, savings.sent]);
        let (counters, counts): (Vec<&str>, Vec<i64>) = saved.filter(|(_, count)| *count > 0).unzip();
        let names: Vec<&str> = measurements.iter().map(|each| each.name.as_str()).collect();
        let buckets: Vec<i64> = measurements.iter().map(|each| i64::from(each.bucket)).collect();
        let calls: Vec<i64> =
            measurements.iter().map(|each| i64::try_from(each.count).unwrap_or(i64::MAX)).collect();
        write!(self, scope, tx => {
            let owner = tx.seen.shared;
            if !counters.is_empty() {
                tx.execute(
                    "INSERT INTO counters (owner, name, count)
                     SELECT $1::bigint, u.name, u.count FROM unnest($2::text[], $3::bigint[]) u (name, count)
                     ON CONFLICT (owner, name) DO UPDATE SET count = counters.count + excluded.count",
                    &[&owner, &counters, &counts],
                )
                .await?;
            }
            if !names.is_empty() {
                tx.execute(
                    "INSERT INTO measurements (owner, name, bucket, count)
                     SELECT $1::bigint, u.name, u.bucket, sum(u.count)::bigint
                     FROM unnest($2::text[], $3::bigint[], $4::bigint[]) u (name, bucket, count) GROUP BY 2, 3
                     ON CONFLICT (owner, name, bucket) DO UPDATE SET count = measurements.count + excluded.count",
                    &[&owner, &names, &buckets, &calls],
                )
                .await?;
            }
            Ok(())
        })
    }

    pub(crate) async fn measurements(&self, scope: &Scope) -> error::Result<Vec<Measurement>> {
        read!(self, scope, tx => {
            let sql = "SELECT name, bucket, count FROM measurements WHERE owner = $1 ORDER BY name, bucket";
            let measurement = |row: &Row| {
                Ok(Measurement {
                    name: row.try_get(0)?,
                    bucket: u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or_default(),
                    count: size(row, 2)? as u64,
                })
            };
            tx.rows(sql, &[&tx.seen.shared]).await?.iter().map(measurement).collect()
        })
    }

    pub(crate) async fn savings(&self, scope: &Scope) -> error::Result<Savings> {
        read!(self, scope, tx => {
            let sql = "SELECT coalesce((SELECT count FROM counters WHERE owner = $1 AND name = $2), 0),
                           coalesce((SELECT count FROM counters WHERE owner = $1 AND name = $3), 0),
                           coalesce((SELECT count FROM counters WHERE owner = $1 AND name = $4), 0)";
            let [answers, whole, sent] = Savings::COUNTERS;
            let row = tx.only(sql, &[&tx.seen.shared, &answers, &whole, &sent]).await?;
            Ok(Savings { answers: row.try_get(0)?, whole: row.try_get(1)?, sent: row.try_get(2)? })
        })
    }

    pub(crate) async fn growth(&self, scope: &Scope) -> error::Result<Growth> {
        read!(self, scope, tx => {
            let sql = "SELECT time / 86400000 - (time % 86400000 < 0)::int AS day, kind, count(*), sum(tokens)::bigint
                       FROM memories WHERE owner = ANY ($1) AND tombstoned_at IS NULL GROUP BY 1, 2 ORDER BY 1, 2";
            let day = |row: &Row| -> Result<DayCount> {
                Ok(DayCount {
                    day: row.try_get(0)?,
                    kind: row.try_get(1)?,
                    memories: row.try_get(2)?,
                    tokens: row.try_get(3)?,
                })
            };
            let memories = tx.rows(sql, &[&tx.seen.parts]).await?.iter().map(day).collect::<Result<_>>()?;
            let sql = format!(
                "SELECT s.first_time / 86400000 - (s.first_time % 86400000 < 0)::int, count(*) FROM sessions s
                 WHERE s.owner = ANY ($1) AND s.memories > 0 AND {} GROUP BY 1 ORDER BY 1",
                is_named("$2")
            );
            let rows = tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine]).await?;
            let began = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
            Ok(Growth { memories, sessions: rows.iter().map(began).collect::<Result<_>>()? })
        })
    }

    /// Returns the counts. The size of the file is 0: a tenant's share of the tables is not known, and the size of the
    /// tables would tell a tenant about others.
    pub(crate) async fn stats(&self, scope: &Scope, now: Millis) -> error::Result<Stats> {
        read!(self, scope, tx => {
            let parts: Params<'_> = &[&tx.seen.parts];
            let sql = "SELECT kind, count(*), sum(octet_length(text))::bigint, sum(tokens)::bigint FROM memories
                       WHERE owner = ANY ($1) AND tombstoned_at IS NULL GROUP BY kind ORDER BY kind";
            let kind = |row: &Row| -> Result<KindCount> {
                Ok(KindCount {
                    kind: row.try_get(0)?,
                    memories: row.try_get(1)?,
                    bytes: row.try_get(2)?,
                    tokens: row.try_get(3)?,
                })
            };
            let kinds = tx.rows(sql, parts).await?.iter().map(kind).collect::<Result<_>>()?;
            let linked_commits = format!(
                "SELECT count(*) FROM ({COMMITS_SINCE}) c WHERE EXISTS (SELECT FROM commit_sessions l
                     WHERE l.owner = c.owner AND l.memory = c.seq AND l.session_owner = ANY ($1))"
            );
            let linked_sessions = format!(
                "SELECT count(*) FROM ({COMMITTED}) c WHERE EXISTS (SELECT FROM commit_sessions l
                     WHERE l.session_owner = c.owner AND l.session = c.session)"
            );
            let repeats = "SELECT count(*) - count(DISTINCT memory) FROM repeats WHERE owner = ANY ($1)";
            let tombstoned = "SELECT count(*) FROM memories WHERE owner = ANY ($1) AND tombstoned_at IS NOT NULL";
            let lately = "SELECT count(*) FROM memories
                          WHERE owner = ANY ($1) AND tombstoned_at IS NULL AND stored_at > $2";
            let week: Params<'_> = &[&tx.seen.parts, &now.saturating_sub(WEEK)];
            Ok(Stats {
                kinds,
                sessions: living_sessions(&tx).await?,
                embedded: count(&tx, "SELECT count(*) FROM vectors WHERE owner = ANY ($1)", parts).await?,
                pending: count(&tx, "SELECT count(*) FROM pending WHERE owner = ANY ($1)", parts).await?,
                tombstoned: count(&tx, tombstoned, parts).await?,
                file_bytes: 0,
                commits_since: count(&tx, &format!("SELECT count(*) FROM ({COMMITS_SINCE}) c"), parts).await?,
                commits_linked: count(&tx, &linked_commits, parts).await?,
                sessions_committed: count(&tx, &format!("SELECT count(*) FROM ({COMMITTED}) c"), parts).await?,
                sessions_linked: count(&tx, &linked_sessions, parts).await?,
                repeats: count(&tx, repeats, parts).await?,
                stored_lately: count(&tx, lately, week).await?,
            })
        })
    }
}

/// Returns the only number that a query returns.
async fn count(tx: &Transaction, sql: &str, params: Params<'_>) -> Result<i64> {
    Ok(tx.only(sql, params).await?.try_get(0)?)
}

/// Returns how many sessions with living memories the reader sees.
async fn living_sessions(tx: &Transaction) -> Result<i64> {
    let sql = format!(
        "SELECT count(*) FROM sessions s WHERE s.owner = ANY ($1) AND s.memories > 0 AND {}",
        is_named("$2")
    );
    count(tx, &sql, &[&tx.seen.parts, &tx.seen.mine]).await
}
