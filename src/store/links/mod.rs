//! Where sessions come from, and which of them led to a commit.

mod graph;

use std::collections::HashSet;

use rusqlite::{OptionalExtension, Row, params};

use super::{Store, memories};
use crate::error::Result;
use crate::memory::{MemoryId, Millis};
use crate::scope::{Scope, SessionId};

pub use graph::GraphRow;

/// What is known of a session beside its memories; what is `None` leaves what is known already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The program it was held in.
    pub client: Option<String>,
    /// The root of the work tree it was held in.
    pub worktree: Option<String>,
    /// A line that names it.
    pub title: Option<String>,
    /// Its other names.
    pub aliases: Vec<String>,
}

/// A commit, as far as the sessions behind it are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeRow {
    /// The memory's row.
    pub seq: i64,
    /// When the change was made.
    pub time: Millis,
    /// The branch it was found on.
    pub branch: Option<String>,
    /// Its full ids.
    pub shas: Vec<String>,
    /// The paths it changed.
    pub files: Vec<String>,
}

/// A moment at which a session was at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentRow {
    /// When.
    pub time: Millis,
    /// The session's row.
    pub session: i64,
    /// The branch it was on.
    pub branch: Option<String>,
    /// The work tree it was held in.
    pub worktree: Option<String>,
    /// The files it touched.
    pub files: Vec<String>,
}

