//! Finds expired rows and sessions without recent messages, and counts summaries.
//!
//! Memories don't expire by themselves. Memories are kept until the user forgets them, unless the user configures a
//! maximum age.

use rusqlite::{Connection, params};

use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::{Level, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Expired, LeftSession, LevelCount};

/// The condition that a later version of a summary exists.
const SUPERSEDED: &str = "EXISTS (SELECT 1 FROM summaries o WHERE o.session = summaries.session
    AND o.first = summaries.first AND o.last = summaries.last AND o.level = summaries.level
    AND o.version > summaries.version)";

impl SqliteStore {
    pub(crate) async fn expired(&self, scope: &Scope, now: Millis, before: Millis) -> error::Result<Expired> {
        self.read(scope, move |_, connection, scope| count(connection, scope, now, before)).await
    }

    pub(crate) async fn remove_expired(
        &self,
        scope: &Scope,
        now: Millis,
        before: Millis,
    ) -> error::Result<Expired> {
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            let expired = count(connection, scope, now, before)?;
            connection.execute(
                "DELETE FROM context_cache WHERE owner = ?1 AND expires <= ?2",
                params![parts::own(scope), now],
            )?;
            connection.execute(
                "DELETE FROM summary_queue WHERE state IN ('completed', 'failed') AND changed_at < ?2
                     AND session IN (SELECT seq FROM sessions WHERE owner IN (?1, ?3))",
                params![shared, before, mine],
            )?;
            connection.execute(
                &format!("DELETE FROM summaries WHERE owner IN (?1, ?3) AND made_at < ?2 AND {SUPERSEDED}"),
                params![shared, before, mine],
            )?;
            Ok(expired)
        })
        .await
    }

    pub(crate) async fn left_sessions(
        &self,
        scope: &Scope,
        before: Millis,
    ) -> error::Result<Vec<LeftSession>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT s.name, count(*), max(m.time) FROM sessions s JOIN memories m ON m.session = s.seq
                 WHERE s.owner = ?1 AND m.tombstoned_at IS NULL
                     AND s.seq NOT IN (SELECT session FROM commit_sessions)
                 GROUP BY s.seq
                 HAVING max(m.time) < ?2 AND max(m.marked) = 0 AND sum(m.head_sha IN (SELECT sha FROM commit_parents)) IS NOT TRUE
                 ORDER BY max(m.time), s.name",
            )?;
            let rows = statement.query_map((scope.tenant.as_str(), before), |row| {
                Ok(LeftSession {
                    session: columns::word(row, 0, SessionId::parse)?,
                    memories: row.get(1)?,
                    last: row.get(2)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn summary_counts(&self, scope: &Scope) -> error::Result<Vec<LevelCount>> {
        self.read(scope, |_, connection, scope| {
            let sql = format!(
                "SELECT level, provider, count(*), sum(tokens), sum(coalesce((SELECT g.tokens FROM segments g
                     WHERE g.session = summaries.session AND g.number = summaries.segment),
                     (SELECT sum(m.tokens) FROM memories m WHERE m.session = summaries.session
                      AND m.ordinal BETWEEN summaries.first AND summaries.last AND m.tombstoned_at IS NULL)))
                 FROM summaries WHERE owner = ?1 AND NOT {SUPERSEDED} GROUP BY level, provider ORDER BY provider"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([scope.tenant.as_str()], |row| {
                Ok(LevelCount {
                    level: columns::word(row, 0, Level::parse)?,
                    provider: row.get(1)?,
                    summaries: row.get(2)?,
                    tokens: row.get(3)?,
                    source_tokens: row.get::<_, Option<i64>>(4)?.unwrap_or(0),
                })
            })?;
            let mut counts: Vec<LevelCount> = rows.collect::<Result<_, _>>()?;
            counts.sort_by_key(|count| count.level);
            Ok(counts)
        })
        .await
    }
}

fn count(connection: &Connection, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
    let [shared, mine] = parts::both(scope);
    let (answers, answer_bytes) = connection
        .prepare_cached(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM context_cache WHERE owner = ?1 AND expires <= ?2",
        )?
        .query_row((parts::own(scope), now), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let in_state = |state: &str| -> Result<i64> {
        Ok(connection
            .prepare_cached(
                "SELECT count(*) FROM summary_queue q JOIN sessions s ON s.seq = q.session
                 WHERE s.owner IN (?1, ?4) AND q.state = ?2 AND q.changed_at < ?3",
            )?
            .query_row((&shared, state, before, &mine), |row| row.get(0))?)
    };
    let superseded = connection
        .prepare_cached(&format!(
            "SELECT count(*) FROM summaries WHERE owner IN (?1, ?3) AND made_at < ?2 AND {SUPERSEDED}"
        ))?
        .query_row((&shared, before, &mine), |row| row.get(0))?;
    Ok(Expired {
        answers,
        answer_bytes,
        made: in_state("completed")?,
        given_up: in_state("failed")?,
        superseded,
    })
}
