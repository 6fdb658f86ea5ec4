//! Copies sessions, what was made of them, and what was forgotten.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::{Copy, memories};
use crate::columns;
use crate::error::Result;
use crate::owners::{SessionRef, is_named};
use crate::summaries::segments::{hash_of_range, segments};
use crate::summaries::{COLUMNS, summary};
use crate::transactions::Transaction;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{SessionId, Visibility};
use tiro_store::{ForeignForgotten, ForeignSession, Origin, Restore, SegmentRow, SummaryRow, WriteSummaries};

/// How many sessions are read at a time. Arbitrary.
const SESSIONS: i64 = 100;

/// How many purged ids or operations are read at a time. Arbitrary.
const FORGOTTEN: i64 = 10_000;

/// A session that is copied.
struct Session {
    place: SessionRef,
    /// Whether its name means it for the reader, who may have a private session with this name.
    is_named: bool,
    found: ForeignSession,
}

impl Copy {
    /// Copies the names and origins of the sessions.
    pub(super) async fn copy_origins(&self, tx: &Transaction) -> Result<()> {
        let mut last = i64::MIN;
        loop {
            let sessions = page(tx, last).await?;
            let Some(end) = sessions.last() else { return Ok(()) };
            last = end.place.seq;
            let sessions = sessions.into_iter().map(|session| session.found).collect();
            self.store.restore_sessions(&self.scope, sessions).await?;
        }
    }

    /// Copies the segments and summaries of the sessions, and the memories that summarise them.
    pub(super) async fn copy_summaries(&self, tx: &Transaction) -> Result<()> {
        let mut last = i64::MIN;
        loop {
            let sessions = page(tx, last).await?;
            let Some(end) = sessions.last() else { return Ok(()) };
            last = end.place.seq;
            for session in sessions.iter().filter(|session| session.is_named) {
                self.copy_made(tx, session).await?;
            }
        }
    }

    async fn copy_made(&self, tx: &Transaction, session: &Session) -> Result<()> {
        let name = &session.found.session;
        let closed: Vec<SegmentRow> = segments(tx, session.place).await?;
        if !closed.is_empty() {
            self.store.add_segments(&self.scope, name, closed).await?;
        }
        for SummaryRow { summary, made_at, .. } in summaries(tx, session.place).await? {
            self.store.save_version(&self.scope, summary, Millis::MAX, made_at).await?;
        }
        self.copy_conversation(tx, session).await
    }

    /// Copies the memory that summarises the session, if there is one.
    async fn copy_conversation(&self, tx: &Transaction, session: &Session) -> Result<()> {
        let (place, name) = (session.place, &session.found.session);
        let sql = "SELECT memory, last, made_at, due FROM conversations WHERE owner = $1 AND session = $2";
        let Some(row) = tx.row(sql, &[&place.owner, &place.seq]).await? else { return Ok(()) };
        let mut page = memories::read(tx, &[row.try_get(0)?]).await?;
        let Some(restored) = page.memories.pop() else { return Ok(()) };
        let last: i64 = row.try_get(1)?;
        let hash = hash_of_range(tx, place, 0, last).await?;
        let (made_at, due): (Millis, Option<Millis>) = (row.try_get(2)?, row.try_get(3)?);
        self.store.save_conversation(&self.scope, restored.memory, last, hash, made_at).await?;
        if let Some(due) = due {
            self.store.postpone_conversation(&self.scope, name, due).await?;
        }
        Ok(())
    }

    /// Copies the purged ids, the operations that forgot memories, and which sessions were forgotten because of their
    /// age.
    pub(super) async fn copy_forgotten(&self, tx: &Transaction) -> Result<()> {
        let sql =
            "SELECT name, retired FROM sessions WHERE owner = ANY ($1) AND retired IS NOT NULL ORDER BY seq";
        let retired = |row: &Row| -> Result<(SessionId, MemoryId)> {
            Ok((columns::word(row, 0, SessionId::parse)?, columns::id(row, 1)?))
        };
        let rows = tx.rows(sql, &[&tx.seen.parts]).await?;
        let retired = rows.iter().map(retired).collect::<Result<_>>()?;
        let forgotten = ForeignForgotten { retired, ..ForeignForgotten::default() };
        self.store.restore_forgotten(&self.scope, forgotten).await?;
        for owner in &tx.seen.parts {
            self.copy_purged(tx, *owner).await?;
        }
        self.copy_operations(tx, tx.own_known(&self.scope)).await
    }

