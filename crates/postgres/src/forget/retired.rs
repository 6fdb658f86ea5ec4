//! Sessions that the garbage collector forgot because of their age, and the summaries of quarters that replace
//! them.
//!
//! A summary of a quarter replaces old sessions, so it stays when these sessions are forgotten because of their age.
//! When the user forgets or purges a part of such a session, the summary is removed, because it may repeat the text
//! that the user wants to remove.

use super::select::{SelectedRow, sessions_of};
use crate::error::Result;
use crate::owners::{self, SessionRef};
use crate::transactions::Transaction;
use tiro_store::Selection;

/// Records the memory that summarises each session of `rows`. The sessions are about to be forgotten because of their
/// age.
pub(super) async fn retire(tx: &Transaction, rows: &[SelectedRow]) -> Result<()> {
    let (owners, seqs) = columns(&sessions_of(rows));
    tx.execute(
        "UPDATE sessions s SET retired = (SELECT m.id FROM conversations c
             JOIN memories m ON m.owner = c.owner AND m.seq = c.memory WHERE c.owner = s.owner AND c.session = s.seq)
         FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq) WHERE s.owner = u.owner AND s.seq = u.seq",
        &[&owners, &seqs],
    )
    .await?;
    Ok(())
}

/// Removes the quarterly summaries that replace retired sessions in `rows`. If `selection` names a session, also
/// removes the summaries that replace this session. `parts` are all parts of the store.
pub(super) async fn forget(
    tx: &Transaction,
    selection: &Selection,
    parts: &[i64],
    rows: &[SelectedRow],
) -> Result<()> {
    let mut sessions = sessions_of(rows);
    if let Selection::Session(session) = selection {
        sessions.extend(owners::session_called(tx, session).await?);
    }
    forget_sessions(tx, parts, &sessions).await
}

/// Removes the summaries of quarters that replace those of the sessions that are retired. The summaries may be of other
/// parts of the store. `parts` are all parts of the store.
pub(super) async fn forget_sessions(tx: &Transaction, parts: &[i64], sessions: &[SessionRef]) -> Result<()> {
    let (owners, seqs) = columns(sessions);
    tx.execute(
        "DELETE FROM memories q USING unnest($1::bigint[], $2::bigint[]) AS u (owner, seq), sessions s, memory_references r
         WHERE s.owner = u.owner AND s.seq = u.seq AND r.owner = ANY ($3) AND r.target = s.retired
             AND q.owner = r.owner AND q.seq = r.memory AND q.kind = 'summary' AND q.provenance = 'derived'",
        &[&owners, &seqs, &parts],
    )
    .await?;
    tx.execute(
        "UPDATE sessions s SET retired = NULL FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
         WHERE s.owner = u.owner AND s.seq = u.seq AND s.retired IS NOT NULL",
        &[&owners, &seqs],
    )
    .await?;
    Ok(())
}

fn columns(sessions: &[SessionRef]) -> (Vec<i64>, Vec<i64>) {
    sessions.iter().map(|session| (session.owner, session.seq)).unzip()
}
