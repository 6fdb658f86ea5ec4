//! Reads the links between commits and sessions in a backup, and the evidence for them.

use rusqlite::Connection;

use super::{BackupReader, LATEST, LONGEST_NAME, MOST_BESIDE, read};
use crate::error::Result;
use crate::links::{CommitCall, FileWrite, Known};
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::SessionId;
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{ForeignCall, ForeignEvidence, ForeignForgotten, ForeignWrite};

/// The maximum number of bytes of line hashes that are read for one file change: an import stores at most 64 hashes of
/// 32 bits.
const LONGEST_LINES: usize = 256;

impl BackupReader {
    /// Returns the sessions that led to the commit in row `commit`, each with its confidence. Ignores links with a
    /// confidence below [`LEAST_CONFIDENCE`]. In files of older versions, ignores all links, because those versions
    /// made links only by comparing times.
    pub(super) fn links(&self, commit: i64) -> Result<Vec<(SessionId, f64)>> {
        if !self.has("file_writes") {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT s.name, c.confidence FROM commit_sessions c JOIN sessions s ON s.seq = c.session
             WHERE c.memory = ?1 ORDER BY c.place LIMIT ?2",
        )?;
        let rows = statement.query_map((commit, MOST_BESIDE as i64), |row| {
            let name = row.get_ref(0)?.as_str().ok().and_then(SessionId::parse);
            Ok(name.zip(row.get::<_, f64>(1).ok()))
        })?;
        let found: Vec<_> = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        Ok(found.into_iter().flatten().filter(|(_, sure)| (LEAST_CONFIDENCE..=1.0).contains(sure)).collect())
    }

    /// Returns the file changes and commits of the tool call in row `memory`.
    pub(super) fn evidence(&self, memory: i64) -> Result<ForeignEvidence> {
        let mut found = ForeignEvidence::default();
        if !self.has("file_writes") || !self.has("commit_calls") {
            return Ok(found);
        }
        let is_time = |time: &Millis| (0..=LATEST).contains(time);
        let text = |row: &rusqlite::Row<'_>, place: usize| -> rusqlite::Result<Option<String>> {
            let text = row.get_ref(place)?.as_str().ok();
            Ok(text.filter(|text| text.len() <= LONGEST_NAME).map(str::to_owned))
        };
        let mut writes = self.connection.prepare_cached(
            "SELECT time, path, worktree, branch, lines FROM file_writes WHERE memory = ?1 ORDER BY time, path LIMIT ?2",
        )?;
        let rows = writes.query_map((memory, MOST_BESIDE as i64), |row| {
            let lines = row.get_ref(4)?.as_blob().ok();
            let lines = lines.filter(|lines| lines.len() <= LONGEST_LINES && lines.len() % 4 == 0);
            Ok(text(row, 1)?.map(|path| ForeignWrite {
                time: row.get(0).unwrap_or(-1),
                path,
                worktree: text(row, 2).unwrap_or_default(),
                branch: text(row, 3).unwrap_or_default(),
                lines: lines.map(<[u8]>::to_vec),
            }))
        })?;
        let rows: Vec<Option<ForeignWrite>> = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        found.writes = rows.into_iter().flatten().filter(|write| is_time(&write.time)).collect();
        let mut calls = self.connection.prepare_cached(
            "SELECT began, ended, sha, worktree FROM commit_calls WHERE memory = ?1 ORDER BY began, sha LIMIT ?2",
        )?;
        let rows = calls.query_map((memory, MOST_BESIDE as i64), |row| {
            let time = (row.get(0).unwrap_or(-1), row.get(1).unwrap_or(-1));
            Ok(text(row, 2)?.map(|sha| ForeignCall { time, sha, worktree: text(row, 3).unwrap_or_default() }))
        })?;
        let rows: Vec<Option<ForeignCall>> = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        let is_beginning = |sha: &str| sha.len() <= 40 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
        found.calls = rows
            .into_iter()
            .flatten()
            .filter(|call| is_time(&call.time.0) && is_time(&call.time.1) && is_beginning(&call.sha))
            .collect();
        Ok(found)
    }

    /// Adds to `forgotten` the sessions that were forgotten because of their age, each with the memory that
    /// summarised it.
    pub(super) fn retired(&self, forgotten: &mut ForeignForgotten) -> Result<()> {
        if !self.has("file_writes") {
            return Ok(());
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, retired FROM sessions WHERE owner = ?1 AND retired IS NOT NULL")?;
        let rows = statement.query_map([&self.owners.owner], |row| {
            let session = row.get_ref(0)?.as_str().ok().and_then(SessionId::parse);
            Ok(session.zip(row.get_ref(1)?.as_str().ok().and_then(MemoryId::parse)))
        })?;
        let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>().map_err(read)?;
        forgotten.retired = rows.into_iter().flatten().collect();
        Ok(())
    }
}

/// Stores the file changes and commits of the tool call `id`. Rows that exist already are not changed.
pub(super) fn add(
    connection: &Connection,
    owner: &str,
    id: &MemoryId,
    evidence: &ForeignEvidence,
) -> Result<()> {
    for ForeignWrite { time, path, worktree, branch, lines } in &evidence.writes {
        let (worktree, branch, lines) = (worktree.as_deref(), branch.as_deref(), lines.as_deref());
        FileWrite { time: *time, path, worktree, branch, lines }.insert(
            connection,
            owner,
            id,
            Known::Kept,
        )?;
    }
    for ForeignCall { time, sha, worktree } in &evidence.calls {
        let call = CommitCall { time: *time, sha, worktree: worktree.as_deref() };
        call.insert(connection, owner, id, Known::Kept)?;
    }
    Ok(())
}

/// Returns the approximate size of the evidence in bytes.
pub(super) fn bytes(evidence: &ForeignEvidence) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let writes = evidence.writes.iter().map(|write| {
        let lines = write.lines.as_ref().map_or(0, Vec::len);
        write.path.len() + text(&write.worktree) + text(&write.branch) + lines + size_of::<ForeignWrite>()
    });
    let calls = evidence.calls.iter();
    let calls = calls.map(|call| call.sha.len() + text(&call.worktree) + size_of::<ForeignCall>());
    writes.chain(calls).sum()
}
