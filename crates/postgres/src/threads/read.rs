//! Reads the blocks of a thread with their texts, its ledger, and the copies of files that the assistant has.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::blobs::{self, Packed};
use super::{ThreadVersion, count, find_thread, hash, required_thread};
use crate::PostgresStore;
use crate::columns;
use crate::error::{Error, Result};
use crate::transactions::{Transaction, read};
use tiro_base::error::{self, Kind};
use tiro_base::memory;
use tiro_base::scope::Scope;
use tiro_base::thread::{Block, BlockText, FilePlace, LedgerEntry, Part, Stat, Thread, ThreadName};

impl PostgresStore {
    pub(crate) async fn thread(&self, scope: &Scope, name: &ThreadName) -> error::Result<Option<Thread>> {
        let found: error::Result<_> = read!(self, scope, tx => {
            let Some(found) = find_thread(&tx, scope, name).await? else { return Ok(None) };
            let ThreadVersion { owner, seq, epoch, turns } = found;
            let sql = "SELECT is_fixed, \"window\", context, updated, rules FROM threads WHERE owner = $1 AND seq = $2";
            let row = tx.only(sql, &[&owner, &seq]).await?;
            let context = serde_json::from_str(row.try_get(2)?).map_err(|error| {
                Error::new(Kind::Store, "the store holds a thread whose context can't be read").source(error)
            })?;
            let (blocks, bodies) = blocks(&tx, found).await?;
            let thread = Thread {
                epoch,
                turns,
                is_fixed: row.try_get(0)?,
                window: count(&row, 1)?,
                rules: count(&row, 4)?,
                context,
                blocks,
                ledger: ledger(&tx, found).await?,
                updated: Some(row.try_get(3)?),
            };
            Ok(Some((thread, bodies)))
        });
        let Some((mut thread, bodies)) = found? else { return Ok(None) };
        for (block, whole) in thread.blocks.iter_mut().zip(blobs::texts(bodies).await?) {
            if let BlockText::Blob(_, text) = &mut block.text {
                *text = whole;
            }
        }
        Ok(Some(thread))
    }

    pub(crate) async fn copies(
        &self,
        scope: &Scope,
        name: &ThreadName,
        paths: Vec<String>,
    ) -> error::Result<HashMap<String, String>> {
        let found: error::Result<Vec<(String, Option<Packed>)>> = read!(self, scope, tx => {
            let thread = required_thread(&tx, scope, name).await?;
            let rows = tx
                .rows(
                    "SELECT f.path, b.body, b.length FROM thread_files f
                         JOIN blobs b ON b.owner = f.owner AND b.hash = coalesce(f.sent, f.raw)
                     WHERE f.owner = $1 AND f.thread = $2 AND f.path = ANY ($3) AND f.is_inline AND NOT f.is_removed
                         AND b.body IS NOT NULL",
                    &[&thread.owner, &thread.seq, &paths],
                )
                .await?;
            rows.iter().map(|row| Ok((row.try_get(0)?, packed(row, 1)?))).collect()
        });
        let (paths, bodies): (Vec<String>, Vec<Option<Packed>>) = found?.into_iter().unzip();
        let texts = paths.into_iter().zip(blobs::texts(bodies).await?);
        Ok(texts.filter_map(|(path, text)| Some((path, text?))).collect())
    }
}

/// Reads a text that was kept compressed, and its length in the next column; `None` if there is no body.
fn packed(row: &Row, column: usize) -> Result<Option<Packed>> {
    let (body, length): (Option<Vec<u8>>, Option<i64>) = (row.try_get(column)?, row.try_get(column + 1)?);
    Ok(body.map(|body| Packed { length: length.unwrap_or_default(), body }))
}

/// Returns the blocks of a thread, those with texts of their own still without them, and these texts.
async fn blocks(tx: &Transaction, thread: ThreadVersion) -> Result<(Vec<Block>, Vec<Option<Packed>>)> {
    let rows = tx
        .rows(
            "SELECT k.turn, k.part, k.path, k.tokens, m.id, CASE WHEN m.tombstoned_at IS NULL THEN m.text END,
                 m.text_hash, b.hash, b.body, b.length
             FROM thread_blocks k LEFT JOIN memories m ON m.owner = k.owner AND m.seq = k.memory
                 LEFT JOIN blobs b ON b.owner = k.owner AND b.seq = k.blob
             WHERE k.owner = $1 AND k.thread = $2 ORDER BY k.place",
            &[&thread.owner, &thread.seq],
        )
        .await?;
    let (mut blocks, mut bodies) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let (text, body) = match row.try_get::<_, Option<&str>>(4)? {
            Some(_) => (BlockText::Message(columns::id(row, 4)?, marked(row, 5, 6)?), None),
            None => (BlockText::Blob(hash(row, 7)?, None), packed(row, 8)?),
        };
        blocks.push(Block {
            turn: count(row, 0)?,
            part: columns::word(row, 1, Part::parse)?,
            path: row.try_get(2)?,
            tokens: count(row, 3)?,
            text,
        });
        bodies.push(body);
    }
    Ok((blocks, bodies))
}

/// Reads a text; `None` if there is no text. If the text is damaged, so that its hash differs from the column `hash`, a
/// mark is put before it.
pub(super) fn marked(row: &Row, column: usize, hash: usize) -> Result<Option<String>> {
    let Some(text) = row.try_get::<_, Option<String>>(column)? else { return Ok(None) };
    let is_damaged = blake3::hash(text.as_bytes()).as_bytes().as_slice() != row.try_get::<_, &[u8]>(hash)?;
    Ok(Some(memory::marked(text, is_damaged)))
}

async fn ledger(tx: &Transaction, thread: ThreadVersion) -> Result<Vec<LedgerEntry>> {
    let rows = tx
        .rows(
            "SELECT path, is_inline, is_removed, size, mtime, ctime, inode, raw, sent, tokens
             FROM thread_files WHERE owner = $1 AND thread = $2 ORDER BY path COLLATE \"C\"",
            &[&thread.owner, &thread.seq],
        )
        .await?;
    rows.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<LedgerEntry> {
    let raw = hash(row, 7)?;
    let stat = match row.try_get::<_, Option<i64>>(3)? {
        Some(size) => {
            let mtime_ns: i64 = row.try_get(4)?;
            Some(Stat {
                size: size.cast_unsigned(),
                mtime_ns,
                ctime_ns: mtime_ns.wrapping_add(row.try_get(5)?),
                inode: row.try_get::<_, i64>(6)?.cast_unsigned(),
            })
        }
        None => None,
    };
    let is_inline: bool = row.try_get(1)?;
    Ok(LedgerEntry {
        path: row.try_get(0)?,
        place: if is_inline { FilePlace::Inline } else { FilePlace::Overflow },
        stat,
        raw,
        sent: match row.try_get::<_, Option<&[u8]>>(8)? {
            Some(_) => hash(row, 8)?,
            None => raw,
        },
        tokens: count(row, 9)?,
        is_removed: row.try_get(2)?,
    })
}
