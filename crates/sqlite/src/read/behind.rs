//! Finds the sessions that led to a commit, and the commits that a session led to.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use crate::SqliteStore;
use crate::columns::id;
use crate::error::Result;
use crate::read::conditions::Conditions;
use crate::read::memories::conversations;
use crate::read::segments::find_session;
use crate::read::sessions::TITLE;
use tiro_base::error;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{BehindRow, LinkedCommit, SessionKey};

impl SqliteStore {
    pub(crate) async fn sessions_behind(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> error::Result<Vec<Vec<(SessionId, f64)>>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            commits.iter().map(|commit| conversations(connection, &conditions, commit.in_store())).collect()
        })
        .await
    }

    pub(crate) async fn behind(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
        time: Millis,
    ) -> error::Result<Vec<BehindRow>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let message = |which: &str| {
                format!(
                    "SELECT {TITLE}, m.time, m.ordinal FROM memories m JOIN sessions s ON s.seq = m.session
                     WHERE m.session = ? AND m.ordinal IS NOT NULL AND {} AND {which} LIMIT 1",
                    conditions.sql
                )
            };
            let last_before = message("m.time <= ? ORDER BY m.ordinal DESC");
            let first = message("m.time > ? ORDER BY m.ordinal");
            let mut found = Vec::with_capacity(sessions.len());
            for session in sessions {
                let Some(seq) = find_session(connection, scope, &session)? else { continue };
                let values = || {
                    std::iter::once(Value::from(seq))
                        .chain(conditions.values.iter().cloned())
                        .chain(std::iter::once(Value::from(time)))
                };
                for sql in [&last_before, &first] {
                    let row = connection
                        .prepare_cached(sql)?
                        .query_row(params_from_iter(values()), |row| {
                            Ok((row.get::<_, Option<String>>(0)?, row.get(1)?, row.get(2)?))
                        })
                        .optional()?;
                    if let Some((title, time, ordinal)) = row {
                        let seq = SessionKey::from_store(seq);
                        found.push(BehindRow { key: seq, session, title, time, ordinal });
                        break;
                    }
                }
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn linked_commits(
        &self,
        scope: &Scope,
        session: &SessionId,
        head: Option<String>,
        time: Millis,
        limit: usize,
    ) -> error::Result<(Vec<LinkedCommit>, usize)> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else {
                return Ok((Vec::new(), 0));
            };
            // Commits belong to no session, so this query ignores the sessions of the scope. The scope's sessions were
            // checked when `session` was found above.
            let owner = Value::from(scope.tenant.as_str().to_owned());
            let mut statement = connection.prepare_cached(
                "SELECT m.id, m.source_id, substr(m.text, 1, 400), m.time, l.confidence FROM memories m
                 JOIN (SELECT memory, max(confidence) AS confidence FROM (
                     SELECT memory, confidence FROM commit_sessions WHERE session = ?2
                     UNION ALL SELECT memory, 0.5 FROM commit_parents
                         WHERE sha = ?4 AND (SELECT client FROM sessions WHERE seq = ?2) IS NULL)
                     GROUP BY memory) l ON l.memory = m.seq
                 WHERE m.owner = ?1 AND m.kind = 'commit' AND m.tombstoned_at IS NULL
                 ORDER BY m.time < ?3, abs(m.time - ?3), m.seq",
            )?;
            let values = [owner, session.into(), time.into(), head.into()];
            let rows = statement.query_map(params_from_iter(values), |row| {
                let text: String = row.get(2)?;
                let subject = text.lines().next().unwrap_or_default().to_owned();
                Ok(LinkedCommit {
                    id: id(row, 0)?,
                    sha: row.get(1)?,
                    subject,
                    time: row.get(3)?,
                    confidence: row.get(4)?,
                })
            })?;
            let mut found: Vec<LinkedCommit> = rows.collect::<Result<_, _>>()?;
            let all = found.len();
            found.truncate(limit);
            Ok((found, all))
        })
        .await
    }
}
