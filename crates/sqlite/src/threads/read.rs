//! Reads the blocks of a thread with their texts, its ledger, and the copies of files that the assistant has.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use super::blobs::{Inflater, PART};
use super::{find_thread, required_thread};
use crate::SqliteStore;
use crate::columns;
use crate::error::{Error, Result};
use crate::file::verify;
use tiro_base::error::{self, Kind};
use tiro_base::memory::MemoryId;
use tiro_base::parallel::on_all_cores;
use tiro_base::scope::Scope;
use tiro_base::thread::{
    Block, BlockText, ContentHash, FilePlace, LedgerEntry, Part, Stat, Thread, ThreadName,
};

impl SqliteStore {
    pub(crate) async fn thread(&self, scope: &Scope, name: &ThreadName) -> error::Result<Option<Thread>> {
        let name = name.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(found) = find_thread(connection, scope, &name)? else { return Ok(None) };
            let sql = "SELECT is_fixed, window, context, updated, rules FROM threads WHERE seq = ?1";
            let (is_fixed, window, context, updated, rules) =
                connection.prepare_cached(sql)?.query_row([found.seq], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get(3)?, row.get(4)?))
                })?;
            let context = serde_json::from_str(&context).map_err(|error| {
                Error::new(Kind::Store, "the store holds a thread whose context can't be read").source(error)
            })?;
            Ok(Some(Thread {
                epoch: found.epoch,
                turns: found.turns,
                is_fixed,
                window,
                rules,
                context,
                blocks: blocks(connection, found.seq)?,
                ledger: ledger(connection, found.seq)?,
                updated: Some(updated),
            }))
        })
        .await
    }

    pub(crate) async fn copies(
        &self,
        scope: &Scope,
        name: &ThreadName,
        paths: Vec<String>,
    ) -> error::Result<HashMap<String, String>> {
        let name = name.clone();
        self.read(scope, move |_, connection, scope| {
            let thread = required_thread(connection, scope, &name)?.seq;
            let mut statement = connection.prepare_cached(
                "SELECT b.body, b.length FROM thread_files f
                     JOIN blobs b ON b.owner = ?3 AND b.hash = coalesce(f.sent, f.raw)
                 WHERE f.thread = ?1 AND f.path = ?2 AND f.is_inline AND NOT f.is_removed",
            )?;
            let mut inflater = Inflater::new();
            let mut copies = HashMap::with_capacity(paths.len());
            for path in paths {
                let found = statement
                    .query_row((thread, &path, scope.tenant.as_str()), |row| text(row, 0, &mut inflater))
                    .optional()?;
                copies.extend(found.flatten().map(|text| (path, text)));
            }
            Ok(copies)
        })
        .await
    }
}

/// Returns the text whose body is in `column` and whose length is in the next column. Returns `None` if there is no
/// body.
fn text(row: &Row<'_>, column: usize, inflater: &mut Inflater) -> rusqlite::Result<Option<String>> {
    let length: i64 = row.get(column + 1)?;
    Ok(row.get_ref(column)?.as_blob_or_null()?.and_then(|body| inflater.text(body, length)))
}

fn blocks(connection: &Connection, thread: i64) -> Result<Vec<Block>> {
    let mut statement = connection.prepare_cached(
        "SELECT k.turn, k.part, k.path, k.tokens, m.id, iif(m.tombstoned_at IS NULL, m.text, NULL),
             b.hash, b.body, b.length, m.text_hash
         FROM thread_blocks k LEFT JOIN memories m ON m.seq = k.memory LEFT JOIN blobs b ON b.seq = k.blob
         WHERE k.thread = ?1 ORDER BY k.place",
    )?;
    let rows = statement.query_map([thread], |row| {
        let (text, body) = match row.get::<_, Option<String>>(4)? {
            Some(_) => (
                BlockText::Message(columns::word(row, 4, MemoryId::parse)?, verify::marked(row, 5, 9)?),
                None,
            ),
            None => (BlockText::Blob(ContentHash(row.get(6)?), None), row.get(7)?),
        };
        let block = Block {
            turn: row.get(0)?,
            part: columns::word(row, 1, Part::parse)?,
            path: row.get(2)?,
            tokens: row.get(3)?,
            text,
        };
        let length: Option<i64> = row.get(8)?;
        Ok((block, body, length.unwrap_or_default()))
    })?;
    let rows: Vec<(Block, Option<Vec<u8>>, i64)> = rows.collect::<Result<_, _>>()?;
    let parts: Vec<_> = rows.chunks(PART).collect();
    let texts = on_all_cores(&parts, |part| -> Vec<Option<String>> {
        let mut inflater = Inflater::new();
        part.iter().map(|(_, body, length)| inflater.text(body.as_ref()?, *length)).collect()
    });
    let with_text = |((mut block, ..), whole): ((Block, _, _), _)| {
        if let BlockText::Blob(_, text) = &mut block.text {
            *text = whole;
        }
        block
    };
    Ok(rows.into_iter().zip(texts.into_iter().flatten()).map(with_text).collect())
}

fn ledger(connection: &Connection, thread: i64) -> Result<Vec<LedgerEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT path, is_inline, is_removed, size, mtime, ctime, inode, raw, sent, tokens
         FROM thread_files WHERE thread = ?1 ORDER BY path",
    )?;
    let rows = statement.query_map([thread], |row| {
        let raw = ContentHash(row.get(7)?);
        let stat = match row.get::<_, Option<i64>>(3)? {
            Some(size) => {
                let mtime_ns: i64 = row.get(4)?;
                let ctime_ns = mtime_ns.wrapping_add(row.get(5)?);
                Some(Stat {
                    size: size.cast_unsigned(),
                    mtime_ns,
                    ctime_ns,
                    inode: row.get::<_, i64>(6)?.cast_unsigned(),
                })
            }
            None => None,
        };
        Ok(LedgerEntry {
            path: row.get(0)?,
            place: if row.get(1)? { FilePlace::Inline } else { FilePlace::Overflow },
            stat,
            raw,
            sent: row.get::<_, Option<[u8; 16]>>(8)?.map_or(raw, ContentHash),
            tokens: row.get(9)?,
            is_removed: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
