//! Chunks that wait for an embedding.

use std::ops::Range;

use rusqlite::blob::Blob;
use rusqlite::{Connection, params};

use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::keys::key;
use crate::read::parts;
use crate::read::segments;
use crate::write::chunks;
use tiro_base::error;
use tiro_base::memory::{Content, Kind, Role};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::PendingChunk;

/// Selects the chunks of an owner that wait for an embedding, the oldest first. The join begins with the queue, which
/// is already in this order. A join that began with the memories would visit and sort all memories for each batch.
const WAITING: &str =
    "SELECT p.chunk, m.id, c.start_byte, m.kind, m.role, m.speaker, m.title, m.path, s.name, m.branch,
         m.topic, m.time, c.end_byte, m.seq
     FROM pending p CROSS JOIN chunks c ON c.seq = p.chunk CROSS JOIN memories m ON m.seq = c.memory
     LEFT JOIN sessions s ON s.seq = m.session
     WHERE m.owner = ?1 AND (?3 IS NULL OR ?3 = (m.kind IN (SELECT value FROM json_each(?4))))
     ORDER BY p.chunk LIMIT ?2";

impl SqliteStore {
    pub(crate) async fn pending(&self, scope: &Scope) -> error::Result<usize> {
        self.read(scope, |_, connection, scope| pending(connection, scope)).await
    }

    pub(crate) async fn pending_chunks(
        &self,
        scope: &Scope,
        content: Option<Content>,
        limit: usize,
    ) -> error::Result<Vec<PendingChunk>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(WAITING)?;
            let mut texts = Texts::of(connection);
            let is_code = content.map(|content| content == Content::Code);
            let mut rows =
                statement.query(params![scope.tenant.as_str(), limit as i64, is_code, code_kinds()])?;
            let mut chunks = Vec::new();
            while let Some(row) = rows.next()? {
                let (start, end): (i64, i64) = (row.get(2)?, row.get(12)?);
                chunks.push(PendingChunk {
                    key: key(row, 0)?,
                    memory: columns::id(row, 1)?,
                    start: start as usize,
                    text: texts.piece(row.get(13)?, start as usize..end as usize)?,
                    kind: Kind::parse(&row.get::<_, String>(3)?).unwrap_or(Kind::Message),
                    role: row.get::<_, Option<String>>(4)?.and_then(|word| Role::parse(&word)),
                    speaker: row.get(5)?,
                    title: row.get(6)?,
                    path: row.get(7)?,
                    session: row.get::<_, Option<String>>(8)?.and_then(|name| SessionId::parse(&name)),
                    branch: row.get(9)?,
                    topic: row.get(10)?,
                    time: row.get(11)?,
                });
            }
            Ok(chunks)
        })
        .await
    }

    pub(crate) async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        embeddings: Vec<(PendingChunk, Vec<f32>)>,
    ) -> error::Result<()> {
        let space = space.to_owned();
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            let mut embedded = Vec::with_capacity(embeddings.len());
            for (chunk, embedding) in embeddings {
                let waited = connection
                    .prepare_cached(
                        "DELETE FROM pending WHERE chunk = ?1 AND EXISTS (
                             SELECT 1 FROM chunks c JOIN memories m ON m.seq = c.memory
                             WHERE c.seq = ?1 AND c.start_byte = ?2 AND m.id = ?3 AND m.owner IN (?4, ?5))",
                    )?
                    .execute(params![
                        chunk.key.in_store(),
                        chunk.start as i64,
                        chunk.memory.as_str(),
                        shared,
                        mine
                    ])?;
                if waited == 1 {
                    chunks::save_vector(connection, chunk.key.in_store(), &space, &embedding)?;
                    embedded.push(chunk.key.in_store());
                }
            }
            segments::bump(connection, &embedded)
        })
        .await
    }

    pub(crate) async fn mark_other_spaces_pending(
        &self,
        scope: &Scope,
        prose: &str,
        code: &str,
    ) -> error::Result<usize> {
        let (prose, code) = (prose.to_owned(), code.to_owned());
        self.write(scope, move |connection, scope| {
            let [shared, mine] = parts::both(scope);
            let values = params![prose, code, code_kinds(), shared, mine];
            let others = "vectors WHERE space <> (SELECT CASE m.kind IN (SELECT value FROM json_each(?3))
                    WHEN 1 THEN ?2 ELSE ?1 END
                FROM chunks c CROSS JOIN memories m ON m.seq = c.memory
                WHERE c.seq = vectors.chunk AND m.owner IN (?4, ?5))";
            let logged = format!("INSERT INTO changes (chunk, change) SELECT chunk, 'removed' FROM {others}");
            connection.execute(&logged, values)?;
            let waiting = format!("INSERT OR IGNORE INTO pending (chunk) SELECT chunk FROM {others}");
            let marked = connection.execute(&waiting, values)?;
            connection.execute(&format!("DELETE FROM {others}"), values)?;
            Ok(marked)
        })
        .await
    }
}

