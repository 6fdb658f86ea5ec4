//! Reads columns that contain a word, an id or a key.

use tokio_postgres::Row;

use crate::error::{Error, Result};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::memory::{Kind, Memory, MemoryId, MemoryKey, Provenance, Role};
use tiro_base::scope::{AuthorId, SessionId, Visibility};
use tiro_text::tuning::CHUNK_TOKENS;

/// The columns of a memory `m`, of its session `s` and of its part `o`, in the order in which [`memory`] reads them.
pub(crate) const MEMORY: &str =
    "m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title,
    m.topic, m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed,
    m.text_hash, m.author, o.author";

/// The tables from which [`MEMORY`] is read.
pub(crate) const MEMORY_FROM: &str = "memories m JOIN owners o ON o.seq = m.owner
    LEFT JOIN sessions s ON s.owner = m.owner AND s.seq = m.session";

/// Returns the SQL condition that the memory `m` is a long answer, which is a message of an assistant that is longer
/// than one chunk.
pub(crate) fn is_answer() -> String {
    format!("(m.kind = 'message' AND m.role IS NOT DISTINCT FROM 'assistant' AND m.tokens > {CHUNK_TOKENS})")
}

/// Reads a memory from the columns [`MEMORY`].
pub(crate) fn memory(row: &Row) -> Result<Memory> {
    let text: String = row.try_get(4)?;
    let hash: Vec<u8> = row.try_get(20)?;
    Ok(Memory {
        id: id(row, 0)?,
        key: memory_key(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        provenance: word(row, 3, Provenance::parse)?,
        author: AuthorId::new(row.try_get::<_, String>(21)?),
        visibility: match row.try_get::<_, &str>(22)? {
            "" => Visibility::Project,
            _ => Visibility::Private,
        },
        session: row.try_get::<_, Option<&str>>(5)?.and_then(SessionId::parse),
        ordinal: row.try_get(6)?,
        role: row.try_get::<_, Option<&str>>(7)?.and_then(Role::parse),
        speaker: row.try_get(8)?,
        title: row.try_get(9)?,
        topic: row.try_get(10)?,
        source_id: row.try_get(11)?,
        path: row.try_get(12)?,
        branch: row.try_get(13)?,
        head_sha: row.try_get(14)?,
        time: row.try_get(15)?,
        importance: row.try_get(16)?,
        marked: row.try_get(17)?,
        tokens: row.try_get(18)?,
        indexed: row.try_get(19)?,
        is_damaged: blake3::hash(text.as_bytes()).as_bytes().as_slice() != hash,
        text,
    })
}

/// Reads the id of a memory.
pub(crate) fn id(row: &Row, column: usize) -> Result<MemoryId> {
    word(row, column, MemoryId::parse)
}

/// Reads the key of a memory.
pub(crate) fn memory_key(row: &Row, column: usize) -> Result<MemoryKey> {
    Ok(MemoryKey::from_store(row.try_get(column)?))
}

/// Reads a number that is never negative, such as a place in a text.
pub(crate) fn size(row: &Row, column: usize) -> Result<usize> {
    Ok(usize::try_from(row.try_get::<_, i64>(column)?).unwrap_or_default())
}

/// Reads a column that contains a word, and parses the word with `parse`. Errors if `parse` doesn't know the word. Only
/// a newer Tiro stores such a word.
pub(crate) fn word<T>(row: &Row, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text: &str = row.try_get(column)?;
    parse(text)
        .ok_or_else(|| Error::new(ErrorKind::Store, format!("the store holds the unknown word `{text}`")))
}

/// Returns a count or a limit as PostgreSQL takes it.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
