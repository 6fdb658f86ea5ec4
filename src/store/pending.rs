//! Work that was put off: chunks without an embedding, and the lease that lets one process at a time do it.

use rusqlite::params;

use super::{Store, segments, write};
use crate::error::Result;
use crate::memory::{Kind, Millis, Role};
use crate::scope::{Scope, SessionId};

/// A chunk that waits for its embedding, with what its context is made of.
#[derive(Clone, Debug)]
pub struct PendingChunk {
    /// The chunk's row.
    pub seq: i64,
    /// The piece of text.
    pub text: String,
    /// What the memory is.
    pub kind: Kind,
    /// Who speaks.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// A line that names the memory.
    pub title: Option<String>,
    /// The file it speaks of.
    pub path: Option<String>,
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The tag it carries.
    pub topic: Option<String>,
    /// When it was made.
    pub time: Millis,
}

impl Store {
    /// Returns how many chunks of the scope's owner wait for an embedding.
    pub async fn pending(&self, scope: &Scope) -> Result<usize> {
        self.read(scope, |_, connection, scope| {
            let owner = scope.owner.as_str();
            // Most stores have one owner, whose chunks needn't be looked up one by one.
            let is_shared = connection
                .prepare_cached("SELECT 1 FROM memories WHERE owner < ?1 UNION ALL SELECT 1 FROM memories WHERE owner > ?1 LIMIT 1")?
                .exists([owner])?;
            let count: i64 = match is_shared {
                false => connection.prepare_cached("SELECT count(*) FROM pending")?.query_row([], |row| row.get(0))?,
                true => connection
                    .prepare_cached(
                        "SELECT count(*) FROM pending p JOIN chunks c ON c.seq = p.chunk
                         JOIN memories m ON m.seq = c.memory WHERE m.owner = ?1",
                    )?
                    .query_row([owner], |row| row.get(0))?,
            };
            Ok(count as usize)
        })
        .await
    }

    /// Returns up to `limit` chunks of the scope's owner that wait, oldest first.
    pub async fn pending_chunks(&self, scope: &Scope, limit: usize) -> Result<Vec<PendingChunk>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT c.seq, m.text, c.start_byte, c.end_byte, m.kind, m.role, m.speaker, m.title, m.path, s.name,
                     m.branch, m.topic, m.time
                 FROM pending p JOIN chunks c ON c.seq = p.chunk JOIN memories m ON m.seq = c.memory
                 LEFT JOIN sessions s ON s.seq = m.session
                 WHERE m.owner = ?1 ORDER BY p.chunk LIMIT ?2",
            )?;
            let rows = statement.query_map(params![scope.owner.as_str(), limit as i64], |row| {
                let text: String = row.get(1)?;
                let (start, end): (i64, i64) = (row.get(2)?, row.get(3)?);
                Ok(PendingChunk {
                    seq: row.get(0)?,
                    text: text.get(start as usize..end as usize).unwrap_or_default().to_owned(),
                    kind: Kind::parse(&row.get::<_, String>(4)?).unwrap_or(Kind::Message),
                    role: row.get::<_, Option<String>>(5)?.and_then(|word| Role::parse(&word)),
                    speaker: row.get(6)?,
                    title: row.get(7)?,
                    path: row.get(8)?,
                    session: row.get::<_, Option<String>>(9)?.and_then(|name| SessionId::parse(&name)),
                    branch: row.get(10)?,
                    topic: row.get(11)?,
                    time: row.get(12)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Stores embeddings of the vector space `space`; chunks that are gone by now are passed over.
    pub async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        embeddings: Vec<(i64, Vec<f32>)>,
    ) -> Result<()> {
        let space = space.to_owned();
        self.write(scope, move |connection, scope| {
            let mut embedded = Vec::with_capacity(embeddings.len());
            for (chunk, embedding) in embeddings {
                let waited =
                    connection.prepare_cached("DELETE FROM pending WHERE chunk = ?1")?.execute([chunk])?;
                if waited == 1 {
                    write::save_vector(connection, chunk, &space, &embedding)?;
                    embedded.push(chunk);
                }
            }
            segments::bump(connection, scope.owner.as_str(), &embedded)
        })
        .await
    }

    /// Marks every chunk whose embedding is of another space than `space` as waiting; returns how many.
    pub async fn mark_other_spaces_pending(&self, scope: &Scope, space: &str) -> Result<usize> {
        let space = space.to_owned();
        self.write(scope, move |connection, _| {
            connection.execute(
                "INSERT INTO changes (chunk, change) SELECT chunk, 'removed' FROM vectors WHERE space <> ?1",
                [&space],
            )?;
            let marked = connection.execute(
                "INSERT OR IGNORE INTO pending (chunk) SELECT chunk FROM vectors WHERE space <> ?1",
                [&space],
            )?;
            connection.execute("DELETE FROM vectors WHERE space <> ?1", [&space])?;
            Ok(marked)
        })
        .await
    }

    /// Takes or renews the lease `name` for `holder` until `expires`; `false` where somebody else holds it at `now`.
    pub async fn lease(
        &self,
        scope: &Scope,
        name: &str,
        holder: &str,
        now: Millis,
        expires: Millis,
    ) -> Result<bool> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.write(scope, move |connection, _| {
            let taken = connection
                .prepare_cached(
                    "INSERT INTO leases (name, holder, expires) VALUES (?1, ?2, ?4)
                     ON CONFLICT (name) DO UPDATE SET holder = ?2, expires = ?4
                     WHERE holder = ?2 OR expires <= ?3 OR expires > ?3 + 3600000",
                )?
                .execute(params![name, holder, now, expires])?;
            Ok(taken == 1)
        })
        .await
    }

    /// Gives the lease `name` back where `holder` holds it.
    pub async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.write(scope, move |connection, _| {
            connection
                .prepare_cached("DELETE FROM leases WHERE name = ?1 AND holder = ?2")?
                .execute((name, holder))?;
            Ok(())
        })
        .await
    }

    /// Returns where the import of `source` stands, as its last `set_import_cursor` left it.
    pub async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>> {
        let source = source.to_owned();
        self.read(scope, move |_, connection, scope| {
            use rusqlite::OptionalExtension;
            Ok(connection
                .prepare_cached("SELECT cursor FROM imports WHERE owner = ?1 AND source = ?2")?
                .query_row((scope.owner.as_str(), source), |row| row.get(0))
                .optional()?)
        })
        .await
    }

    /// Records where the import of `source` stands.
    pub async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        now: Millis,
    ) -> Result<()> {
        let (source, cursor) = (source.to_owned(), cursor.to_owned());
        self.write(scope, move |connection, scope| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO imports (owner, source, cursor, at) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((scope.owner.as_str(), source, cursor, now))?;
            Ok(())
        })
        .await
    }
}