/// Returns how many chunks of the owner have no embedding yet.
pub(crate) fn pending(connection: &Connection, scope: &Scope) -> Result<usize> {
    let count: i64 = connection
        .prepare_cached("SELECT coalesce(sum(pending), 0) FROM owner_counts WHERE owner = ?1")?
        .query_row([scope.tenant.as_str()], |row| row.get(0))?;
    Ok(count as usize)
}

/// Returns the words for the kinds whose texts are code, as a JSON array.
fn code_kinds() -> String {
    let code = Kind::ALL.iter().filter(|kind| kind.content() == Content::Code);
    let words: Vec<String> = code.map(|kind| format!("\"{kind}\"")).collect();
    format!("[{}]", words.join(","))
}

/// Reads ranges of texts without reading the whole texts.
struct Texts<'a> {
    connection: &'a Connection,
    /// The row of the memory whose text was opened last, and the open text.
    open: Option<(i64, Blob<'a>)>,
}

impl<'a> Texts<'a> {
    fn of(connection: &'a Connection) -> Texts<'a> {
        Texts { connection, open: None }
    }

    /// Returns the bytes `range` of the text of `memory`. A range that goes beyond the text is cut at its end.
    /// The result is empty if these bytes are not UTF-8.
    fn piece(&mut self, memory: i64, range: Range<usize>) -> Result<String> {
        let text = match self.open.take() {
            Some((open, text)) if open == memory => text,
            Some((_, mut text)) => {
                text.reopen(memory)?;
                text
            }
            None => self.connection.blob_open("main", "memories", "text", memory, true)?,
        };
        let mut piece = vec![0; range.end.min(text.len()).saturating_sub(range.start)];
        text.read_at_exact(&mut piece, range.start.min(text.len()))?;
        self.open = Some((memory, text));
        Ok(String::from_utf8(piece).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::scope::{ProjectId, Scope, TenantId};
    use tiro_store::Flavour;

    #[tokio::test]
    async fn pending_chunks_are_read_in_order_without_visiting_others() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let scope = Scope::own(TenantId::new("ines"), project);
        let plan = store.read(&scope, |_, connection, _| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {WAITING}"))?;
            let steps = statement.query_map(params!["ines", 32, None::<bool>, code_kinds()], |row| {
                row.get::<_, String>("detail")
            })?;
            Ok(steps.collect::<Result<Vec<_>, _>>()?)
        });
        let plan = plan.await.unwrap();
        assert_eq!(plan[0], "SCAN p", "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    }

    #[tokio::test]
    async fn pieces_of_texts_are_those_of_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectId::from_random([7; 8]);
        let store =
            SqliteStore::open(&folder.path().join("tiro.db"), Flavour::Project, project.clone()).unwrap();
        let scope = Scope::own(TenantId::new("ines"), project);
        let texts = ["één twee".to_owned(), "漢字かな".repeat(50_000), String::new()];
        let inserted = store.write(&scope, move |connection, scope| {
            for (seq, text) in texts.iter().enumerate() {
                connection.execute(
                    "INSERT INTO memories (seq, owner, id, kind, provenance, time, stored_at, tokens, text_hash, text)
                     VALUES (?1, ?2, ?1, 'fact', 'user_said', 0, 0, 1, x'00', ?3)",
                    params![seq as i64, scope.tenant.as_str(), text],
                )?;
            }
            Ok(())
        });
        inserted.await.unwrap();
        let read = store.read(&scope, |_, connection, _| {
            let mut texts = Texts::of(connection);
            let far = 599_988..600_000;
            let asked = [(0, 0..5), (1, far.clone()), (1, 0..3), (0, 6..10), (0, 6..99), (2, 0..1), (1, far)];
            asked.into_iter().map(|(memory, range)| texts.piece(memory, range)).collect::<Result<Vec<_>>>()
        });
        assert_eq!(read.await.unwrap(), ["één", "漢字かな", "漢", "twee", "twee", "", "漢字かな"]);
    }
}
