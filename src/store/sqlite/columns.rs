//! Columns that hold a word or an id.

use rusqlite::Row;

use crate::memory::MemoryId;

/// Reads the id of a memory.
pub(in crate::store::sqlite) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<MemoryId> {
    word(row, column, MemoryId::parse)
}

/// Reads a column that holds a word, and parses the word with `parse`. Errors if `parse` doesn't know the word:
/// only a damaged file, or the file of a newer Tiro, contains such a word.
pub(in crate::store::sqlite) fn word<T>(
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
