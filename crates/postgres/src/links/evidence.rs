//! The evidence for links between commits and sessions: the files that tool calls changed, the commits that they made,
//! and the times.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{memory_key, number};
use crate::error::Result;
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::{CallRow, SessionKey, WriteRow};

impl PostgresStore {
    pub(crate) async fn first_evidence(&self, scope: &Scope) -> error::Result<Option<Millis>> {
        read!(self, scope, tx => {
            // One part after the other, so that each minimum is the first entry of an index.
            let sql = "SELECT min(e.time) FROM unnest($1::bigint[]) AS u (owner) CROSS JOIN LATERAL (
                           SELECT min(w.time) AS time FROM file_writes w WHERE w.owner = u.owner
                           UNION ALL SELECT min(c.began) FROM commit_calls c WHERE c.owner = u.owner) e";
            Ok(tx.only(sql, &[&tx.seen.parts]).await?.get(0))
        })
    }

    pub(crate) async fn file_writes(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> error::Result<Vec<WriteRow>> {
        read!(self, scope, tx => {
            let sql = "SELECT m.session, w.time, w.path, w.worktree, w.branch, w.lines, w.memory
                       FROM file_writes w JOIN memories m ON m.owner = w.owner AND m.seq = w.memory
                       WHERE w.owner = ANY ($1) AND w.time BETWEEN $2 AND $3 AND m.session IS NOT NULL
                           AND m.tombstoned_at IS NULL ORDER BY w.time, w.memory, w.path COLLATE \"C\"";
            let rows = tx.rows(sql, &[&tx.seen.parts, &from, &until]).await?;
            rows.iter().map(write_row).collect()
        })
    }

    pub(crate) async fn writes_of(
        &self,
        scope: &Scope,
        paths: Vec<String>,
        until: Millis,
        limit: usize,
    ) -> error::Result<Vec<WriteRow>> {
        let paths: Vec<String> = paths.into_iter().collect::<BTreeSet<String>>().into_iter().collect();
        read!(self, scope, tx => {
            let sql = "SELECT f.session, f.time, f.path, f.worktree, f.branch, f.lines, f.memory
                       FROM unnest($2::text[]) AS u (path) CROSS JOIN LATERAL (
                           SELECT m.session, w.time, w.path, w.worktree, w.branch, w.lines, w.memory
                           FROM file_writes w JOIN memories m ON m.owner = w.owner AND m.seq = w.memory
                           WHERE w.owner = ANY ($1) AND w.path = u.path AND w.time <= $3 AND m.session IS NOT NULL
                               AND m.tombstoned_at IS NULL ORDER BY w.time DESC, w.memory DESC LIMIT $4) f
                       ORDER BY f.time DESC, f.memory DESC, f.path COLLATE \"C\"";
            let rows = tx.rows(sql, &[&tx.seen.parts, &paths, &until, &number(limit)]).await?;
            rows.iter().map(write_row).collect()
        })
    }

    pub(crate) async fn commit_calls(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> error::Result<Vec<CallRow>> {
        read!(self, scope, tx => {
            let sql = "SELECT m.session, c.began, c.ended, c.sha, c.worktree
                       FROM commit_calls c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
                       WHERE c.owner = ANY ($1) AND c.began BETWEEN $2 AND $3 AND m.session IS NOT NULL
                           AND m.tombstoned_at IS NULL ORDER BY c.began, c.memory, c.sha COLLATE \"C\"";
            let rows = tx.rows(sql, &[&tx.seen.parts, &from, &until]).await?;
            let call = |row: &Row| CallRow {
                session: SessionKey::from_store(row.get(0)),
                began: row.get(1),
                ended: row.get(2),
                sha: row.get(3),
                worktree: row.get(4),
            };
            Ok(rows.iter().map(call).collect())
        })
    }
}

fn write_row(row: &Row) -> Result<WriteRow> {
    let lines: Option<&[u8]> = row.try_get(5)?;
    let hash = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    Ok(WriteRow {
        session: SessionKey::from_store(row.try_get(0)?),
        time: row.try_get(1)?,
        path: row.try_get(2)?,
        worktree: row.try_get(3)?,
        branch: row.try_get(4)?,
        lines: lines.unwrap_or_default().chunks_exact(4).map(hash).collect(),
        memory: memory_key(row, 6)?,
    })
}
