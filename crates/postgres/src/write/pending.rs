//! Chunks that wait for an embedding.

use std::collections::HashSet;

use pgvector::HalfVector;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{id, number, size, word};
use crate::error::Result;
use crate::search::label::label_sql;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Content, Kind, Role};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ChunkKey, PendingChunk};

/// Selects the chunks that wait for an embedding, the oldest first. The join begins with the queue of each part, which is
/// already in this order, and ends when there are enough. A join that began with the memories would visit and sort all
/// memories for each batch. A range beyond the text is cut at its end.
const WAITING: &str = "
    SELECT w.* FROM unnest($1::bigint[]) o (owner) CROSS JOIN LATERAL (
        SELECT p.chunk, m.id, c.start_byte, m.kind, m.role, m.speaker, m.title, m.path, s.name, m.branch, m.topic, m.time,
            substr(convert_to(m.text, 'UTF8'), c.start_byte::int + 1, (c.end_byte - c.start_byte)::int)
        FROM pending p JOIN chunks c ON c.owner = p.owner AND c.seq = p.chunk
        JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
        LEFT JOIN sessions s ON s.owner = m.owner AND s.seq = m.session
        WHERE p.owner = o.owner AND ($3::bool IS NULL OR $3 = (m.kind = ANY ($4)))
        ORDER BY p.chunk LIMIT $2) w
    ORDER BY w.chunk LIMIT $2";

impl PostgresStore {
    pub(crate) async fn pending(&self, scope: &Scope) -> error::Result<usize> {
        read!(self, scope, tx => { pending(&tx).await })
    }

    pub(crate) async fn pending_chunks(
        &self,
        scope: &Scope,
        content: Option<Content>,
        limit: usize,
    ) -> error::Result<Vec<PendingChunk>> {
        read!(self, scope, tx => {
            let is_code = content.map(|content| content == Content::Code);
            let rows = tx.rows(WAITING, &[&tx.seen.parts, &number(limit), &is_code, &code_kinds()]).await?;
            rows.iter().map(waiting).collect()
        })
    }

    pub(crate) async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        embeddings: Vec<(PendingChunk, Vec<f32>)>,
    ) -> error::Result<()> {
        write!(self, scope, tx => { save(&tx, space, &embeddings).await })
    }

    pub(crate) async fn mark_other_spaces_pending(
        &self,
        scope: &Scope,
        prose: &str,
        code: &str,
    ) -> error::Result<usize> {
        write!(self, scope, tx => {
            let sql = "WITH others AS (
                    DELETE FROM vectors v USING chunks c, memories m
                    WHERE v.owner = ANY ($1) AND c.owner = v.owner AND c.seq = v.chunk
                        AND m.owner = c.owner AND m.seq = c.memory
                        AND v.space <> CASE WHEN m.kind = ANY ($4) THEN $3 ELSE $2 END
                    RETURNING v.owner, v.chunk)
                INSERT INTO pending (owner, chunk) SELECT owner, chunk FROM others ON CONFLICT DO NOTHING";
            let marked = tx.execute(sql, &[&tx.seen.parts, &prose, &code, &code_kinds()]).await?;
            Ok(usize::try_from(marked).unwrap_or(usize::MAX))
        })
    }
}

/// Returns how many chunks that the reader sees have no embedding yet.
pub(crate) async fn pending(tx: &Transaction) -> Result<usize> {
    let row = tx.only("SELECT count(*) FROM pending WHERE owner = ANY ($1)", &[&tx.seen.parts]).await?;
    size(&row, 0)
}

/// Stores the embeddings of those chunks that still wait for one, and gives new versions to their sessions, because
/// searches by meaning can now find the chunks.
async fn save(tx: &Transaction, space: &str, embeddings: &[(PendingChunk, Vec<f32>)]) -> Result<()> {
    let mut met = HashSet::new();
    let first: Vec<&(PendingChunk, Vec<f32>)> =
        embeddings.iter().filter(|(chunk, _)| met.insert(chunk.key)).collect();
    let keys: Vec<i64> = first.iter().map(|(chunk, _)| chunk.key.in_store()).collect();
    let starts: Vec<i64> = first.iter().map(|(chunk, _)| number(chunk.start)).collect();
    let ids: Vec<&str> = first.iter().map(|(chunk, _)| chunk.memory.as_str()).collect();
    let vectors: Vec<HalfVector> =
        first.iter().map(|(_, embedding)| HalfVector::from_f32_slice(embedding)).collect();
    // A chunk that was removed meanwhile is known by its memory and its place.
    let sql = format!(
        "WITH waited AS (
            DELETE FROM pending p USING unnest($2::bigint[], $3::bigint[], $4::text[]) u (chunk, start, id), chunks c,
                memories m
            WHERE p.owner = ANY ($1) AND p.chunk = u.chunk AND c.owner = p.owner AND c.seq = p.chunk
                AND c.start_byte = u.start AND m.owner = c.owner AND m.seq = c.memory AND m.id = u.id
            RETURNING p.owner, p.chunk, m.session, {} AS label),
        stored AS (
            INSERT INTO vectors (owner, chunk, space, embedding, label)
            SELECT w.owner, w.chunk, $6, e.embedding, w.label FROM waited w
            JOIN unnest($2::bigint[], $5::halfvec[]) e (chunk, embedding) ON e.chunk = w.chunk
            ON CONFLICT (owner, chunk) DO UPDATE SET space = excluded.space, embedding = excluded.embedding,
                label = excluded.label)
        SELECT DISTINCT owner, session FROM waited",
        label_sql()
    );
    let rows = tx.rows(&sql, &[&tx.seen.parts, &keys, &starts, &ids, &vectors, &space]).await?;
    if !rows.is_empty() {
        let owners: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let sessions: Vec<Option<i64>> = rows.iter().map(|row| row.get(1)).collect();
        tx.rows("SELECT touch_sessions($1, $2)::text", &[&owners, &sessions]).await?;
    }
    Ok(())
}

fn waiting(row: &Row) -> Result<PendingChunk> {
    Ok(PendingChunk {
        key: ChunkKey::from_store(row.try_get(0)?),
        memory: id(row, 1)?,
        start: size(row, 2)?,
        text: String::from_utf8(row.try_get(12)?).unwrap_or_default(),
        kind: word(row, 3, Kind::parse)?,
        role: row.try_get::<_, Option<&str>>(4)?.and_then(Role::parse),
        speaker: row.try_get(5)?,
        title: row.try_get(6)?,
        path: row.try_get(7)?,
        session: row.try_get::<_, Option<&str>>(8)?.and_then(SessionId::parse),
        branch: row.try_get(9)?,
        topic: row.try_get(10)?,
        time: row.try_get(11)?,
    })
}

/// Returns the words for the kinds whose texts are code.
fn code_kinds() -> Vec<&'static str> {
    let code = Kind::ALL.iter().filter(|kind| kind.content() == Content::Code);
    code.map(|kind| kind.as_str()).collect()
}
