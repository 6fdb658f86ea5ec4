//! The chunks of a memory, with their vectors and their rows of the text index.

use rusqlite::{Connection, OptionalExtension};

use crate::SqliteStore;
use crate::error::Result;
use crate::file::sums;
use crate::read::memories;
use crate::read::parts;
use crate::vectors::encode_f16;
use tiro_base::error;
use tiro_base::memory::{Draft, Group, Memory, MemoryKey};
use tiro_base::scope::Scope;
use tiro_store::PreparedChunk;
use tiro_text::chunk::index_text::{self, About, IndexText};

/// The maximum number of paths of a commit that are indexed as context of its text. Arbitrary: a commit that
/// changes a whole tree isn't about any single file.
const PATHS_INDEXED: usize = 64;

impl SqliteStore {
    pub(crate) async fn derived_without_chunk(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        self.read(scope, move |_, connection, scope| {
            let sql = format!(
                "SELECT {} FROM memories m LEFT JOIN sessions s ON s.seq = m.session
                 WHERE m.owner = ?1 AND m.kind IN ('fact', 'decision') AND m.provenance = 'derived'
                     AND m.tombstoned_at IS NULL AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.memory = m.seq)
                 LIMIT ?2",
                memories::COLUMNS
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map((scope.tenant.as_str(), limit), memories::memory)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn add_chunks(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            for (seq, draft, chunks) in &found {
                // After the memory was read, it may have been forgotten, or another process may have stored its chunks.
                let is_bare = connection
                    .prepare_cached(
                        "SELECT 1 FROM memories m WHERE m.seq = ?1 AND m.owner IN (?2, ?3) AND m.tombstoned_at IS NULL
                             AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.memory = m.seq)",
                    )?
                    .query_row((seq.in_store(), scope.tenant.as_str(), parts::private(scope)), |_| Ok(()))
                    .optional()?;
                if is_bare.is_some() {
                    save_chunks(connection, seq.in_store(), draft, chunks, true)?;
                }
            }
            Ok(())
        })
        .await
    }
}

/// Stores the chunks of the memory in row `memory`, and indexes them if `is_indexed`.
pub(crate) fn save_chunks(
    connection: &Connection,
    memory: i64,
    draft: &Draft,
    chunks: &[PreparedChunk],
    is_indexed: bool,
) -> Result<()> {
    let paths = indexed_paths(draft.commit.iter().flat_map(|commit| &commit.files));
    for (place, chunk) in chunks.iter().enumerate() {
        let chunk_seq = save_chunk(connection, memory, place, chunk)?;
        if is_indexed {
            // If another text is indexed in place of the memory's own text, the row of the first chunk contains that
            // text.
            let instead = draft.indexed.as_deref().filter(|_| place == 0);
            let piece = instead.unwrap_or(&draft.text[chunk.start..chunk.end]);
            let paths = if (place as i64) < index_text::WITH_CONTEXT { paths.as_str() } else { "" };
            let row = About::from(draft).indexed(piece, paths);
            index(connection, chunk_seq, draft.kind.group(), &row)?;
        }
    }
    Ok(())
}

/// Returns the paths of a commit that are indexed as context of its text, one on each line.
pub(super) fn indexed_paths<'p>(files: impl Iterator<Item = &'p String>) -> String {
    files.take(PATHS_INDEXED).map(String::as_str).collect::<Vec<_>>().join("\n")
}

pub(crate) fn save_chunk(
    connection: &Connection,
    memory: i64,
    ordinal: usize,
    chunk: &PreparedChunk,
) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO chunks (memory, ordinal, start_byte, end_byte, tokens) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((memory, ordinal as i64, chunk.start as i64, chunk.end as i64, chunk.tokens))?;
    let seq = connection.last_insert_rowid();
    match &chunk.embedding {
        Some((space, embedding)) => save_vector(connection, seq, space, embedding)?,
        None => {
            connection.prepare_cached("INSERT INTO pending (chunk) VALUES (?1)")?.execute([seq])?;
        }
    }
    Ok(seq)
}

pub(crate) fn index(connection: &Connection, chunk: i64, group: Group, row: &IndexText) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO text_index (rowid, facets, speaker, header, text, context) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute((chunk, facet(group), &row.speaker, &row.header, &row.text, &row.context))?;
    Ok(())
}

/// Stores the embedding of a chunk, and appends the change to the log from which the caches of vectors are
/// updated.
pub(crate) fn save_vector(connection: &Connection, chunk: i64, space: &str, embedding: &[f32]) -> Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO vectors (chunk, space, embedding) VALUES (?1, ?2, ?3)")?
        .execute((chunk, space, encode_f16(embedding)))?;
    sums::of_vector(connection, chunk)?;
    connection
        .prepare_cached("INSERT INTO changes (chunk, change) VALUES (?1, 'added')")?
        .execute([chunk])?;
    Ok(())
}

/// Returns the word in the text index that marks the documents of `group`.
pub(crate) fn facet(group: Group) -> String {
    format!("group{group}")
}
