//! The state of a session while memories are written to it.

use rusqlite::Connection;

use super::turns::index_turns;
use crate::error::Result;
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::tuning::NEIGHBOURS;

/// The state of a session while a batch is written to it.
pub(crate) struct OpenSession {
    pub(super) seq: i64,
    pub(super) next_ordinal: i64,
    first_new: i64,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
}

impl OpenSession {
    pub(crate) fn open(connection: &Connection, scope: &Scope, id: &SessionId) -> Result<OpenSession> {
        debug_assert!(match &scope.sessions {
            Sessions::All => true,
            Sessions::Only(ids) => ids.contains(id),
        });
        connection
            .prepare_cached("INSERT INTO sessions (owner, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((scope.tenant.as_str(), id.as_str()))?;
        let seq: i64 = connection
            .prepare_cached("SELECT seq FROM sessions WHERE owner = ?1 AND name = ?2")?
            .query_row((scope.tenant.as_str(), id.as_str()), |row| row.get(0))?;
        // The ordinal of a purged message isn't used again, so that a range of ordinals always means the same messages.
        let next_ordinal: i64 = connection
            .prepare_cached(
                "SELECT max(last, coalesce((SELECT max(ordinal) FROM memories WHERE session = ?1), -1)) + 1
                 FROM sessions WHERE seq = ?1",
            )?
            .query_row([seq], |row| row.get(0))?;
        Ok(OpenSession { seq, next_ordinal, first_new: next_ordinal, branch: None, head: None })
    }

    /// Sets the next ordinal to `ordinal`, if `ordinal` is greater than the current one by at most `widest`.
    pub(crate) fn skip_to(&mut self, ordinal: i64, widest: i64) {
        if ordinal.checked_sub(self.next_ordinal).is_some_and(|gap| (1..=widest).contains(&gap)) {
            self.next_ordinal = ordinal;
        }
    }

    /// Stores the branch and commit of the session, and indexes its new messages. The messages just before the new ones
    /// are indexed again, because the new messages are now part of their context.
    pub(crate) fn close(&self, connection: &Connection) -> Result<()> {
        if self.branch.is_some() || self.head.is_some() {
            connection
                .prepare_cached(
                    "UPDATE sessions SET branch = coalesce(?2, branch), head_sha = coalesce(?3, head_sha)
                     WHERE seq = ?1",
                )?
                .execute((self.seq, &self.branch, &self.head))?;
        }
        if self.next_ordinal > self.first_new {
            index_turns(
                connection,
                self.seq,
                self.first_new - NEIGHBOURS..self.next_ordinal,
                self.first_new,
            )?;
        }
        Ok(())
    }
}
