//! The evidence for links between commits and sessions: the files that tool calls changed, the commits that they made,
//! and the times.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, params};

use crate::SqliteStore;
use crate::error::Result;
use crate::keys::{key, memory_key};
use crate::write::record::commit_id;
use tiro_base::error;
use tiro_base::memory::{Draft, MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{CallRow, WriteRow};

/// Stores the id of a commit, and the file changes and commits of a tool call. Equal tool calls share one stored
/// memory. Each further call adds its changes and commits to this memory.
pub(crate) fn record(connection: &Connection, owner: &str, id: &MemoryId, draft: &Draft) -> Result<()> {
    if let Some(commit) = &draft.commit {
        commit_id(connection, owner, &commit.sha, id)?;
    }
    let work = &draft.work;
    for write in &work.writes {
        let lines: Vec<u8> = write.lines.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        let write = FileWrite {
            time: draft.time,
            path: &write.path,
            worktree: write.worktree.as_deref(),
            branch: draft.branch.as_deref(),
            lines: Some(&lines),
        };
        write.insert(connection, owner, id, Known::Replaced)?;
    }
    let Some(printed) = &work.commits else { return Ok(()) };
    // If git printed no id, an empty id is stored, and the call is linked to a commit by its time.
    let quiet = [String::new()];
    let printed = if printed.is_empty() { &quiet[..] } else { printed };
    for sha in printed {
        let time = (draft.time, work.ended.unwrap_or(draft.time));
        let call = CommitCall { time, sha, worktree: work.worktree.as_deref() };
        call.insert(connection, owner, id, Known::Replaced)?;
    }
    Ok(())
}

/// Whether an insert replaces a row that exists already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The new row replaces it.
    Replaced,
    /// It stays.
    Kept,
}

impl Known {
    /// Returns the first words of the insert statement.
    fn insert(self) -> &'static str {
        match self {
            Known::Replaced => "INSERT OR REPLACE",
            Known::Kept => "INSERT OR IGNORE",
        }
    }
}

/// A change of a file, to be stored as a row.
pub(crate) struct FileWrite<'a> {
    pub time: Millis,
    pub path: &'a str,
    pub worktree: Option<&'a str>,
    pub branch: Option<&'a str>,
    pub lines: Option<&'a [u8]>,
}

impl FileWrite<'_> {
    /// Stores that the tool call `id` made the change.
    pub fn insert(&self, connection: &Connection, owner: &str, id: &MemoryId, known: Known) -> Result<()> {
        let sql = format!(
            "{} INTO file_writes (memory, time, path, worktree, branch, lines)
             SELECT seq, ?3, ?4, ?5, ?6, ?7 FROM memories WHERE owner = ?1 AND id = ?2",
            known.insert()
        );
        let FileWrite { time, path, worktree, branch, lines } = self;
        connection.prepare_cached(&sql)?.execute(params![
            owner,
            id.as_str(),
            time,
            path,
            worktree,
            branch,
            lines
        ])?;
        Ok(())
    }
}

/// A tool call that made a commit, to be stored as a row.
pub(crate) struct CommitCall<'a> {
    /// The times when the call began and when it was answered.
    pub time: (Millis, Millis),
    pub sha: &'a str,
    pub worktree: Option<&'a str>,
}

impl CommitCall<'_> {
    /// Stores that the tool call `id` made the commit.
    pub fn insert(&self, connection: &Connection, owner: &str, id: &MemoryId, known: Known) -> Result<()> {
        let sql = format!(
            "{} INTO commit_calls (memory, began, ended, sha, worktree)
             SELECT seq, ?3, ?4, ?5, ?6 FROM memories WHERE owner = ?1 AND id = ?2",
            known.insert()
        );
        let CommitCall { time: (began, ended), sha, worktree } = self;
        connection.prepare_cached(&sql)?.execute(params![owner, id.as_str(), began, ended, sha, worktree])?;
        Ok(())
    }
}

/// Stores `alias` as another name of the session `session`.
pub(crate) fn alias(
    connection: &Connection,
    owner: &str,
    alias: &str,
    session: &SessionId,
    known: Known,
) -> Result<()> {
    let sql = format!(
        "{} INTO session_aliases (owner, alias, session)
         SELECT owner, ?2, seq FROM sessions WHERE owner = ?1 AND name = ?3",
        known.insert()
    );
    connection.prepare_cached(&sql)?.execute((owner, alias, session.as_str()))?;
    Ok(())
}

impl SqliteStore {
    pub(crate) async fn file_writes(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> error::Result<Vec<WriteRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.session, w.time, w.path, w.worktree, w.branch, w.lines, w.memory
                 FROM file_writes w INDEXED BY file_writes_by_time CROSS JOIN memories m ON m.seq = w.memory
                 WHERE w.time BETWEEN ?2 AND ?3 AND m.owner = ?1 AND m.session IS NOT NULL
                     AND m.tombstoned_at IS NULL ORDER BY w.time, w.memory, w.path",
            )?;
            let rows = statement.query_map(params![scope.tenant.as_str(), from, until], write_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn writes_of(
        &self,
        scope: &Scope,
        paths: Vec<String>,
        until: Millis,
        limit: usize,
    ) -> error::Result<Vec<WriteRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.session, w.time, w.path, w.worktree, w.branch, w.lines, w.memory
                 FROM file_writes w INDEXED BY file_writes_by_path CROSS JOIN memories m ON m.seq = w.memory
                 WHERE w.path = ?2 AND w.time <= ?3 AND m.owner = ?1 AND m.session IS NOT NULL
                     AND m.tombstoned_at IS NULL ORDER BY w.time DESC, w.memory DESC LIMIT ?4",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut found: Vec<WriteRow> = Vec::new();
            for path in paths.into_iter().collect::<BTreeSet<String>>() {
                let values = params![scope.tenant.as_str(), path, until, limit];
                for row in statement.query_map(values, write_row)? {
                    found.push(row?);
                }
            }
            found.sort_by(|a, b| (b.time, b.memory, &a.path).cmp(&(a.time, a.memory, &b.path)));
            Ok(found)
        })
        .await
    }

    pub(crate) async fn commit_calls(
        &self,
        scope: &Scope,
        from: Millis,
        until: Millis,
    ) -> error::Result<Vec<CallRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.session, c.began, c.ended, c.sha, c.worktree
                 FROM commit_calls c INDEXED BY commit_calls_by_time CROSS JOIN memories m ON m.seq = c.memory
                 WHERE c.began BETWEEN ?2 AND ?3 AND m.owner = ?1 AND m.session IS NOT NULL
                     AND m.tombstoned_at IS NULL ORDER BY c.began, c.memory, c.sha",
            )?;
            let rows = statement.query_map(params![scope.tenant.as_str(), from, until], |row| {
                Ok(CallRow {
                    session: key(row, 0)?,
                    began: row.get(1)?,
                    ended: row.get(2)?,
                    sha: row.get(3)?,
                    worktree: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn write_row(row: &Row<'_>) -> rusqlite::Result<WriteRow> {
    Ok(WriteRow {
        session: key(row, 0)?,
        time: row.get(1)?,
        path: row.get(2)?,
        worktree: row.get(3)?,
        branch: row.get(4)?,
        lines: hashes(row, 5)?,
        memory: memory_key(row, 6)?,
    })
}

fn hashes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u32>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let bytes = bytes.unwrap_or_default();
    let hash = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    Ok(bytes.chunks_exact(4).map(hash).collect())
}
