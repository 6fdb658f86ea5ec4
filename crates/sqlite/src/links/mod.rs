//! Stores the origins of sessions, and the links between commits and the sessions that led to them.

mod evidence;
mod graph;

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::keys::{key, memory_key, optional_key};
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ChunkKey, CommitLinks, CommitRow, Origin};

pub(crate) use evidence::{CommitCall, FileWrite, Known, alias, record};

/// The longest chain of replacements that is followed from a commit. A commit that was amended and then squashed has a
/// chain of length two.
const REPLACEMENTS: usize = 8;

impl SqliteStore {
    pub(crate) async fn commits_without_summary(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<MemoryKey>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.seq FROM memories m
                 WHERE m.owner = ?1 AND m.kind = 'commit' AND m.tombstoned_at IS NULL AND NOT EXISTS (
                     SELECT 1 FROM memory_references r CROSS JOIN memories s ON s.seq = r.memory
                     WHERE r.target = m.id AND s.owner = m.owner AND s.kind = 'summary' AND s.provenance = 'derived')
                 ORDER BY m.time DESC, m.seq DESC LIMIT ?2",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map((scope.tenant.as_str(), limit), |row| memory_key(row, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn summary_of_commit(
        &self,
        scope: &Scope,
        id: &MemoryId,
    ) -> error::Result<Option<MemoryId>> {
        let id = id.clone();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached(
                    "SELECT s.id FROM memory_references r CROSS JOIN memories s ON s.seq = r.memory
                     WHERE r.target = ?2 AND s.owner = ?1 AND s.kind = 'summary' AND s.provenance = 'derived'
                         AND s.tombstoned_at IS NULL ORDER BY s.seq DESC LIMIT 1",
                )?
                .query_row((scope.tenant.as_str(), id.as_str()), |row| columns::id(row, 0))
                .optional()?)
        })
        .await
    }

    pub(crate) async fn is_purged(&self, scope: &Scope, id: &MemoryId) -> error::Result<bool> {
        let id = id.clone();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached("SELECT 1 FROM purged WHERE owner = ?1 AND id = ?2")?
                .exists((scope.tenant.as_str(), id.as_str()))?)
        })
        .await
    }

    pub(crate) async fn describe_session(
        &self,
        scope: &Scope,
        session: &SessionId,
        origin: Origin,
    ) -> error::Result<()> {
        let session = session.clone();
        self.write(scope, move |connection, scope| {
            let part = parts::of_session(connection, scope, &session, origin.visibility)?;
            let owner = part.tenant.as_str();
            connection
                .prepare_cached(
                    "INSERT INTO sessions (owner, name, client, worktree, title) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (owner, name) DO UPDATE SET client = coalesce(?3, client),
                         worktree = coalesce(?4, worktree), title = coalesce(?5, title)",
                )?
                .execute(params![owner, session.as_str(), origin.client, origin.worktree, origin.title])?;
            for each in &origin.aliases {
                alias(connection, owner, each, &session, Known::Replaced)?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn known_elsewhere(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: Vec<String>,
    ) -> error::Result<HashSet<String>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let by_source = parts::indexed_by(connection, "memories_by_source")?;
            let mut statement = connection.prepare_cached(&format!(
                // The join begins with the id. A join that began with the owner would visit every message for each id.
                "SELECT 1 FROM memories m {by_source} CROSS JOIN sessions s ON s.seq = m.session
                 WHERE m.source_id = ?2 AND m.owner = ?1 AND s.name <> ?3
                 UNION ALL
                 SELECT 1 FROM repeats r INDEXED BY repeats_by_key CROSS JOIN memories m ON m.seq = r.memory
                 CROSS JOIN sessions s ON s.seq = m.session
                 WHERE r.key = ?2 AND m.owner = ?1 AND s.name <> ?3"
            ))?;
            let mut known = HashSet::new();
            for id in ids {
                if statement.exists((scope.tenant.as_str(), &id, session.as_str()))? {
                    known.insert(id);
                }
            }
            Ok(known)
        })
        .await
    }

    pub(crate) async fn commits_before(
        &self,
        scope: &Scope,
        places: Vec<(String, Millis)>,
    ) -> error::Result<Vec<Option<String>>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT source_id FROM memories WHERE owner = ?1 AND kind = 'commit' AND (branch = ?2 OR branch IS NULL) AND time <= ?3
                     AND tombstoned_at IS NULL ORDER BY time DESC LIMIT 1",
            )?;
            let mut found = Vec::with_capacity(places.len());
            for (branch, time) in places {
                let sha = statement.query_row((scope.tenant.as_str(), branch, time), |row| row.get(0)).optional()?;
                found.push(sha.flatten());
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, Option<MemoryKey>),
        until: Millis,
        limit: usize,
    ) -> error::Result<Vec<CommitRow>> {
        let last = after.1.map_or(i64::MIN, MemoryKey::in_store);
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT m.seq, m.time, m.speaker, substr(m.text, 1, 2000),
                     (SELECT group_concat(sha, x'0a') FROM commit_ids c WHERE c.memory = m.seq),
                     (SELECT group_concat(path, x'0a') FROM memory_paths p WHERE p.memory = m.seq),
                     (SELECT group_concat(sha, x'0a') FROM (SELECT sha FROM commit_parents c WHERE c.memory = m.seq ORDER BY place))
                 FROM memories m WHERE m.owner = ?1 AND m.kind = 'commit' AND (m.time, m.seq) > (?2, ?5)
                     AND m.time <= ?3 AND m.tombstoned_at IS NULL ORDER BY m.time, m.seq LIMIT ?4",
            )?;
            let rows = statement.query_map(
                params![scope.tenant.as_str(), after.0, until, limit as i64, last],
                |row| {
                    Ok(CommitRow {
                        key: memory_key(row, 0)?,
                        time: row.get(1)?,
                        author: row.get(2)?,
                        message: row.get(3)?,
                        shas: lines(row, 4)?,
                        files: lines(row, 5)?,
                        parents: lines(row, 6)?,
                    })
                },
            )?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn link_commits(&self, scope: &Scope, links: Vec<CommitLinks>) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            for (commit, sessions) in &links {
                // Links to private sessions of others are not removed.
                connection
                    .prepare_cached(
                        "DELETE FROM commit_sessions WHERE memory = ?1
                             AND EXISTS (SELECT 1 FROM memories m WHERE m.seq = ?1 AND m.owner IN (?2, ?3))
                             AND session IN (SELECT seq FROM sessions WHERE owner IN (?2, ?3))",
                    )?
                    .execute((commit.in_store(), &shared, &mine))?;
                let free: i64 = connection
                    .prepare_cached(
                        "SELECT coalesce(max(place) + 1, 0) FROM commit_sessions WHERE memory = ?1",
                    )?
                    .query_row([commit.in_store()], |row| row.get(0))?;
                for (place, (session, confidence)) in (free..).zip(sessions) {
                    // The commit or the session may have been purged after it was read.
                    connection
                        .prepare_cached(
                            "INSERT INTO commit_sessions (memory, place, session, confidence)
                             SELECT m.seq, ?2, s.seq, ?5 FROM memories m, sessions s
                             WHERE m.seq = ?1 AND m.owner IN (?4, ?6) AND s.seq = ?3 AND s.owner IN (?4, ?6)",
                        )?
                        .execute(params![
                            commit.in_store(),
                            place,
                            session.in_store(),
                            shared,
                            confidence,
                            mine
                        ])?;
                }
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn links_of(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> error::Result<Vec<CommitLinks>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT l.session, l.confidence FROM memories m CROSS JOIN commit_sessions l ON l.memory = m.seq
                 WHERE m.seq = ?1 AND m.owner = ?2 ORDER BY l.place",
            )?;
            let mut links = Vec::with_capacity(commits.len());
            for commit in commits {
                let rows = statement.query_map((commit.in_store(), scope.tenant.as_str()), |row| Ok((key(row, 0)?, row.get(1)?)))?;
                links.push((commit, rows.collect::<Result<_, _>>()?));
            }
            Ok(links)
        })
        .await
    }

    pub(crate) async fn replace_commits(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            // A commit that is checked out again no longer counts as replaced.
            for commit in &commits {
                let mut statement = connection.prepare_cached(
                    "SELECT r.memory, r.target FROM memories o CROSS JOIN memory_references r ON r.target = o.id
                     CROSS JOIN memories b ON b.seq = r.memory
                     WHERE o.seq = ?1 AND b.kind = 'commit' AND b.owner IN (?2, ?3)",
                )?;
                let rows = statement.query_map((commit.in_store(), &shared, &mine), |row| {
                    Ok((memory_key(row, 0)?, row.get::<_, String>(1)?))
                })?;
                for (by, old) in rows.collect::<Result<Vec<_>, _>>()? {
                    if among.as_ref().is_none_or(|among| among.contains(&by)) {
                        connection
                            .prepare_cached("DELETE FROM memory_references WHERE memory = ?1 AND target = ?2")?
                            .execute((by.in_store(), old))?;
                    }
                }
            }
            for (old, by) in &replaced {
                connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO memory_references (memory, target)
                         SELECT b.seq, o.id FROM memories o, memories b
                         WHERE o.seq = ?1 AND b.seq = ?2 AND o.owner IN (?3, ?4) AND b.owner IN (?3, ?4)",
                    )?
                    .execute((old.in_store(), by.in_store(), &shared, &mine))?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn replaced_commits(&self, scope: &Scope) -> error::Result<Vec<(MemoryKey, String)>> {
        self.read(scope, |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT o.seq, i.sha FROM memories b CROSS JOIN memory_references r ON r.memory = b.seq
                 CROSS JOIN memories o ON o.id = r.target AND o.owner = b.owner
                 CROSS JOIN commit_ids i ON i.memory = o.seq
                 WHERE b.owner = ?1 AND b.kind = 'commit' AND o.kind = 'commit'",
            )?;
            let rows =
                statement.query_map([scope.tenant.as_str()], |row| Ok((memory_key(row, 0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn first_evidence(&self, scope: &Scope) -> error::Result<Option<Millis>> {
        self.read(scope, |_, connection, scope| {
            Ok(connection.query_row(
                "SELECT min(time) FROM (
                     SELECT * FROM (SELECT w.time AS time FROM file_writes w INDEXED BY file_writes_by_time
                         CROSS JOIN memories m ON m.seq = w.memory WHERE m.owner = ?1 ORDER BY w.time LIMIT 1)
                     UNION ALL
                     SELECT * FROM (SELECT c.began FROM commit_calls c INDEXED BY commit_calls_by_time
                         CROSS JOIN memories m ON m.seq = c.memory WHERE m.owner = ?1 ORDER BY c.began LIMIT 1))",
                [scope.tenant.as_str()],
                |row| row.get(0),
            )?)
        })
        .await
    }
}

/// Returns the replaced commits among `commits`. Each commit comes with the last living commit in its chain of
/// replacements, and the first chunk of that commit.
pub(crate) fn stand_ins(
    connection: &Connection,
    scope: &Scope,
    commits: Vec<MemoryKey>,
) -> Result<Vec<(MemoryKey, (MemoryKey, ChunkKey))>> {
    let mut statement = connection.prepare_cached(
        "SELECT b.seq, (SELECT min(c.seq) FROM chunks c WHERE c.memory = b.seq)
         FROM memories o CROSS JOIN memory_references r ON r.target = o.id
         CROSS JOIN memories b ON b.seq = r.memory
         WHERE o.seq = ?1 AND o.kind = 'commit' AND b.kind = 'commit' AND b.owner = ?2 AND b.seq <> o.seq
             AND b.tombstoned_at IS NULL ORDER BY b.time DESC, b.seq DESC LIMIT 1",
    )?;
    let mut found = Vec::new();
    for row in commits {
        let (mut at, mut last) = (row, None);
        for _ in 0..REPLACEMENTS {
            let next: Option<(MemoryKey, Option<ChunkKey>)> = statement
                .query_row((at.in_store(), scope.tenant.as_str()), |row| {
                    Ok((memory_key(row, 0)?, optional_key(row, 1)?))
                })
                .optional()?;
            let Some((seq, Some(chunk))) = next.filter(|(seq, _)| *seq != row) else { break };
            at = seq;
            last = Some((seq, chunk));
        }
        found.extend(last.map(|last| (row, last)));
    }
    Ok(found)
}

/// Returns the lines of the text in a column; no lines if it is `NULL`.
fn lines(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.iter().flat_map(|text| text.split('\n')).map(str::to_owned).collect())
}
