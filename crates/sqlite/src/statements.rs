//! Stores two things: the statements in memories, so that later values can replace earlier ones, and the facts that
//! were extracted from messages.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::SqliteStore;
use crate::error::Result;
use crate::exchange::CAME;
use crate::forget::erase;
use crate::keys::{memory_key, optional_key};
use crate::read::conditions::Conditions;
use crate::read::parts;
use crate::read::segments::find_session;
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{NewStatement, Statement};

/// The columns of a [`Statement`].
const STATEMENT: &str =
    "t.memory, t.number, t.start_byte, t.end_byte, t.voice, t.value, t.words, t.time, t.subject";

impl SqliteStore {
    pub(crate) async fn add_statements(
        &self,
        scope: &Scope,
        statements: Vec<NewStatement>,
        noted: Option<(SessionId, i64)>,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            for new in &statements {
                add(connection, scope, new)?;
            }
            if let Some((session, ordinal)) = &noted {
                let session = parts::session_called(connection, scope, session)?;
                connection
                    .prepare_cached("UPDATE sessions SET noted = max(noted, ?2) WHERE seq = ?1")?
                    .execute((session, ordinal))?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn noted(&self, scope: &Scope, session: &SessionId) -> error::Result<i64> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(-1) };
            noted(connection, session)
        })
        .await
    }

    pub(crate) async fn remove_extracts(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> error::Result<usize> {
        let session = session.clone();
        self.write(scope, move |connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(0) };
            let extracts: Vec<i64> = connection
                .prepare_cached(&format!(
                    "SELECT m.seq FROM memories m JOIN exchange e ON e.memory = m.seq
                     WHERE m.session = ?1 AND m.ordinal IS NULL AND m.provenance = 'derived'
                         AND m.kind IN ('fact', 'decision') AND m.marked = 0 AND m.importance IS NULL
                         AND m.tombstoned_at IS NULL AND NOT {CAME}
                         AND (SELECT noted FROM sessions WHERE seq = ?1) < 0
                         AND NOT EXISTS (SELECT 1 FROM superseded s WHERE m.seq IN (s.memory, s.newer))
                     LIMIT ?2"
                ))?
                .query_map((session, i64::try_from(limit).unwrap_or(i64::MAX)), |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            extracts.iter().try_for_each(|extract| erase(connection, *extract))?;
            Ok(extracts.len())
        })
        .await
    }
}

/// Returns the statements of the living memories of the scope with these keys, in order of the keys.
pub(crate) fn statements_in(
    connection: &Connection,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<Vec<Statement>> {
    let conditions = Conditions::of_scope(connection, scope)?;
    let sql = format!(
        "SELECT {STATEMENT} FROM statements t CROSS JOIN memories m ON m.seq = t.memory
         WHERE t.memory = ? AND {} ORDER BY t.number",
        conditions.sql
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for key in keys {
        let values = std::iter::once(Value::from(key.in_store())).chain(conditions.values.iter().cloned());
        let rows = statement.query_map(params_from_iter(values), stated)?;
        for row in rows {
            found.push(row?);
        }
    }
    Ok(found)
}

/// Returns the ordinal of the last message of the session whose facts are extracted; -1 if there is none.
pub(crate) fn noted(connection: &Connection, session: i64) -> Result<i64> {
    Ok(connection
        .prepare_cached("SELECT noted FROM sessions WHERE seq = ?1")?
        .query_row([session], |row| row.get(0))?)
}

/// Stores a statement, with the subject that it shares with another statement.
fn add(connection: &Connection, scope: &Scope, new: &NewStatement) -> Result<()> {
    let Statement { memory, number, start, end, voice, value, words, time, .. } = &new.statement;
    let subject: Option<i64> = match new.same_as {
        None => None,
        Some((memory, number)) => {
            // A private statement doesn't replace a shared one, because others would notice this.
            let other = (memory.in_store(), number, new.statement.memory.in_store());
            connection
                .prepare_cached(
                    "UPDATE statements SET subject = seq WHERE memory = ?1 AND number = ?2 AND subject IS NULL
                         AND owner = (SELECT owner FROM memories WHERE seq = ?3)",
                )?
                .execute(other)?;
            connection
                .prepare_cached(
                    "SELECT subject FROM statements WHERE memory = ?1 AND number = ?2
                         AND owner = (SELECT owner FROM memories WHERE seq = ?3)",
                )?
                .query_row(other, |row| row.get(0))
                .optional()?
                .flatten()
        }
    };
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO statements
                 (owner, memory, number, start_byte, end_byte, voice, value, words, time, subject)
             SELECT owner, seq, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM memories
             WHERE owner IN (?1, ?11) AND seq = ?2 AND tombstoned_at IS NULL",
        )?
        .execute(params![
            scope.tenant.as_str(),
            memory.in_store(),
            number,
            *start as i64,
            *end as i64,
            voice,
            value,
            words,
            time,
            subject,
            parts::private(scope)
        ])?;
    Ok(())
}

/// Reads the columns [`STATEMENT`].
fn stated(row: &Row<'_>) -> rusqlite::Result<Statement> {
    Ok(Statement {
        memory: memory_key(row, 0)?,
        number: row.get(1)?,
        start: row.get::<_, i64>(2)? as usize,
        end: row.get::<_, i64>(3)? as usize,
        voice: row.get(4)?,
        value: row.get(5)?,
        words: row.get(6)?,
        time: row.get(7)?,
        subject: optional_key(row, 8)?,
    })
}
