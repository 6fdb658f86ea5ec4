//! The state of a session while memories are written to it.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::turns::{index_around, index_turns, reached_before};
use crate::error::Result;
use tiro_base::scope::{Scope, SessionId, Sessions};

/// The state of a session while a batch is written to it.
pub(crate) struct OpenSession {
    pub(super) seq: i64,
    next_ordinal: i64,
    first_new: i64,
    /// The place that the next message takes instead of the next ordinal.
    place: Option<i64>,
    /// The places of new messages between older ones.
    between: BTreeSet<i64>,
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
        Ok(OpenSession {
            seq,
            next_ordinal,
            first_new: next_ordinal,
            place: None,
            between: BTreeSet::new(),
            branch: None,
            head: None,
        })
    }

    /// Sets the next ordinal to `ordinal`, if `ordinal` is greater than the current one by at most `widest`.
    pub(crate) fn skip_to(&mut self, ordinal: i64, widest: i64) {
        if ordinal.checked_sub(self.next_ordinal).is_some_and(|gap| (1..=widest).contains(&gap)) {
            self.next_ordinal = ordinal;
        }
    }

    /// Lets the next message have the place `ordinal` that it has in another store: also a place before messages that
    /// came earlier, if no message has it here.
    pub(crate) fn place(&mut self, connection: &Connection, ordinal: i64, widest: i64) -> Result<()> {
        self.skip_to(ordinal, widest);
        let is_taken = "SELECT 1 FROM memories WHERE session = ?1 AND ordinal = ?2";
        let is_between = (0..self.next_ordinal).contains(&ordinal)
            && !connection.prepare_cached(is_taken)?.exists((self.seq, ordinal))?;
        self.place = Some(ordinal).filter(|_| is_between);
        Ok(())
    }

    /// Returns the ordinal of a new message.
    pub(super) fn take_ordinal(&mut self) -> i64 {
        if let Some(place) = self.place.take() {
            self.between.insert(place);
            return place;
        }
        self.next_ordinal += 1;
        self.next_ordinal - 1
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
            let from = reached_before(connection, self.seq, self.first_new)?;
            index_turns(connection, self.seq, from..self.next_ordinal, self.first_new)?;
        }
        if !self.between.is_empty() {
            self.between.iter().try_for_each(|ordinal| self.remove_made(connection, *ordinal))?;
            index_around(connection, self.between.iter().map(|ordinal| (self.seq, *ordinal)).collect())?;
        }
        Ok(())
    }

    /// Removes what was made of the messages around a new one, which are not the same any more.
    fn remove_made(&self, connection: &Connection, ordinal: i64) -> Result<()> {
        for sql in [
            "UPDATE segments SET (messages, tokens) =
                 (SELECT count(*), coalesce(sum(m.tokens), 0) FROM memories m WHERE m.session = segments.session
                      AND m.ordinal BETWEEN segments.first AND segments.last AND m.tombstoned_at IS NULL)
             WHERE session = ?1 AND first <= ?2 AND last >= ?2",
            "DELETE FROM summaries WHERE session = ?1 AND first <= ?2 AND last >= ?2",
            "DELETE FROM conversations WHERE session = ?1 AND last >= ?2",
        ] {
            connection.prepare_cached(sql)?.execute((self.seq, ordinal))?;
        }
        Ok(())
    }
}
