//! Makes the rows of stored memories in the text index again.

use tokio_postgres::Row;

use crate::columns::{size, word};
use crate::error::Result;
use crate::search::index::{self, IndexRow, PATHS_INDEXED};
use crate::transactions::Transaction;
use tiro_base::memory::{Kind, Role};
use tiro_text::chunk::index_text::{self, About};

/// Indexes again the chunks of memories that are not messages of a session. Called when the indexed texts of the
/// memories have changed.
pub(crate) async fn reindex_memories(tx: &Transaction, owners: &[i64], seqs: &[i64]) -> Result<()> {
    let sql =
        "SELECT m.owner, m.kind, m.role, m.speaker, m.title, m.topic, m.path, m.time, m.text, m.indexed,
                   c.seq, c.start_byte, c.end_byte, c.ordinal,
                   CASE WHEN m.kind = 'commit' AND c.ordinal < $3 THEN array_to_string(ARRAY(
                       SELECT p.path FROM memory_paths p WHERE p.owner = m.owner AND p.memory = m.seq
                       ORDER BY p.path COLLATE \"C\" LIMIT $4), chr(10)) ELSE '' END
               FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, seq)
               JOIN memories m ON m.owner = u.owner AND m.seq = u.seq
               JOIN chunks c ON c.owner = m.owner AND c.memory = m.seq";
    let most = PATHS_INDEXED as i64;
    let rows = tx.rows(sql, &[&owners, &seqs, &index_text::WITH_CONTEXT, &most]).await?;
    let rows: Vec<IndexRow> = rows.iter().map(index_row).collect::<Result<_>>()?;
    index::save(tx, &rows).await
}

fn index_row(row: &Row) -> Result<IndexRow> {
    let about = About {
        kind: word(row, 1, Kind::parse)?,
        role: row.try_get::<_, Option<&str>>(2)?.and_then(Role::parse),
        speaker: row.try_get(3)?,
        title: row.try_get(4)?,
        topic: row.try_get(5)?,
        path: row.try_get(6)?,
        time: row.try_get(7)?,
    };
    let (text, instead): (&str, Option<&str>) = (row.try_get(8)?, row.try_get(9)?);
    let piece = text.get(size(row, 11)?..size(row, 12)?).unwrap_or_default();
    let piece = instead.filter(|_| row.get::<_, i64>(13) == 0).unwrap_or(piece);
    let text = about.indexed(piece, row.try_get(14)?);
    Ok(IndexRow { owner: row.try_get(0)?, chunk: row.try_get(10)?, group: about.kind.group(), text })
}
