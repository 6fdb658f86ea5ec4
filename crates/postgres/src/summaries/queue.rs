//! The queue of summaries that wait for a provider, and the history of attempts.
//!
//! Extractive summaries aren't queued, because callers look for segments without one. An entry is taken with a lease.
//! If the process that took an entry is killed, another process can take the entry when the lease ends.

use tokio_postgres::Row;

use super::admitted;
use crate::PostgresStore;
use crate::columns::{self, number};
use crate::error::Result;
use crate::owners::{SessionRef, is_named};
use crate::read::find::{find_session, required_session};
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Level, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::queue::{self, Next, QueueEntry, QueueState};
use tiro_store::{AskedBy, Attempt, Pace, QueueCounts, QueueKey, Queued, Wanted};

/// The columns of an entry `q` on which the next step for the entry depends.
const DECIDING: &str = "q.state, q.by_user, q.tries, q.not_before, q.expires";

/// How many entries are looked at together. Arbitrary: the first that is due is mostly among the first.
const PAGE: usize = 200;

impl PostgresStore {
    pub(crate) async fn enqueue(
        &self,
        scope: &Scope,
        wanted: Wanted,
        not_before: Millis,
        now: Millis,
    ) -> error::Result<()> {
        let Wanted { first, last, provider, .. } = &wanted;
        let (level, is_users) = (wanted.level.as_str(), wanted.asked_by == AskedBy::User);
        write!(self, scope, tx => {
            let SessionRef { owner, seq } = required_session(&tx, scope, &wanted.session).await?;
            if !is_users {
                tx.execute(
                    "DELETE FROM summary_queue WHERE owner = $1 AND session = $2 AND level = $3 AND first = $4
                         AND last < $5 AND NOT by_user AND state <> 'processing'",
                    &[&owner, &seq, &level, first, last],
                )
                .await?;
            }
            let sql = format!(
                "SELECT {DECIDING} FROM summary_queue q WHERE q.owner = $1 AND q.session = $2 AND q.first = $3
                     AND q.last = $4 AND q.level = $5 AND q.provider = $6"
            );
            let known = tx.row(&sql, &[&owner, &seq, first, last, &level, provider]).await?;
            let known = known.as_ref().map(entry).transpose()?;
            let next = queue::requested(known, is_users, not_before);
            tx.execute(
                "INSERT INTO summary_queue (owner, session, level, first, last, provider, by_user, state, tries,
                     not_before, queued_at, changed_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
                 ON CONFLICT (owner, session, first, last, level, provider) DO UPDATE SET
                     by_user = excluded.by_user, state = excluded.state, tries = excluded.tries,
                     not_before = excluded.not_before, changed_at = excluded.changed_at",
                &[
                    &owner,
                    &seq,
                    &level,
                    first,
                    last,
                    provider,
                    &next.by_user,
                    &next.state.as_str(),
                    &next.tries,
                    &next.not_before,
                    &now,
                ],
            )
            .await?;
            Ok(())
        })
    }

    pub(crate) async fn is_queue_due(&self, scope: &Scope, now: Millis) -> error::Result<bool> {
        read!(self, scope, tx => {
            let clock = self.lease_time(&tx).await?;
            let mut from = 0;
            loop {
                let page = open_entries(&tx, from).await?;
                for row in &page {
                    if queue::next(entry(row)?, now, clock) != Next::Wait {
                        return Ok(true);
                    }
                }
                if page.len() < PAGE {
                    return Ok(false);
                }
                from += PAGE;
            }
        })
    }

    pub(crate) async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> error::Result<Option<Queued>> {
        write!(self, scope, tx => {
            let clock = self.lease_time(&tx).await?;
            let Some((owner, queued)) = next_entry(&tx, scope, now, clock).await? else { return Ok(None) };
            tx.execute(
                "UPDATE summary_queue SET state = 'processing', holder = $3, expires = $4, tries = tries + 1,
                     changed_at = $5 WHERE owner = $1 AND seq = $2",
                &[&owner, &queued.key.in_store(), &holder, &clock.saturating_add(lease), &now],
            )
            .await?;
            Ok(Some(queued))
        })
    }