impl Store {
    /// Returns the rows of up to `limit` commits that nothing of kind `summary` was derived from, the newest first. One whose
    /// summary was forgotten by itself has one.
    pub async fn commits_without_summary(&self, scope: &Scope, limit: usize) -> Result<Vec<i64>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.seq FROM memories m
                 WHERE m.owner = ?1 AND m.kind = 'commit' AND m.tombstoned_at IS NULL AND NOT EXISTS (
                     SELECT 1 FROM memory_references r CROSS JOIN memories s ON s.seq = r.memory
                     WHERE r.target = m.id AND s.owner = m.owner AND s.kind = 'summary' AND s.provenance = 'derived')
                 ORDER BY m.time DESC, m.seq DESC LIMIT ?2",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map((scope.owner.as_str(), limit), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Returns the summary that was derived from the commit called `id`, where there is one.
    pub async fn summary_of_commit(&self, scope: &Scope, id: &MemoryId) -> Result<Option<MemoryId>> {
        let id = id.clone();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached(
                    "SELECT s.id FROM memory_references r CROSS JOIN memories s ON s.seq = r.memory
                     WHERE r.target = ?2 AND s.owner = ?1 AND s.kind = 'summary' AND s.provenance = 'derived'
                         AND s.tombstoned_at IS NULL ORDER BY s.seq DESC LIMIT 1",
                )?
                .query_row((scope.owner.as_str(), id.as_str()), |row| memories::id(row, 0))
                .optional()?)
        })
        .await
    }

    /// Returns whether the memory called `id` was purged.
    pub async fn is_purged(&self, scope: &Scope, id: &MemoryId) -> Result<bool> {
        let id = id.clone();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached("SELECT 1 FROM purged WHERE owner = ?1 AND id = ?2")?
                .exists((scope.owner.as_str(), id.as_str()))?)
        })
        .await
    }

    /// Records where a session comes from.
    pub async fn describe_session(&self, scope: &Scope, session: &SessionId, origin: Origin) -> Result<()> {
        let session = session.clone();
        self.write(scope, move |connection, scope| {
            let owner = scope.owner.as_str();
            connection
                .prepare_cached(
                    "INSERT INTO sessions (owner, name, client, worktree, title) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (owner, name) DO UPDATE SET client = coalesce(?3, client),
                         worktree = coalesce(?4, worktree), title = coalesce(?5, title)",
                )?
                .execute(params![owner, session.as_str(), origin.client, origin.worktree, origin.title])?;
            for alias in &origin.aliases {
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO session_aliases (owner, alias, session)
                         SELECT owner, ?2, seq FROM sessions WHERE owner = ?1 AND name = ?3",
                    )?
                    .execute((owner, alias, session.as_str()))?;
            }
            Ok(())
        })
        .await
    }

    /// Returns which of `ids`, clients' own ids of messages, are stored in another session than `session`.
    pub async fn known_elsewhere(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: Vec<String>,
    ) -> Result<HashSet<String>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                // By the id first: by the owner it would be every message, for every id.
                "SELECT 1 FROM memories m INDEXED BY memories_by_source CROSS JOIN sessions s ON s.seq = m.session
                 WHERE m.source_id = ?2 AND m.owner = ?1 AND s.name <> ?3
                 UNION ALL
                 SELECT 1 FROM repeats r INDEXED BY repeats_by_key CROSS JOIN memories m ON m.seq = r.memory
                 CROSS JOIN sessions s ON s.seq = m.session
                 WHERE r.key = ?2 AND m.owner = ?1 AND s.name <> ?3",
            )?;
            let mut known = HashSet::new();
            for id in ids {
                if statement.exists((scope.owner.as_str(), &id, session.as_str()))? {
                    known.insert(id);
                }
            }
            Ok(known)
        })
        .await
    }

    /// Returns for each branch and time the full id of the branch's last commit made before, where the store has one.
    pub async fn commits_before(
        &self,
        scope: &Scope,
        places: Vec<(String, Millis)>,
    ) -> Result<Vec<Option<String>>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT source_id FROM memories WHERE owner = ?1 AND kind = 'commit' AND branch = ?2 AND time <= ?3
                     AND tombstoned_at IS NULL ORDER BY time DESC LIMIT 1",
            )?;
            let mut found = Vec::with_capacity(places.len());
            for (branch, time) in places {
                let sha = statement.query_row((scope.owner.as_str(), branch, time), |row| row.get(0)).optional()?;
                found.push(sha.flatten());
            }
            Ok(found)
        })
        .await
    }

    /// Returns up to `limit` living commits made up to `until` that come after `after`, a time and a row, in this order.
    pub async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, i64),
        until: Millis,
        limit: usize,
    ) -> Result<Vec<MadeRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.seq, m.time, m.branch,
                     (SELECT group_concat(sha, x'0a') FROM commit_ids c WHERE c.memory = m.seq),
                     (SELECT group_concat(path, x'0a') FROM memory_paths p WHERE p.memory = m.seq)
                 FROM memories m WHERE m.owner = ?1 AND m.kind = 'commit' AND (m.time, m.seq) > (?2, ?5)
                     AND m.time <= ?3 AND m.tombstoned_at IS NULL ORDER BY m.time, m.seq LIMIT ?4",
            )?;
            let rows = statement.query_map(
                params![scope.owner.as_str(), after.0, until, limit as i64, after.1],
                |row| {
                    Ok(MadeRow {
                        seq: row.get(0)?,
                        time: row.get(1)?,
                        branch: row.get(2)?,
                        shas: lines(row, 3)?,
                        files: lines(row, 4)?,
                    })
                },
            )?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Returns when sessions were at work between `from` and `until`, in order of time.
    pub async fn moments(&self, scope: &Scope, from: Millis, until: Millis) -> Result<Vec<MomentRow>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.time, m.session, coalesce(m.branch, s.branch), s.worktree,
                     (SELECT group_concat(path, x'0a') FROM memory_paths p WHERE p.memory = m.seq)
                 FROM memories m INDEXED BY memories_in_sessions_by_time JOIN sessions s ON s.seq = m.session
                 WHERE m.owner = ?1 AND m.time BETWEEN ?2 AND ?3 AND m.session IS NOT NULL
                     AND m.tombstoned_at IS NULL ORDER BY m.time, m.seq",
            )?;
            let rows = statement.query_map(params![scope.owner.as_str(), from, until], |row| {
                Ok(MomentRow {
                    time: row.get(0)?,
                    session: row.get(1)?,
                    branch: row.get(2)?,
                    worktree: row.get(3)?,
                    files: lines(row, 4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Replaces the sessions behind each commit, both given by their rows, the likeliest first.
    pub async fn link_commits(&self, scope: &Scope, links: Vec<(i64, Vec<i64>)>) -> Result<()> {
        self.write(scope, move |connection, scope| {
            for (commit, sessions) in &links {
                connection
                    .prepare_cached("DELETE FROM commit_sessions WHERE memory = ?1")?
                    .execute([commit])?;
                for (place, session) in sessions.iter().enumerate() {
                    // Either may have been purged since it was read.
                    connection
                        .prepare_cached(
                            "INSERT INTO commit_sessions (memory, place, session)
                             SELECT m.seq, ?2, s.seq FROM memories m, sessions s
                             WHERE m.seq = ?1 AND m.owner = ?4 AND s.seq = ?3 AND s.owner = ?4",
                        )?
                        .execute(params![commit, place as i64, session, scope.owner.as_str()])?;
                }
            }
            Ok(())
        })
        .await
    }
}

/// Returns the lines of a column; none of `NULL`.
fn lines(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.iter().flat_map(|text| text.split('\n')).map(str::to_owned).collect())
}
