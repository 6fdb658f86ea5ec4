//! Reads counts of a store, durations of tool calls, and saved tokens.

use rusqlite::OptionalExtension;

use crate::SqliteStore;
use crate::error::Result;
use crate::keys::key;
use crate::write::pending::pending;
use tiro_base::error;
use tiro_base::memory::{Kind, Level, Millis};
use tiro_base::scope::Scope;
use tiro_store::{
    DayCount, Growth, KindCount, Measurement, Savings, SegmentRow, Sizes, Stats, SummarisedSegment,
};

/// Counts an owner's sessions with living memories.
const LIVING_SESSIONS: &str = "SELECT count(*) FROM sessions WHERE owner = ?1 AND memories > 0";

/// Selects an owner's sessions that changed a file, if a commit changed the same file within the next month.
const COMMITTED: &str =
    "SELECT DISTINCT m.session FROM file_writes w CROSS JOIN memories m ON m.seq = w.memory
    WHERE m.owner = ?1 AND m.tombstoned_at IS NULL AND m.session IS NOT NULL AND EXISTS (
        SELECT 1 FROM memory_paths p CROSS JOIN memories c ON c.seq = p.memory
        WHERE p.path = w.path AND c.owner = m.owner AND c.kind = 'commit' AND c.tombstoned_at IS NULL
            AND c.time BETWEEN w.time - 999 AND w.time + 2592000000)";

/// Counts an owner's living commits since the owner's first session began. The day on which it began is counted
/// memory by memory, and later days by their counts.
const COMMITS_SINCE: &str = "WITH first (time) AS (
        SELECT min(time) FROM memories WHERE owner = ?1 AND session IS NOT NULL),
    began (time, day) AS (SELECT time, time / 86400000 - (time % 86400000 < 0) FROM first)
    SELECT (SELECT coalesce(sum(c.memories), 0) FROM memory_counts c
            WHERE c.owner = ?1 AND c.kind = 'commit' AND c.day > (SELECT day FROM began))
        + (SELECT count(*) FROM memories WHERE owner = ?1 AND kind = 'commit' AND tombstoned_at IS NULL
            AND time >= (SELECT time FROM began) AND time < ((SELECT day FROM began) + 1) * 86400000)";

/// Counts those of the commits in [`COMMITS_SINCE`] that are linked to a session.
const COMMITS_LINKED: &str = "SELECT count(*) FROM memories
    WHERE owner = ?1 AND kind = 'commit' AND tombstoned_at IS NULL
        AND time >= (SELECT min(time) FROM memories WHERE owner = ?1 AND session IS NOT NULL)
        AND seq IN (SELECT memory FROM commit_sessions)";

/// The length of a week in milliseconds.
const WEEK: Millis = 7 * 24 * 60 * 60 * 1000;

impl SqliteStore {
    pub(crate) async fn sizes(&self, scope: &Scope) -> error::Result<Sizes> {
        self.read(scope, |_, connection, scope| {
            let mut sizes = Sizes::default();
            let mut statement = connection.prepare_cached(
                // Derived memories repeat their sources, so only the sources are counted.
                "SELECT kind, sum(iif(kind = 'message', memories, memories - derived)) FROM memory_counts
                 WHERE owner = ?1 GROUP BY kind",
            )?;
            let mut rows = statement.query([scope.tenant.as_str()])?;
            while let Some(row) = rows.next()? {
                let count: i64 = row.get(1)?;
                match Kind::parse(&row.get::<_, String>(0)?) {
                    Some(Kind::Commit) => sizes.commits += count,
                    Some(Kind::Message | Kind::Summary) => sizes.messages += count,
                    _ => sizes.notes += count,
                }
            }
            sizes.sessions = connection
                .prepare_cached(LIVING_SESSIONS)?
                .query_row([scope.tenant.as_str()], |row| row.get(0))?;
            sizes.stashed = connection
                .prepare_cached("SELECT coalesce(sum(memories), 0) FROM stash_groups WHERE owner = ?1")?
                .query_row([scope.tenant.as_str()], |row| row.get(0))?;
            Ok(sizes)
        })
        .await
    }

    pub(crate) async fn is_empty(&self, scope: &Scope) -> error::Result<bool> {
        self.read(scope, |_, connection, scope| {
            let sql = "SELECT NOT EXISTS (SELECT 1 FROM memories WHERE owner = ?1 AND tombstoned_at IS NULL)";
            Ok(connection.prepare_cached(sql)?.query_row([scope.tenant.as_str()], |row| row.get(0))?)
        })
        .await
    }

