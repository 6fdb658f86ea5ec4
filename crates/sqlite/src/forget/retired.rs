//! Sessions that the garbage collector forgot because of their age, and the summaries of quarters that replace
//! them.
//!
//! A summary of a quarter replaces old sessions, so it stays when these sessions are forgotten because of their age.
//! When the user forgets or purges a part of such a session, the summary is removed, because it may repeat the text
//! that the user wants to remove.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::SelectedRow;
use crate::error::Result;
use crate::forget::erase::erase;
use crate::read::parts;
use tiro_base::scope::Scope;
use tiro_store::Selection;

/// Records the memory that summarises each session of `rows`. The sessions are about to be forgotten because of their
/// age.
pub(super) fn retire(connection: &Connection, rows: &[SelectedRow]) -> Result<()> {
    for session in sessions_of(rows) {
        connection
            .prepare_cached(
                "UPDATE sessions SET retired = (SELECT m.id FROM conversations c JOIN memories m ON m.seq = c.memory
                     WHERE c.session = ?1) WHERE seq = ?1",
            )?
            .execute([session])?;
    }
    Ok(())
}

/// Removes the quarterly summaries that replace retired sessions in `rows`. If `selection` names a session, also
/// removes the summaries that replace this session.
pub(super) fn forget(
    connection: &Connection,
    scope: &Scope,
    selection: &Selection,
    rows: &[SelectedRow],
) -> Result<()> {
    if let Selection::Session(session) = selection {
        let known = parts::session_called(connection, scope, session)?;
        known.map_or(Ok(()), |session| forget_session(connection, session))?;
    }
    forget_sessions(connection, rows)
}

/// Removes the summaries of quarters that replace retired sessions of `rows`.
pub(super) fn forget_sessions(connection: &Connection, rows: &[SelectedRow]) -> Result<()> {
    sessions_of(rows).into_iter().try_for_each(|session| forget_session(connection, session))
}

fn sessions_of(rows: &[SelectedRow]) -> BTreeSet<i64> {
    rows.iter().filter_map(|row| row.session).collect()
}

fn forget_session(connection: &Connection, session: i64) -> Result<()> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT q.seq FROM sessions s CROSS JOIN memory_references r ON r.target = s.retired
         CROSS JOIN memories q ON q.seq = r.memory
         WHERE s.seq = ?1 AND {} AND q.kind = 'summary' AND q.provenance = 'derived'",
        parts::of_one_tenant("q.owner", "s.owner")
    ))?;
    let quarters: Vec<i64> = statement.query_map([session], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for quarter in quarters {
        connection.prepare_cached("DELETE FROM operation_memories WHERE memory = ?1")?.execute([quarter])?;
        erase(connection, quarter)?;
    }
    connection
        .prepare_cached("UPDATE sessions SET retired = NULL WHERE seq = ?1 AND retired IS NOT NULL")?
        .execute([session])?;
    Ok(())
}
