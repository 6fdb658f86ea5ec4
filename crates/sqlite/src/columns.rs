//! Reads columns that contain a word or an id, and makes conditions on several columns.

use rusqlite::Row;

use tiro_base::memory::MemoryId;
use tiro_text::tuning::CHUNK_TOKENS;

/// Returns the SQL condition that the memory `m` is a long answer, which is a message of an assistant that is longer
/// than one chunk.
pub(crate) fn is_answer() -> String {
    format!("(m.kind = 'message' AND m.role IS 'assistant' AND m.tokens > {CHUNK_TOKENS})")
}

/// The columns of a memory `m` and of its session `s`, in the order in which `read/memories.rs` reads them.
pub(crate) const MEMORY: &str =
    "m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title,
    m.topic, m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed,
    m.text_hash, m.owner, m.stored_at, m.tombstoned_at, (SELECT sum FROM memory_sums WHERE memory = m.seq),
    m.author, m.visibility";

/// Reads the id of a memory.
pub(crate) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<MemoryId> {
    word(row, column, MemoryId::parse)
}

/// Reads a column that contains a word, and parses the word with `parse`. Errors if `parse` doesn't know the word. Only
/// a damaged file, or the file of a newer Tiro, contains such a word.
pub(crate) fn word<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| {
        let message = format!("the store holds the unknown word `{text}`");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, message.into())
    })
}