    pub(crate) async fn measure(
        &self,
        scope: &Scope,
        measurements: Vec<Measurement>,
        savings: Savings,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let saved = [savings.answers, savings.whole, savings.sent];
            for (name, count) in Savings::COUNTERS.into_iter().zip(saved).filter(|(_, count)| *count > 0) {
                connection
                    .prepare_cached(
                        "INSERT INTO counters (owner, name, count) VALUES (?1, ?2, ?3)
                         ON CONFLICT DO UPDATE SET count = count + ?3",
                    )?
                    .execute((scope.tenant.as_str(), name, count))?;
            }
            for each in measurements {
                connection
                    .prepare_cached(
                        "INSERT INTO measurements (owner, name, bucket, count) VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT DO UPDATE SET count = count + ?4",
                    )?
                    .execute((scope.tenant.as_str(), each.name, each.bucket, each.count as i64))?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn measurements(&self, scope: &Scope) -> error::Result<Vec<Measurement>> {
        self.read(scope, |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT name, bucket, count FROM measurements WHERE owner = ?1 ORDER BY name, bucket",
            )?;
            let rows = statement.query_map([scope.tenant.as_str()], |row| {
                Ok(Measurement {
                    name: row.get(0)?,
                    bucket: row.get(1)?,
                    count: row.get::<_, i64>(2)? as u64,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn savings(&self, scope: &Scope) -> error::Result<Savings> {
        self.read(scope, |_, connection, scope| {
            let mut statement =
                connection.prepare_cached("SELECT count FROM counters WHERE owner = ?1 AND name = ?2")?;
            let mut counted = |name: &str| -> Result<i64> {
                let counted =
                    statement.query_row((scope.tenant.as_str(), name), |row| row.get(0)).optional()?;
                Ok(counted.unwrap_or(0))
            };
            let [answers, whole, sent] = Savings::COUNTERS;
            Ok(Savings { answers: counted(answers)?, whole: counted(whole)?, sent: counted(sent)? })
        })
        .await
    }

    pub(crate) async fn summarised_segments(&self, scope: &Scope) -> error::Result<Vec<SummarisedSegment>> {
        self.read(scope, |_, connection, scope| {
            let tokens = |level: Level| {
                format!(
                    "(SELECT u.tokens FROM summaries u WHERE u.session = g.session AND u.first = g.first
                      AND u.last = g.last AND u.level = '{level}' ORDER BY u.version DESC LIMIT 1)"
                )
            };
            let [brief, standard, detailed] = [Level::Brief, Level::Standard, Level::Detailed].map(tokens);
            let sql = format!(
                "SELECT g.session, g.number, g.first, g.last, g.messages, g.tokens, {brief}, {standard}, {detailed}
                 FROM segments g JOIN sessions s ON s.seq = g.session WHERE s.owner = ?1 AND g.messages > 0
                 ORDER BY g.session, g.number"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([scope.tenant.as_str()], |row| {
                Ok(SummarisedSegment {
                    session: key(row, 0)?,
                    segment: SegmentRow {
                        number: row.get(1)?,
                        first: row.get(2)?,
                        last: row.get(3)?,
                        messages: row.get(4)?,
                        tokens: row.get(5)?,
                    },
                    summaries: [row.get(6)?, row.get(7)?, row.get(8)?],
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn growth(&self, scope: &Scope) -> error::Result<Growth> {
        self.read(scope, |_, connection, scope| {
            let owner = scope.tenant.as_str();
            let mut statement = connection.prepare_cached(
                "SELECT day, kind, sum(memories), sum(tokens) FROM memory_counts WHERE owner = ?1
                 GROUP BY day, kind HAVING sum(memories) > 0 ORDER BY day, kind",
            )?;
            let memories = statement.query_map([owner], |row| {
                Ok(DayCount {
                    day: row.get(0)?,
                    kind: row.get(1)?,
                    memories: row.get(2)?,
                    tokens: row.get(3)?,
                })
            })?;
            let memories = memories.collect::<Result<_, _>>()?;
            let mut statement = connection.prepare_cached(
                "SELECT first_time / 86400000 - (first_time % 86400000 < 0), count(*) FROM sessions
                 WHERE owner = ?1 AND memories > 0 GROUP BY 1 ORDER BY 1",
            )?;
            let sessions = statement.query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(Growth { memories, sessions: sessions.collect::<Result<_, _>>()? })
        })
        .await
    }

    pub(crate) async fn stats(&self, scope: &Scope, now: Millis) -> error::Result<Stats> {
        self.read(scope, move |inner, connection, scope| {
            let owner = scope.tenant.as_str();
            let mut statement = connection.prepare_cached(
                "SELECT kind, sum(memories), sum(bytes), sum(tokens) FROM memory_counts
                 WHERE owner = ?1 GROUP BY kind HAVING sum(memories) > 0 ORDER BY kind",
            )?;
            let kinds = statement.query_map([owner], |row| {
                Ok(KindCount {
                    kind: row.get(0)?,
                    memories: row.get(1)?,
                    bytes: row.get(2)?,
                    tokens: row.get(3)?,
                })
            })?;
            let kinds: Vec<KindCount> = kinds.collect::<Result<_, _>>()?;
            let count = |sql: &str| -> Result<i64> {
                Ok(connection.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?)
            };
            let wal = inner.path.with_extension("db-wal");
            let size = |path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            Ok(Stats {
                kinds,
                sessions: count(LIVING_SESSIONS)?,
                embedded: count("SELECT coalesce(sum(embedded), 0) FROM owner_counts WHERE owner = ?1")?,
                pending: pending(connection, scope)? as i64,
                tombstoned: count("SELECT coalesce(sum(forgotten), 0) FROM memory_counts WHERE owner = ?1")?,
                file_bytes: size(&inner.path) + size(&wal),
                commits_since: count(COMMITS_SINCE)?,
                commits_linked: count(COMMITS_LINKED)?,
                sessions_committed: count(&format!("SELECT count(*) FROM ({COMMITTED})"))?,
                sessions_linked: count(&format!(
                    "SELECT count(*) FROM ({COMMITTED}) WHERE session IN (SELECT session FROM commit_sessions)"
                ))?,
                repeats: count("SELECT coalesce(sum(repeats), 0) FROM owner_counts WHERE owner = ?1")?,
                stored_lately: connection
                    .prepare_cached(
                        "SELECT coalesce(sum(memories), 0) FROM stored_counts WHERE owner = ?1 AND stored_at > ?2",
                    )?
                    .query_row((owner, now - WEEK), |row| row.get(0))?,
            })
        })
        .await
    }
}