    pub(crate) async fn finish(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        now: Millis,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            let sql = "UPDATE summary_queue SET state = 'completed', holder = NULL, error = NULL, changed_at = $4
                       WHERE owner = ANY ($1) AND seq = $2 AND holder = $3";
            tx.execute(sql, &[&tx.seen.parts, &entry.in_store(), &holder, &now]).await?;
            Ok(())
        })
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
        write!(self, scope, tx => {
            let (parts, seq) = (&tx.seen.parts, entry.in_store());
            let sql = "SELECT tries FROM summary_queue WHERE owner = ANY ($1) AND seq = $2 AND holder = $3";
            let Some(row) = tx.row(sql, &[parts, &seq, &holder]).await? else { return Ok(()) };
            let state = queue::after_failure(row.try_get(0)?).as_str();
            let sql = "UPDATE summary_queue SET state = $3, holder = NULL, error = $4, not_before = $5, changed_at = $6
                       WHERE owner = ANY ($1) AND seq = $2";
            tx.execute(sql, &[parts, &seq, &state, &error, &not_before, &now]).await?;
            Ok(())
        })
    }

    pub(crate) async fn drop_queued(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            let sql = "DELETE FROM summary_queue WHERE owner = ANY ($1) AND seq = $2 AND holder = $3";
            tx.execute(sql, &[&tx.seen.parts, &entry.in_store(), &holder]).await?;
            Ok(())
        })
    }

    pub(crate) async fn queue_counts(&self, scope: &Scope) -> error::Result<QueueCounts> {
        let sql = format!(
            "SELECT q.state, count(*) FROM summary_queue q
             JOIN sessions s ON s.owner = q.owner AND s.seq = q.session
             WHERE q.owner = ANY ($1) AND {} GROUP BY q.state",
            is_named("$2")
        );
        read!(self, scope, tx => {
            let mut counts = QueueCounts::default();
            for row in tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine]).await? {
                let count = match columns::word(&row, 0, QueueState::parse)? {
                    QueueState::Pending => &mut counts.pending,
                    QueueState::Processing => &mut counts.processing,
                    QueueState::Completed => &mut counts.completed,
                    QueueState::Failed => &mut counts.failed,
                };
                *count = row.try_get(1)?;
            }
            Ok(counts)
        })
    }

    pub(crate) async fn attempt(&self, scope: &Scope, attempt: Attempt) -> error::Result<()> {
        write!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, &attempt.session).await? else { return Ok(()) };
            tx.execute(
                "INSERT INTO summary_attempts (owner, session, level, first, last, provider, model, input_tokens,
                     output_tokens, cost_micros, took_ms, quality, error, at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                &[
                    &session.owner,
                    &session.seq,
                    &attempt.level.as_str(),
                    &attempt.first,
                    &attempt.last,
                    &attempt.provider,
                    &attempt.model,
                    &attempt.input_tokens,
                    &attempt.output_tokens,
                    &attempt.cost_micros,
                    &attempt.took_ms,
                    &attempt.quality,
                    &attempt.error,
                    &attempt.at,
                ],
            )
            .await?;
            Ok(())
        })
    }

    pub(crate) async fn paces(
        &self,
        scope: &Scope,
        provider: String,
        model: String,
        most: usize,
    ) -> error::Result<Vec<Pace>> {
        let sql = format!(
            "SELECT a.input_tokens, a.output_tokens, a.took_ms
             FROM summary_attempts a JOIN sessions s ON s.owner = a.owner AND s.seq = a.session
             WHERE a.owner = ANY ($1) AND a.provider = $3 AND a.model = $4 AND {}
             ORDER BY a.at DESC, a.seq DESC LIMIT $5",
            is_named("$2")
        );
        read!(self, scope, tx => {
            let (parts, mine) = (&tx.seen.parts, &tx.seen.mine);
            let rows = tx.rows(&sql, &[parts, mine, &provider, &model, &number(most)]).await?;
            let pace = |row: &Row| {
                Ok(Pace { input: row.try_get(0)?, output: row.try_get(1)?, took: row.try_get(2)? })
            };
            rows.iter().map(pace).collect()
        })
    }
}

/// Returns a page of the pending and processing entries that the reader sees, from the place `from` on. Entries that the
/// user asked for come first, and among entries of the same kind, the oldest.
async fn open_entries(tx: &Transaction, from: usize) -> Result<Vec<Row>> {
    let sql = format!(
        "SELECT {DECIDING}, q.owner, q.seq, q.session, s.name, q.level, q.first, q.last, q.provider
         FROM summary_queue q JOIN sessions s ON s.owner = q.owner AND s.seq = q.session
         WHERE q.owner = ANY ($1) AND q.state IN ('pending', 'processing') AND {}
         ORDER BY q.by_user DESC, q.seq LIMIT $3 OFFSET $4",
        is_named("$2")
    );
    tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &number(PAGE), &number(from)]).await
}

/// Returns the next entry of the scope to take, and its part. Gives up the entries before this entry that were tried too
/// often.
async fn next_entry(
    tx: &Transaction,
    scope: &Scope,
    now: Millis,
    clock: Millis,
) -> Result<Option<(i64, Queued)>> {
    let admitted = admitted(tx, scope).await?;
    let (mut found, mut given_up, mut from) = (None, Vec::new(), 0);
    'pages: loop {
        let page = open_entries(tx, from).await?;
        for row in &page {
            let (owner, seq) = (row.try_get(5)?, row.try_get(7)?);
            let is_admitted =
                || admitted.as_ref().is_none_or(|sessions| sessions.contains(&SessionRef { owner, seq }));
            match queue::next(entry(row)?, now, clock) {
                Next::GiveUp => given_up.push(row.try_get::<_, i64>(6)?),
                Next::Take if is_admitted() => {
                    found = Some((owner, queued(row)?));
                    break 'pages;
                }
                Next::Wait | Next::Take => {}
            }
        }
        if page.len() < PAGE {
            break;
        }
        from += PAGE;
    }
    if !given_up.is_empty() {
        let sql = "UPDATE summary_queue SET state = 'failed', holder = NULL, changed_at = $3
                   WHERE owner = ANY ($1) AND seq = ANY ($2)";
        tx.execute(sql, &[&tx.seen.parts, &given_up, &now]).await?;
    }
    Ok(found)
}

/// Reads the columns [`DECIDING`] of an entry, which come first.
fn entry(row: &Row) -> Result<QueueEntry> {
    Ok(QueueEntry {
        state: columns::word(row, 0, QueueState::parse)?,
        by_user: row.try_get(1)?,
        tries: row.try_get(2)?,
        not_before: row.try_get(3)?,
        expires: row.try_get(4)?,
    })
}

/// Reads an entry from the columns of [`open_entries`].
fn queued(row: &Row) -> Result<Queued> {
    let QueueEntry { by_user, tries, .. } = entry(row)?;
    let wanted = Wanted {
        session: columns::word(row, 8, SessionId::parse)?,
        level: columns::word(row, 9, Level::parse)?,
        first: row.try_get(10)?,
        last: row.try_get(11)?,
        provider: row.try_get(12)?,
        asked_by: if by_user { AskedBy::User } else { AskedBy::Program },
    };
    Ok(Queued { key: QueueKey::from_store(row.try_get(6)?), wanted, tries })
}
