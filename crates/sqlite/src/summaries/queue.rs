//! The queue of summaries that wait for a provider, and the history of attempts.
//!
//! Extractive summaries aren't queued, because callers look for segments without one. An entry is taken with a lease.
//! If the process that took an entry is killed, another process can take the entry when the lease ends.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::keys::key;
use crate::read::parts;
use crate::read::segments::{find_session, required_session};
use tiro_base::error;
use tiro_base::memory::{Level, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::queue::{self, Next, QueueEntry, QueueState};
use tiro_store::{AskedBy, Attempt, Pace, QueueCounts, QueueKey, Queued, Wanted};

/// The columns of an entry `q` on which the next step for the entry depends.
const DECIDING: &str = "q.state, q.by_user, q.tries, q.not_before, q.expires";

impl SqliteStore {
    pub(crate) async fn enqueue(
        &self,
        scope: &Scope,
        wanted: Wanted,
        not_before: Millis,
        now: Millis,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let session = required_session(connection, scope, &wanted.session)?;
            if wanted.asked_by == AskedBy::Program {
                connection
                    .prepare_cached(
                        "DELETE FROM summary_queue WHERE session = ?1 AND level = ?2 AND first = ?3 AND last < ?4
                             AND by_user = 0 AND state <> 'processing'",
                    )?
                    .execute((session, wanted.level.as_str(), wanted.first, wanted.last))?;
            }
            let sql = format!(
                "SELECT {DECIDING} FROM summary_queue q
                 WHERE session = ?1 AND first = ?2 AND last = ?3 AND level = ?4 AND provider = ?5"
            );
            let (level, is_users) = (wanted.level.as_str(), wanted.asked_by == AskedBy::User);
            let known = connection
                .prepare_cached(&sql)?
                .query_row((session, wanted.first, wanted.last, level, &wanted.provider), |row| entry(row, 0))
                .optional()?;
            let next = queue::requested(known, is_users, not_before);
            connection
                .prepare_cached(
                    "INSERT INTO summary_queue (session, level, first, last, provider, by_user, state, tries,
                         not_before, queued_at, changed_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
                     ON CONFLICT (session, first, last, level, provider) DO UPDATE SET
                         by_user = ?6, state = ?7, tries = ?8, not_before = ?9, changed_at = ?10",
                )?
                .execute(params![
                    session,
                    level,
                    wanted.first,
                    wanted.last,
                    wanted.provider,
                    next.by_user,
                    next.state.as_str(),
                    next.tries,
                    next.not_before,
                    now
                ])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn is_queue_due(&self, scope: &Scope, now: Millis) -> error::Result<bool> {
        self.read(scope, move |inner, connection, scope| {
            let clock = inner.clock.now();
            let mut statement = connection.prepare_cached(&open_entries())?;
            let mut rows = statement.query(parts::both(scope))?;
            while let Some(row) = rows.next()? {
                if queue::next(entry(row, 0)?, now, clock) != Next::Wait {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    pub(crate) async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> error::Result<Option<Queued>> {
        let holder = holder.to_owned();
        let store = self.clone();
        self.write(scope, move |connection, scope| {
            let clock = store.inner.clock.now();
            let Some(queued) = next_entry(connection, scope, now, clock)? else { return Ok(None) };
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = 'processing', holder = ?2, expires = ?3, tries = tries + 1,
                         changed_at = ?4 WHERE seq = ?1",
                )?
                .execute((queued.key.in_store(), &holder, clock.saturating_add(lease), now))?;
            Ok(Some(queued))
        })
        .await
    }

    pub(crate) async fn finish(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        now: Millis,
    ) -> error::Result<()> {
        let holder = holder.to_owned();
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = 'completed', holder = NULL, error = NULL, changed_at = ?3
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner IN (?4, ?5))",
                )?
                .execute((entry.in_store(), holder, now, scope.tenant.as_str(), parts::private(scope)))?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn fail(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        error: &str,
        not_before: Millis,
        now: Millis,
    ) -> error::Result<()> {
        let (holder, error) = (holder.to_owned(), error.to_owned());
        self.write(scope, move |connection, scope| {
            let tries: Option<i64> = connection
                .prepare_cached(
                    "SELECT tries FROM summary_queue
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner IN (?3, ?4))",
                )?
                .query_row((entry.in_store(), holder, scope.tenant.as_str(), parts::private(scope)), |row| row.get(0))
                .optional()?;
            let Some(tries) = tries else { return Ok(()) };
            connection
                .prepare_cached(
                    "UPDATE summary_queue SET state = ?2, holder = NULL, error = ?3, not_before = ?4, changed_at = ?5
                     WHERE seq = ?1",
                )?
                .execute(params![entry.in_store(), queue::after_failure(tries).as_str(), error, not_before, now])?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn drop_queued(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
    ) -> error::Result<()> {
        let holder = holder.to_owned();
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "DELETE FROM summary_queue
                     WHERE seq = ?1 AND holder = ?2 AND session IN (SELECT seq FROM sessions WHERE owner IN (?3, ?4))",
                )?
                .execute((entry.in_store(), holder, scope.tenant.as_str(), parts::private(scope)))?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn queue_counts(&self, scope: &Scope) -> error::Result<QueueCounts> {
        self.read(scope, |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT q.state, count(*) FROM summary_queue q JOIN sessions s ON s.seq = q.session
                 WHERE s.owner = ?1 GROUP BY q.state",
            )?;
            let mut rows = statement.query([scope.tenant.as_str()])?;
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

    pub(crate) async fn attempt(&self, scope: &Scope, attempt: Attempt) -> error::Result<()> {
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

    pub(crate) async fn paces(
        &self,
        scope: &Scope,
        provider: String,
        model: String,
        most: usize,
    ) -> error::Result<Vec<Pace>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT a.input_tokens, a.output_tokens, a.took_ms
                 FROM summary_attempts a JOIN sessions s ON s.seq = a.session
                 WHERE s.owner = ?1 AND a.provider = ?2 AND a.model = ?3 ORDER BY a.at DESC, a.seq DESC LIMIT ?4",
            )?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = statement.query_map((scope.tenant.as_str(), provider, model, most), |row| {
                Ok(Pace { input: row.get(0)?, output: row.get(1)?, took: row.get(2)? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

/// Returns the statement that reads the pending and processing entries of an owner. Entries that the user asked for
/// come first, and among entries of the same kind, the oldest.
fn open_entries() -> String {
    format!(
        "SELECT {DECIDING}, q.seq, s.name, q.level, q.first, q.last, q.provider
         FROM summary_queue q JOIN sessions s ON s.seq = q.session
         WHERE s.owner IN (?1, ?2) AND q.state IN ('pending', 'processing') ORDER BY q.by_user DESC, q.seq"
    )
}

/// Returns the next entry of the scope to take. Gives up the entries before this entry that were tried too often.
fn next_entry(connection: &Connection, scope: &Scope, now: Millis, clock: Millis) -> Result<Option<Queued>> {
    let mut statement = connection.prepare_cached(&open_entries())?;
    let mut rows = statement.query(parts::both(scope))?;
    while let Some(row) = rows.next()? {
        match queue::next(entry(row, 0)?, now, clock) {
            Next::Wait => {}
            Next::GiveUp => {
                connection
                    .prepare_cached(
                        "UPDATE summary_queue SET state = 'failed', holder = NULL, changed_at = ?2 WHERE seq = ?1",
                    )?
                    .execute((row.get::<_, i64>(5)?, now))?;
            }
            Next::Take => {
                let queued = queued(row)?;
                if find_session(connection, scope, &queued.wanted.session)?.is_some() {
                    return Ok(Some(queued));
                }
            }
        }
    }
    Ok(None)
}

/// Reads the columns [`DECIDING`] of an entry, which begin at `column`.
fn entry(row: &Row<'_>, column: usize) -> rusqlite::Result<QueueEntry> {
    Ok(QueueEntry {
        state: columns::word(row, column, QueueState::parse)?,
        by_user: row.get(column + 1)?,
        tries: row.get(column + 2)?,
        not_before: row.get(column + 3)?,
        expires: row.get(column + 4)?,
    })
}

fn queued(row: &Row<'_>) -> rusqlite::Result<Queued> {
    let QueueEntry { by_user, tries, .. } = entry(row, 0)?;
    let wanted = Wanted {
        session: columns::word(row, 6, SessionId::parse)?,
        level: columns::word(row, 7, Level::parse)?,
        first: row.get(8)?,
        last: row.get(9)?,
        provider: row.get(10)?,
        asked_by: if by_user { AskedBy::User } else { AskedBy::Program },
    };
    Ok(Queued { key: key(row, 5)?, wanted, tries })
}
