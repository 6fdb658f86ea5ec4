//! Summaries that wait for a provider, and the history of those that were tried.
//!
//! What needs no provider isn't queued: which segments lack a summary can be seen. An entry is taken under a lease that
//! expires, so one that a killed process held is taken again.

use rusqlite::{Row, params};

use crate::error::Result;
use crate::memory::{Level, Millis};
use crate::scope::{Scope, SessionId};
use crate::store::sqlite::read::memories;
use crate::store::sqlite::read::segments::{find_session, required_session};
use crate::store::{AskedBy, Attempt, QueueCounts, QueueKey, Queued, Store, Wanted};

/// How far ahead a date may lie before it is taken for one of a clock that was wrong.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;

/// How often an entry is tried before it counts as failed.
const TRIES: i64 = 5;

/// Which entries are due at `?2`. A date further ahead than `?3` was noted by a clock that was wrong.
const DUE: &str = "((q.state = 'pending' AND (q.not_before <= ?2 OR q.not_before > ?2 + ?3))
    OR (q.state = 'processing' AND (q.expires <= ?2 OR q.expires > ?2 + ?3)))";

impl Store {
    /// Adds to the queue what is to be made from `not_before` on; what is there already, also made or failed, waits anew,
    /// and comes first from now on if the user wants it. What nobody wants yet makes way for what is of more of the
    /// session.
    ///
    /// Errors where the scope has no such session.
    pub async fn enqueue(
        &self,
        scope: &Scope,
        wanted: Wanted,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        self.write(scope, move |connection, scope| {
            let session = required_session(connection, scope, &wanted.session)?;
            if wanted.asked_by == AskedBy::Nobody {
                connection
                    .prepare_cached(
                        "DELETE FROM summary_queue WHERE session = ?1 AND level = ?2 AND first = ?3 AND last < ?4
                             AND by_user = 0 AND state <> 'processing'",
                    )?
                    .execute((session, wanted.level.as_str(), wanted.first, wanted.last))?;
            }
            connection
                .prepare_cached(
                    "INSERT INTO summary_queue (session, level, first, last, provider, by_user, state, not_before,
                         queued_at, changed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?8, ?7, ?7)
                     ON CONFLICT (session, first, last, level, provider) DO UPDATE SET
                         by_user = max(by_user, ?6),
                         tries = iif(state IN ('completed', 'failed'), 0, tries),
                         not_before = CASE state WHEN 'processing' THEN not_before
                             WHEN 'pending' THEN iif(?6, min(not_before, ?8), not_before) ELSE ?8 END,
                         changed_at = ?7,
                         state = iif(state = 'processing', state, 'pending')",
                )?
                .execute(params![
                    session,
                    wanted.level.as_str(),
                    wanted.first,
                    wanted.last,
                    wanted.provider,
                    wanted.asked_by == AskedBy::User,
                    now,
                    not_before
                ])?;
            Ok(())
        })
        .await
    }

    /// Returns whether an entry is due, so that nothing is written where there is nothing to do.
    pub async fn is_queue_due(&self, scope: &Scope, now: Millis) -> Result<bool> {
        self.read(scope, move |_, connection, scope| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM summary_queue q JOIN sessions s ON s.seq = q.session
                 WHERE s.owner = ?1 AND {DUE})"
            );
            Ok(connection
                .prepare_cached(&sql)?
                .query_row((scope.owner.as_str(), now, FARTHEST), |row| row.get(0))?)
        })
        .await
    }

    /// Takes the next entry that is due for `holder`, the user's first, then the oldest; `None` where none is.
    ///
    /// It is the holder's for `lease` milliseconds, to be ended by [`Store::finish`] or [`Store::fail`].
    pub async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> Result<Option<Queued>> {
        let holder = holder.to_owned();
        self.write(scope, move |connection, scope| {
            // Whoever held it ended in the middle of its last try.
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = 'failed', holder = NULL, changed_at = ?2
                     WHERE state = 'processing' AND expires <= ?2 AND tries >= ?3
                         AND session IN (SELECT seq FROM sessions WHERE owner = ?1)",
                )?
                .execute((scope.owner.as_str(), now, TRIES))?;
            let sql = format!(
                "SELECT q.seq, s.name, q.level, q.first, q.last, q.provider, q.by_user, q.tries
                 FROM summary_queue q JOIN sessions s ON s.seq = q.session
                 WHERE s.owner = ?1 AND {DUE} ORDER BY q.by_user DESC, q.seq"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query((scope.owner.as_str(), now, FARTHEST))?;
            while let Some(row) = rows.next()? {
                let queued = queued(row)?;
                if find_session(connection, scope, &queued.wanted.session)?.is_none() {
                    continue;
                }
                connection
                    .prepare_cached(
                        "UPDATE summary_queue SET state = 'processing', holder = ?2, expires = ?3, tries = tries + 1,
                             changed_at = ?4 WHERE seq = ?1",
                    )?
                    .execute((queued.seq, &holder, now + lease, now))?;
                return Ok(Some(queued));
            }
            Ok(None)
        })
        .await
    }

    /// Notes that the entry was made; does nothing where another process has taken it over.
    pub async fn finish(&self, scope: &Scope, seq: QueueKey, holder: &str, now: Millis) -> Result<()> {
        let holder = holder.to_owned();
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = 'completed', holder = NULL, error = NULL, changed_at = ?3
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner = ?4)",
                )?
                .execute((seq, holder, now, scope.owner.as_str()))?;
            Ok(())
        })
        .await
    }

    /// Notes that the entry was tried in vain: it waits until `not_before`, or is given up after five tries. Does nothing
    /// where another process has taken it over.
    pub async fn fail(
        &self,
        scope: &Scope,
        seq: QueueKey,
        holder: &str,
        error: &str,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        let (holder, error) = (holder.to_owned(), error.to_owned());
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = iif(tries < ?6, 'pending', 'failed'), holder = NULL, error = ?3,
                         not_before = ?4, changed_at = ?5
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner = ?7)",
                )?
                .execute(params![seq, holder, error, not_before, now, TRIES, scope.owner.as_str()])?;
            Ok(())
        })
        .await
    }

    /// Takes the entry out of the queue: there is nothing left to make it of. Does nothing where another process has taken
    /// it over.
    pub async fn drop_queued(&self, scope: &Scope, seq: QueueKey, holder: &str) -> Result<()> {
        let holder = holder.to_owned();
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "DELETE FROM summary_queue
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner = ?3)",
                )?
                .execute((seq, holder, scope.owner.as_str()))?;
            Ok(())
        })
        .await
    }

    /// Returns how many entries of the owner's queue are in which state.
    pub async fn queue_counts(&self, scope: &Scope) -> Result<QueueCounts> {
        self.read(scope, |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT q.state, count(*) FROM summary_queue q JOIN sessions s ON s.seq = q.session
                 WHERE s.owner = ?1 GROUP BY q.state",
            )?;
            let mut rows = statement.query([scope.owner.as_str()])?;
            let mut counts = QueueCounts::default();
            while let Some(row) = rows.next()? {
                let count = row.get(1)?;
                match row.get::<_, String>(0)?.as_str() {
                    "pending" => counts.pending = count,
                    "processing" => counts.processing = count,
                    "completed" => counts.completed = count,
                    _ => counts.failed = count,
                }
            }
            Ok(counts)
        })
        .await
    }

    /// Adds to the history of tries; where the session is gone by now there is nothing to add to.
    pub async fn attempt(&self, scope: &Scope, attempt: Attempt) -> Result<()> {
        self.write(scope, move |connection, scope| {
            let Some(session) = find_session(connection, scope, &attempt.session)? else { return Ok(()) };
            connection
                .prepare_cached(
                    "INSERT INTO summary_attempts (session, level, first, last, provider, model, input_tokens,
                         output_tokens, cost_micros, took_ms, quality, error, at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                )?
                .execute(params![
                    session,
                    attempt.level.as_str(),
                    attempt.first,
                    attempt.last,
                    attempt.provider,
                    attempt.model,
                    attempt.input_tokens,
                    attempt.output_tokens,
                    attempt.cost_micros,
                    attempt.took_ms,
                    attempt.quality,
                    attempt.error,
                    attempt.at
                ])?;
            Ok(())
        })
        .await
    }

    /// Returns up to `limit` tries at summaries of the session, the latest first.
    pub async fn attempts(&self, scope: &Scope, session: &SessionId, limit: usize) -> Result<Vec<Attempt>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(row) = find_session(connection, scope, &session)? else { return Ok(Vec::new()) };
            let mut statement = connection.prepare_cached(
                "SELECT level, first, last, provider, model, input_tokens, output_tokens, cost_micros, took_ms, quality,
                     error, at FROM summary_attempts WHERE session = ?1 ORDER BY seq DESC LIMIT ?2",
            )?;
            let rows = statement.query_map((row, limit as i64), |row| {
                Ok(Attempt {
                    session: session.clone(),
                    level: memories::word(row, 0, Level::parse)?,
                    first: row.get(1)?,
                    last: row.get(2)?,
                    provider: row.get(3)?,
                    model: row.get(4)?,
                    input_tokens: row.get(5)?,
                    output_tokens: row.get(6)?,
                    cost_micros: row.get(7)?,
                    took_ms: row.get(8)?,
                    quality: row.get(9)?,
                    error: row.get(10)?,
                    at: row.get(11)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    let wanted = Wanted {
        session: memories::word(row, 1, SessionId::parse)?,
        level: memories::word(row, 2, Level::parse)?,
        first: row.get(3)?,
        last: row.get(4)?,
        provider: row.get(5)?,
        asked_by: if row.get(6)? { AskedBy::User } else { AskedBy::Nobody },
    };
    Ok(Queued { seq: row.get(0)?, wanted, tries: row.get(7)? })
}
