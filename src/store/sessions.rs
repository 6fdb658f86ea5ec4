//! The conversations of a project.

use rusqlite::params;

use super::Store;
use super::segments::find_session;
use crate::error::Result;
use crate::memory::Millis;
use crate::scope::{Scope, SessionId, Sessions};

/// A session and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// Living memories in it.
    pub memories: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The time of its earliest memory.
    pub first: Millis,
    /// The time of its latest memory.
    pub last: Millis,
    /// The branch it was last seen on.
    pub branch: Option<String>,
    /// The commit it was last seen on.
    pub head_sha: Option<String>,
}

impl Store {
    /// Returns up to `limit` sessions of the scope, latest first, from place `offset` on.
    pub async fn sessions(&self, scope: &Scope, offset: usize, limit: usize) -> Result<Vec<SessionRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT s.name, count(*), sum(m.tokens), min(m.time), max(m.time), s.branch, s.head_sha
                 FROM sessions s JOIN memories m ON m.session = s.seq
                 WHERE s.owner = ?1 AND m.owner = ?1 AND m.tombstoned_at IS NULL
                 GROUP BY s.seq ORDER BY max(m.time) DESC, s.name LIMIT ?2 OFFSET ?3",
            )?;
            // A scope of some sessions is small, a project may hold thousands: only the latter are paged by SQL.
            let (sql_limit, sql_offset) = match &scope.sessions {
                Sessions::All => (limit as i64, offset as i64),
                Sessions::Only(_) => (-1, 0),
            };
            let rows = statement.query_map(params![scope.owner.as_str(), sql_limit, sql_offset], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    SessionRow {
                        id: SessionId::parse("unnamed").expect("a name without control characters"),
                        memories: row.get(1)?,
                        tokens: row.get(2)?,
                        first: row.get(3)?,
                        last: row.get(4)?,
                        branch: row.get(5)?,
                        head_sha: row.get(6)?,
                    },
                ))
            })?;
            let rows: Vec<(String, SessionRow)> = rows.collect::<Result<_, _>>()?;
            let named = rows
                .into_iter()
                .filter_map(|(name, row)| Some(SessionRow { id: SessionId::parse(&name)?, ..row }));
            Ok(match &scope.sessions {
                Sessions::All => named.collect(),
                Sessions::Only(ids) => {
                    named.filter(|row| ids.contains(&row.id)).skip(offset).take(limit).collect()
                }
            })
        })
        .await
    }

    /// Returns the branch and the commit the session was last seen on.
    pub async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<(Option<String>, Option<String>)> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(seq) = find_session(connection, scope, &session)? else { return Ok((None, None)) };
            Ok(connection
                .prepare_cached("SELECT branch, head_sha FROM sessions WHERE seq = ?1")?
                .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })
        .await
    }
}
