//! Reads commits, and stores the links between commits and the sessions that led to them.

mod evidence;
mod graph;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::PostgresStore;
use crate::columns::{self, memory_key, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::is_named;
use crate::read::conditions::{Which, of_scope};
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::Scope;
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{ChunkKey, CommitLinks, CommitRow, SessionKey};

/// The longest chain of replacements that is followed from a commit. A commit that was amended and then squashed has a
/// chain of length two.
const REPLACEMENTS: usize = 8;

impl PostgresStore {
    pub(crate) async fn commit_named(
        &self,
        scope: &Scope,
        prefix: &str,
    ) -> error::Result<Option<(MemoryKey, ChunkKey)>> {
        read!(self, scope, tx => { commit_named(&tx, scope, prefix).await })
    }

    pub(crate) async fn known_commits(&self, scope: &Scope) -> error::Result<Vec<String>> {
        read!(self, scope, tx => {
            let sql = "SELECT sha FROM commit_ids WHERE owner = ANY ($1) ORDER BY sha COLLATE \"C\"";
            Ok(tx.rows(sql, &[&tx.seen.parts]).await?.iter().map(|row| row.get(0)).collect())
        })
    }

    pub(crate) async fn commits_without_summary(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let sql = "SELECT m.seq FROM memories m
                       WHERE m.owner = ANY ($1) AND m.kind = 'commit' AND m.tombstoned_at IS NULL AND NOT EXISTS (
                           SELECT FROM memory_references r JOIN memories s ON s.owner = r.owner AND s.seq = r.memory
                           WHERE r.owner = ANY ($1) AND r.target = m.id AND s.kind = 'summary'
                               AND s.provenance = 'derived')
                       ORDER BY m.time DESC, m.seq DESC LIMIT $2";
            let rows = tx.rows(sql, &[&tx.seen.parts, &number(limit)]).await?;
            rows.iter().map(|row| memory_key(row, 0)).collect()
        })
    }

    pub(crate) async fn summary_of_commit(
        &self,
        scope: &Scope,
        id: &MemoryId,
    ) -> error::Result<Option<MemoryId>> {
        read!(self, scope, tx => {
            let sql = "SELECT s.id FROM memory_references r JOIN memories s ON s.owner = r.owner AND s.seq = r.memory
                       WHERE r.owner = ANY ($1) AND r.target = $2 AND s.kind = 'summary' AND s.provenance = 'derived'
                           AND s.tombstoned_at IS NULL ORDER BY s.seq DESC LIMIT 1";
            let row = tx.row(sql, &[&tx.seen.parts, &id.as_str()]).await?;
            row.map(|row| columns::id(&row, 0)).transpose()
        })
    }

    pub(crate) async fn commits_before(
        &self,
        scope: &Scope,
        places: Vec<(String, Millis)>,
    ) -> error::Result<Vec<Option<String>>> {
        let (branches, times): (Vec<String>, Vec<Millis>) = places.into_iter().unzip();
        read!(self, scope, tx => {
            let sql = "SELECT f.source_id
                       FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS u (branch, time, place)
                       LEFT JOIN LATERAL (
                           SELECT m.source_id FROM memories m WHERE m.owner = ANY ($1) AND m.kind = 'commit'
                               AND (m.branch = u.branch OR m.branch IS NULL) AND m.time <= u.time
                               AND m.tombstoned_at IS NULL
                           ORDER BY m.time DESC, m.seq DESC LIMIT 1) f ON true
                       ORDER BY u.place";
            Ok(tx.rows(sql, &[&tx.seen.parts, &branches, &times]).await?.iter().map(|row| row.get(0)).collect())
        })
    }

    pub(crate) async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, Option<MemoryKey>),
        until: Millis,
        limit: usize,
    ) -> error::Result<Vec<CommitRow>> {
        let last = after.1.map_or(i64::MIN, MemoryKey::in_store);
        read!(self, scope, tx => {
            let sql = "SELECT m.seq, m.time, m.speaker, left(m.text, 2000),
                           ARRAY(SELECT i.sha FROM commit_ids i WHERE i.owner = m.owner AND i.memory = m.seq
                               ORDER BY i.sha COLLATE \"C\"),
                           ARRAY(SELECT p.path FROM memory_paths p WHERE p.owner = m.owner AND p.memory = m.seq
                               ORDER BY p.path COLLATE \"C\"),
                           ARRAY(SELECT c.sha FROM commit_parents c WHERE c.owner = m.owner AND c.memory = m.seq
                               ORDER BY c.place)
                       FROM memories m WHERE m.owner = ANY ($1) AND m.kind = 'commit' AND m.time >= $2
                           AND (m.time, m.seq) > ($2, $3) AND m.time <= $4 AND m.tombstoned_at IS NULL
                       ORDER BY m.time, m.seq LIMIT $5";
            let rows = tx.rows(sql, &[&tx.seen.parts, &after.0, &last, &until, &number(limit)]).await?;
            let commit = |row: &tokio_postgres::Row| {
                Ok(CommitRow {
                    key: memory_key(row, 0)?,
                    time: row.get(1),
                    author: row.get(2),
                    message: row.get(3),
                    shas: row.get(4),
                    files: row.get(5),
                    parents: row.get(6),
                })
            };
            rows.iter().map(commit).collect()
        })
    }

    pub(crate) async fn link_commits(&self, scope: &Scope, links: Vec<CommitLinks>) -> error::Result<()> {
        // If a commit is named twice, its last links count.
        let links: BTreeMap<i64, Vec<(SessionKey, f64)>> =
            links.into_iter().map(|(commit, sessions)| (commit.in_store(), sessions)).collect();
        let (mut commits, mut places) = (Vec::new(), Vec::new());
        let (mut sessions, mut confidences) = (Vec::new(), Vec::new());
        for (commit, linked) in &links {
            for (place, (session, confidence)) in (0_i64..).zip(linked) {
                if *confidence >= LEAST_CONFIDENCE {
                    commits.push(*commit);
                    places.push(place);
                    sessions.push(session.in_store());
                    confidences.push(*confidence);
                }
            }
        }
        let all: Vec<i64> = links.into_keys().collect();
        write!(self, scope, tx => {
            // Links to private sessions of others are not removed.
            tx.execute(
                "DELETE FROM commit_sessions WHERE owner = ANY ($1) AND memory = ANY ($2) AND session_owner = ANY ($1)",
                &[&tx.seen.parts, &all],
            )
            .await?;
            // A commit or a session may have been purged after it was read.
            tx.execute(
                "INSERT INTO commit_sessions (owner, memory, place, session_owner, session, confidence)
                 SELECT m.owner, m.seq, u.place + coalesce((SELECT max(l.place) + 1 FROM commit_sessions l
                     WHERE l.owner = m.owner AND l.memory = m.seq), 0), s.owner, s.seq, u.confidence
                 FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::float8[])
                     AS u (memory, place, session, confidence)
                 JOIN memories m ON m.owner = ANY ($1) AND m.seq = u.memory
                 JOIN sessions s ON s.owner = ANY ($1) AND s.seq = u.session",
                &[&tx.seen.parts, &commits, &places, &sessions, &confidences],
            )
            .await?;
            Ok(())
        })
    }

    pub(crate) async fn links_of(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> error::Result<Vec<CommitLinks>> {
        let keys: Vec<i64> = commits.iter().map(|commit| commit.in_store()).collect();
        let sql = format!(
            "SELECT l.memory, l.session, l.confidence FROM commit_sessions l
             JOIN sessions s ON s.owner = l.session_owner AND s.seq = l.session
             WHERE l.owner = ANY ($1) AND l.memory = ANY ($2) AND s.owner = ANY ($1) AND {} ORDER BY l.memory, l.place",
            is_named("$3")
        );
        read!(self, scope, tx => {
            let mut links: HashMap<MemoryKey, Vec<(SessionKey, f64)>> = HashMap::new();
            for row in tx.rows(&sql, &[&tx.seen.parts, &keys, &tx.seen.mine]).await? {
                let link = (SessionKey::from_store(row.get(1)), row.get(2));
                links.entry(memory_key(&row, 0)?).or_default().push(link);
            }
            Ok(commits.iter().map(|commit| (*commit, links.get(commit).cloned().unwrap_or_default())).collect())
        })
    }

    pub(crate) async fn replace_commits(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> error::Result<()> {
        let commits: Vec<i64> = commits.into_iter().map(MemoryKey::in_store).collect();
        let among: Option<Vec<i64>> = among.map(|among| among.into_iter().map(MemoryKey::in_store).collect());
        let (olds, news): (Vec<i64>, Vec<i64>) =
            replaced.into_iter().map(|(old, new)| (old.in_store(), new.in_store())).unzip();
        write!(self, scope, tx => {
            // A commit that is checked out again no longer counts as replaced.
            tx.execute(
                "DELETE FROM memory_references r USING memories o, memories b
                 WHERE o.owner = ANY ($1) AND o.seq = ANY ($2) AND r.owner = ANY ($1) AND r.target = o.id
                     AND b.owner = r.owner AND b.seq = r.memory AND b.kind = 'commit'
                     AND ($3::bigint[] IS NULL OR b.seq = ANY ($3))",
                &[&tx.seen.parts, &commits, &among],
            )
            .await?;
            tx.execute(
                "INSERT INTO memory_references (owner, memory, target)
                 SELECT b.owner, b.seq, o.id FROM unnest($2::bigint[], $3::bigint[]) AS u (old, new)
                 JOIN memories o ON o.owner = ANY ($1) AND o.seq = u.old
                 JOIN memories b ON b.owner = ANY ($1) AND b.seq = u.new ON CONFLICT DO NOTHING",
                &[&tx.seen.parts, &olds, &news],
            )
            .await?;
            Ok(())
        })
    }

    pub(crate) async fn replaced_commits(&self, scope: &Scope) -> error::Result<Vec<(MemoryKey, String)>> {
        read!(self, scope, tx => {
            let sql = "SELECT o.seq, i.sha FROM memories b
                       JOIN memory_references r ON r.owner = b.owner AND r.memory = b.seq
                       JOIN memories o ON o.owner = ANY ($1) AND o.id = r.target
                       JOIN commit_ids i ON i.owner = o.owner AND i.memory = o.seq
                       WHERE b.owner = ANY ($1) AND b.kind = 'commit' AND o.kind = 'commit'
                       ORDER BY 1, i.sha COLLATE \"C\"";
            let rows = tx.rows(sql, &[&tx.seen.parts]).await?;
            rows.iter().map(|row| Ok((memory_key(row, 0)?, row.get(1)))).collect()
        })
    }
}

/// Implements [`ReadCommits::commit_named`](tiro_store::ReadCommits::commit_named).
pub(crate) async fn commit_named(
    tx: &Transaction,
    scope: &Scope,
    prefix: &str,
) -> Result<Option<(MemoryKey, ChunkKey)>> {
    let prefix = prefix.to_ascii_lowercase();
    let mut sql = Sql::new(
        "SELECT DISTINCT m.seq, (SELECT min(c.seq) FROM chunks c WHERE c.owner = m.owner AND c.memory = m.seq)
         FROM commit_ids i JOIN memories m ON m.owner = i.owner AND m.seq = i.memory WHERE ",
    );
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    // `g` comes right after the hexadecimal digits, so the range contains exactly the ids that begin with `prefix`.
    let parts = sql.bind(tx.seen.parts.clone());
    let (first, end) = (sql.bind(prefix.clone()), sql.bind(format!("{prefix}g")));
    sql.push(&format!(" AND i.owner = ANY ({parts}) AND i.sha ~>=~ {first} AND i.sha ~<~ {end} LIMIT 2"));
    let rows = tx.query(&sql).await?;
    let [only] = &rows[..] else { return Ok(None) };
    let chunk: Option<i64> = only.get(1);
    Ok(chunk.map(|chunk| (MemoryKey::from_store(only.get(0)), ChunkKey::from_store(chunk))))
}

/// Returns the replaced commits among `commits`. Each commit comes with the last living commit in its chain of
/// replacements, and the first chunk of that commit.
pub(crate) async fn stand_ins(
    tx: &Transaction,
    commits: Vec<MemoryKey>,
) -> Result<Vec<(MemoryKey, (MemoryKey, ChunkKey))>> {
    let sql = "SELECT DISTINCT ON (o.seq) o.seq, b.seq,
                   (SELECT min(c.seq) FROM chunks c WHERE c.owner = b.owner AND c.memory = b.seq)
               FROM memories o JOIN memory_references r ON r.owner = ANY ($1) AND r.target = o.id
               JOIN memories b ON b.owner = r.owner AND b.seq = r.memory
               WHERE o.owner = ANY ($1) AND o.seq = ANY ($2) AND o.kind = 'commit' AND b.kind = 'commit'
                   AND b.seq <> o.seq AND b.tombstoned_at IS NULL ORDER BY o.seq, b.time DESC, b.seq DESC";
    let mut last: HashMap<MemoryKey, (MemoryKey, ChunkKey)> = HashMap::new();
    // Where the chain of each commit has come.
    let mut at: Vec<(MemoryKey, MemoryKey)> = commits.iter().map(|commit| (*commit, *commit)).collect();
    for _ in 0..REPLACEMENTS {
        if at.is_empty() {
            break;
        }
        let keys: Vec<i64> = at.iter().map(|(_, key)| key.in_store()).collect();
        let mut next: HashMap<MemoryKey, (MemoryKey, ChunkKey)> = HashMap::new();
        for row in tx.rows(sql, &[&tx.seen.parts, &keys]).await? {
            if let Some(chunk) = row.get::<_, Option<i64>>(2) {
                next.insert(memory_key(&row, 0)?, (memory_key(&row, 1)?, ChunkKey::from_store(chunk)));
            }
        }
        at.retain_mut(|(commit, key)| match next.get(key) {
            Some((by, chunk)) if by != commit => {
                last.insert(*commit, (*by, *chunk));
                *key = *by;
                true
            }
            _ => false,
        });
    }
    Ok(commits.into_iter().filter_map(|commit| Some((commit, *last.get(&commit)?))).collect())
}