    async fn copy_purged(&self, tx: &Transaction, owner: i64) -> Result<()> {
        let mut last = String::new();
        loop {
            let sql = "SELECT id FROM purged WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3";
            let rows = tx.rows(sql, &[&owner, &last, &FORGOTTEN]).await?;
            let purged = rows.iter().map(|row| columns::id(row, 0)).collect::<Result<Vec<MemoryId>>>()?;
            let Some(end) = purged.last() else { return Ok(()) };
            last = end.as_str().to_owned();
            let forgotten = ForeignForgotten { purged, ..ForeignForgotten::default() };
            self.store.restore_forgotten(&self.scope, forgotten).await?;
        }
    }

    async fn copy_operations(&self, tx: &Transaction, owner: i64) -> Result<()> {
        let mut last = String::new();
        loop {
            let sql = "SELECT id, at, undone_at FROM operations
                       WHERE owner = $1 AND id > $2 AND kind IN ('forget', 'expire') ORDER BY id LIMIT $3";
            let rows = tx.rows(sql, &[&owner, &last, &FORGOTTEN]).await?;
            let Some(end) = rows.last() else { return Ok(()) };
            last = end.try_get(0)?;
            let operations = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
            let forgotten = ForeignForgotten { operations, ..ForeignForgotten::default() };
            self.store.restore_forgotten(&self.scope, forgotten).await?;
        }
    }
}

/// Returns the next sessions that the reader sees, after the one with the number `last`, without their summaries.
async fn page(tx: &Transaction, last: i64) -> Result<Vec<Session>> {
    let sql = format!(
        "SELECT s.owner, s.seq, s.name, s.client, s.worktree, s.title, s.branch, s.head_sha, {}
         FROM unnest($1::bigint[]) AS p (owner) CROSS JOIN LATERAL (
             SELECT * FROM sessions o WHERE o.owner = p.owner AND o.seq > $3 ORDER BY o.seq LIMIT $4) s
         ORDER BY s.seq LIMIT $4",
        is_named("$2")
    );
    let rows = tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &last, &SESSIONS]).await?;
    let seqs: Vec<i64> = rows.iter().map(|row| row.get(1)).collect();
    let sql = "SELECT session, alias FROM session_aliases WHERE owner = ANY ($1) AND session = ANY ($2)
               ORDER BY session, alias COLLATE \"C\"";
    let mut aliases: HashMap<i64, Vec<String>> = HashMap::new();
    for row in tx.rows(sql, &[&tx.seen.parts, &seqs]).await? {
        aliases.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
    }
    rows.iter()
        .map(|row| {
            let place = SessionRef { owner: row.try_get(0)?, seq: row.try_get(1)? };
            let visibility = match place.owner == tx.seen.mine {
                true => Visibility::Private,
                false => Visibility::Project,
            };
            let origin = Origin {
                visibility: Some(visibility),
                client: row.try_get(3)?,
                worktree: row.try_get(4)?,
                title: row.try_get(5)?,
                aliases: aliases.remove(&place.seq).unwrap_or_default(),
            };
            let found = ForeignSession {
                session: columns::word(row, 2, SessionId::parse)?,
                origin,
                branch: row.try_get(6)?,
                head_sha: row.try_get(7)?,
                segments: Vec::new(),
                summaries: Vec::new(),
                conversation: None,
            };
            Ok(Session { place, is_named: row.try_get(8)?, found })
        })
        .collect()
}

/// Returns the summaries of the session in all versions.
async fn summaries(tx: &Transaction, session: SessionRef) -> Result<Vec<SummaryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summaries u JOIN sessions s ON s.owner = u.owner AND s.seq = u.session
         WHERE u.owner = $1 AND u.session = $2 ORDER BY u.first, u.last, u.level COLLATE \"C\", u.version"
    );
    tx.rows(&sql, &[&session.owner, &session.seq]).await?.iter().map(summary).collect()
}
