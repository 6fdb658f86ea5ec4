//! Finds the sessions that led to a commit, and the commits that a session led to.

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{id, memory_key};
use crate::owners::SessionRef;
use crate::read::conversations::conversations;
use crate::read::find::{find_session, find_sessions};
use crate::read::sessions::TITLE;
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{BehindRow, LinkedCommit, SessionKey};

impl PostgresStore {
    pub(crate) async fn sessions_behind(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> error::Result<Vec<Vec<(SessionId, f64)>>> {
        let keys: Vec<i64> = commits.into_iter().map(MemoryKey::in_store).collect();
        read!(self, scope, tx => {
            let found = conversations(&tx, scope, &keys).await?;
            Ok(keys.iter().map(|key| found.get(key).cloned().unwrap_or_default()).collect())
        })
    }

    pub(crate) async fn commits_of(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let Some(SessionRef { owner, seq }) = find_session(&tx, scope, session).await? else {
                return Ok(Vec::new());
            };
            let sql = "SELECT m.seq FROM commit_sessions l JOIN memories m ON m.owner = l.owner AND m.seq = l.memory
                       WHERE l.session_owner = $1 AND l.session = $2 AND m.owner = ANY ($3)
                           AND m.tombstoned_at IS NULL ORDER BY m.time DESC, m.seq DESC";
            let rows = tx.rows(sql, &[&owner, &seq, &tx.seen.parts]).await?;
            rows.iter().map(|row| memory_key(row, 0)).collect()
        })
    }

    pub(crate) async fn behind(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
        time: Millis,
    ) -> error::Result<Vec<BehindRow>> {
        // A session that was found is admitted by the scope, and all its messages are in its part.
        let sql = format!(
            "SELECT u.place, s.seq, {TITLE}, f.time, f.ordinal
             FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (place, owner, seq)
             JOIN sessions s ON s.owner = u.owner AND s.seq = u.seq
             CROSS JOIN LATERAL (
                 (SELECT m.time, m.ordinal, 0 AS rank FROM memories m
                     WHERE m.owner = u.owner AND m.session = u.seq AND m.ordinal IS NOT NULL
                         AND m.tombstoned_at IS NULL AND m.time <= $4 ORDER BY m.ordinal DESC LIMIT 1)
                 UNION ALL
                 (SELECT m.time, m.ordinal, 1 FROM memories m
                     WHERE m.owner = u.owner AND m.session = u.seq AND m.ordinal IS NOT NULL
                         AND m.tombstoned_at IS NULL AND m.time > $4 ORDER BY m.ordinal LIMIT 1)
                 ORDER BY rank LIMIT 1) f
             ORDER BY u.place"
        );
        read!(self, scope, tx => {
            let (mut places, mut owners, mut seqs) = (Vec::new(), Vec::new(), Vec::new());
            for (place, found) in (0_i64..).zip(find_sessions(&tx, scope, &sessions).await?) {
                let Some(found) = found else { continue };
                places.push(place);
                owners.push(found.owner);
                seqs.push(found.seq);
            }
            let behind = |row: &Row| BehindRow {
                key: SessionKey::from_store(row.get(1)),
                session: sessions[usize::try_from(row.get::<_, i64>(0)).unwrap_or_default()].clone(),
                title: row.get(2),
                time: row.get(3),
                ordinal: row.get(4),
            };
            Ok(tx.rows(&sql, &[&places, &owners, &seqs, &time]).await?.iter().map(behind).collect())
        })
    }

    pub(crate) async fn linked_commits(
        &self,
        scope: &Scope,
        session: &SessionId,
        head: Option<String>,
        time: Millis,
        limit: usize,
    ) -> error::Result<(Vec<LinkedCommit>, usize)> {
        read!(self, scope, tx => {
            let Some(SessionRef { owner, seq }) = find_session(&tx, scope, session).await? else {
                return Ok((Vec::new(), 0));
            };
            // Commits belong to no session, so this query ignores the sessions of the scope. The scope's sessions were
            // checked when `session` was found above.
            let sql = "SELECT m.id, m.source_id, left(m.text, 400), m.time, l.confidence FROM memories m
                       JOIN (SELECT owner, memory, max(confidence) AS confidence FROM (
                               SELECT owner, memory, confidence FROM commit_sessions
                                   WHERE session_owner = $1 AND session = $2 AND owner = ANY ($3)
                               UNION ALL SELECT owner, memory, 0.5 FROM commit_parents WHERE owner = ANY ($3)
                                   AND sha = $5 AND (SELECT client FROM sessions WHERE owner = $1 AND seq = $2) IS NULL) a
                           GROUP BY owner, memory) l ON l.owner = m.owner AND l.memory = m.seq
                       WHERE m.kind = 'commit' AND m.tombstoned_at IS NULL
                       ORDER BY m.time < $4, abs(m.time - $4), m.seq";
            let rows = tx.rows(sql, &[&owner, &seq, &tx.seen.parts, &time, &head]).await?;
            let commit = |row: &Row| {
                Ok(LinkedCommit {
                    id: id(row, 0)?,
                    sha: row.try_get(1)?,
                    subject: row.try_get::<_, &str>(2)?.lines().next().unwrap_or_default().to_owned(),
                    time: row.try_get(3)?,
                    confidence: row.try_get(4)?,
                })
            };
            Ok((rows.iter().take(limit).map(commit).collect::<crate::error::Result<_>>()?, rows.len()))
        })
    }
}
