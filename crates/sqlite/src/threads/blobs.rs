//! Stores texts of blocks and copies of files. Each text is compressed and stored once for each owner.
//!
//! A text is compressed before the transaction that stores it. If a body is damaged, the text reads as if it had been
//! removed, and the next turn sends the file again.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use rusqlite::{Connection, params};

use crate::error::{Error, Result};
use tiro_base::error::Kind;
use tiro_base::memory::LONGEST_TEXT;
use tiro_base::parallel::on_all_cores;
use tiro_base::thread::{BlockText, ContentHash};
use tiro_store::TurnRecord;
use tiro_store::decide::retention;

/// The level of compression. Measured on the sources of this program: they shrink to 34.4%. With level 6, they shrink
/// to 34.1%, which takes a quarter longer. With level 1, they shrink to 46.6%.
const LEVEL: u32 = 4;

/// The number of texts that a thread packs or reads at a time. Arbitrary.
pub(super) const PART: usize = 32;

/// A compressed text.
pub(super) struct Packed {
    length: usize,
    body: Vec<u8>,
}

/// Returns the compressed texts of a turn, by hash. Texts that are too long for a message are left out.
///
/// Errors with `Kind::Store` if the hash of a text is not the given hash.
pub(super) fn pack(turn: &TurnRecord) -> Result<BTreeMap<ContentHash, Packed>> {
    let of_blocks = turn.blocks.iter().filter_map(|block| match &block.text {
        BlockText::Blob(hash, Some(text)) => Some((*hash, text)),
        _ => None,
    });
    let others = turn.blobs.iter().map(|(hash, text)| (*hash, text));
    let texts: BTreeMap<ContentHash, &String> =
        of_blocks.chain(others).filter(|(_, text)| text.len() <= LONGEST_TEXT).collect();
    let texts: Vec<(ContentHash, &String)> = texts.into_iter().collect();
    // There is one compressor for each part, because making one takes longer than compressing a short text.
    let parts: Vec<&[(ContentHash, &String)]> = texts.chunks(PART).collect();
    let packed = on_all_cores(&parts, |part| {
        let mut compress = Compress::new(Compression::new(LEVEL), true);
        part.iter().map(|(hash, text)| packed(&mut compress, *hash, text)).collect::<Result<Vec<_>>>()
    });
    packed.into_iter().try_fold(BTreeMap::new(), |mut all, part| {
        all.extend(part?);
        Ok(all)
    })
}

fn packed(compress: &mut Compress, hash: ContentHash, text: &str) -> Result<(ContentHash, Packed)> {
    if ContentHash::of(text.as_bytes()) != hash {
        return Err(Error::new(Kind::Store, "a text of a turn was given a wrong hash"));
    }
    Ok((hash, Packed { length: text.len(), body: deflate(compress, text.as_bytes())? }))
}

fn deflate(compress: &mut Compress, text: &[u8]) -> Result<Vec<u8>> {
    compress.reset();
    let mut body = Vec::with_capacity(text.len() / 2 + 64);
    loop {
        let read = compress.total_in() as usize;
        let status = compress
            .compress_vec(&text[read..], &mut body, FlushCompress::Finish)
            .map_err(|error| Error::new(Kind::Store, "cannot compress a text").source(error))?;
        if status == Status::StreamEnd {
            body.shrink_to_fit();
            return Ok(body);
        }
        // An incompressible text becomes longer.
        body.reserve(body.capacity());
    }
}

/// Reads compressed texts.
pub(super) struct Inflater {
    decompress: Decompress,
}

impl Inflater {
    /// Returns a reader.
    pub(super) fn new() -> Inflater {
        Inflater { decompress: Decompress::new(true) }
    }

    /// Returns the text of `body`, which has `length` bytes; `None` if the body is damaged.
    pub(super) fn text(&mut self, body: &[u8], length: i64) -> Option<String> {
        let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_TEXT)?;
        self.decompress.reset(true);
        // The decompressor reads the checksum only if there is room after the end of the text.
        let mut text = Vec::with_capacity(length + 16);
        let status = self.decompress.decompress_vec(body, &mut text, FlushDecompress::Finish).ok()?;
        let is_whole = status == Status::StreamEnd && text.len() == length;
        String::from_utf8(text).ok().filter(|_| is_whole)
    }
}

/// Returns how many texts in these rows are damaged. A damaged text can't be read or has another hash.
pub(crate) fn damaged(connection: &Connection, rows: &RangeInclusive<i64>) -> Result<usize> {
    let sql = "SELECT hash, body, length FROM blobs WHERE seq BETWEEN ?1 AND ?2 AND body IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let mut inflater = Inflater::new();
    let found = statement.query_map((rows.start(), rows.end()), |row| {
        let text = inflater.text(row.get_ref(1)?.as_bytes()?, row.get(2)?);
        let hash = text.map(|text| ContentHash::of(text.as_bytes()));
        Ok(hash.is_none_or(|hash| row.get_ref(0).is_ok_and(|stored| stored.as_bytes() != Ok(&hash.0[..]))))
    })?;
    let found: Vec<bool> = found.collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter(|is_damaged| *is_damaged).count())
}

/// Returns the row of the text with this hash. If there is no such row, makes one without a body.
pub(super) fn row_of(connection: &Connection, owner: &str, hash: ContentHash) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO blobs (owner, hash, length, bytes) VALUES (?1, ?2, 0, 0) ON CONFLICT DO NOTHING",
        )?
        .execute((owner, hash.0))?;
    Ok(connection
        .prepare_cached("SELECT seq FROM blobs WHERE owner = ?1 AND hash = ?2")?
        .query_row((owner, hash.0), |row| row.get(0))?)
}

/// Stores the texts of a turn that are not stored yet.
pub(super) fn put(
    connection: &Connection,
    owner: &str,
    packed: &BTreeMap<ContentHash, Packed>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO blobs (owner, hash, length, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (owner, hash) DO UPDATE SET length = ?3, bytes = ?4, body = ?5 WHERE body IS NULL",
    )?;
    for (hash, Packed { length, body }) in packed {
        statement.execute(params![owner, hash.0, *length as i64, body.len() as i64, body])?;
    }
    Ok(())
}

/// The assistant may have a copy of a file that no block of the thread after the place `before` contains. Records these
/// copies, so that their texts are kept too.
pub(super) fn keep_copies(connection: &Connection, owner: &str, thread: i64, before: i64) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT b.seq FROM thread_files f JOIN blobs b ON b.owner = ?1 AND b.hash = coalesce(f.sent, f.raw)
         WHERE f.thread = ?2 AND f.is_inline AND NOT f.is_removed AND b.seq NOT IN (
             SELECT blob FROM thread_blocks WHERE thread = ?2 AND place > ?3 AND blob IS NOT NULL)",
    )?;
    let rows = statement.query_map((owner, thread, before), |row| row.get(0))?;
    let needed: HashSet<i64> = rows.collect::<Result<_, _>>()?;
    let mut statement = connection.prepare_cached("SELECT blob FROM thread_copies WHERE thread = ?1")?;
    let kept: HashSet<i64> = statement.query_map([thread], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut insert = connection.prepare_cached("INSERT INTO thread_copies (blob, thread) VALUES (?1, ?2)")?;
    for blob in needed.difference(&kept) {
        insert.execute((blob, thread))?;
    }
    let mut remove =
        connection.prepare_cached("DELETE FROM thread_copies WHERE blob = ?1 AND thread = ?2")?;
    for blob in kept.difference(&needed) {
        remove.execute((blob, thread))?;
    }
    Ok(())
}

/// Removes the texts of a turn that no thread needs.
pub(super) fn remove_unneeded(
    connection: &Connection,
    owner: &str,
    packed: &BTreeMap<ContentHash, Packed>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM blobs WHERE owner = ?1 AND hash = ?2
             AND NOT EXISTS (SELECT 1 FROM thread_blocks k WHERE k.blob = blobs.seq)
             AND NOT EXISTS (SELECT 1 FROM thread_copies c WHERE c.blob = blobs.seq)",
    )?;
    for hash in packed.keys() {
        statement.execute((owner, hash.0))?;
    }
    Ok(())
}

/// Removes texts until the owner's texts fit into `max_bytes`. Returns the number and the size of the removed texts.
///
/// The texts of the least recently used threads are removed first, and the texts of the thread `current` last.
pub(super) fn make_room(
    connection: &Connection,
    owner: &str,
    current: i64,
    max_bytes: i64,
) -> Result<(usize, i64)> {
    let total: i64 = connection
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM blobs WHERE owner = ?1")?
        .query_row([owner], |row| row.get(0))?;
    if total <= max_bytes {
        return Ok((0, 0));
    }
    let mut statement = connection.prepare_cached(
        "WITH needed (blob, thread) AS (
             SELECT blob, thread FROM thread_blocks WHERE blob IS NOT NULL
             UNION ALL SELECT blob, thread FROM thread_copies),
         used (blob, is_current, last) AS (
             SELECT n.blob, max(t.seq = ?2), max(t.updated) FROM needed n JOIN threads t ON t.seq = n.thread
             GROUP BY n.blob)
         SELECT b.seq, b.bytes FROM blobs b JOIN used u ON u.blob = b.seq WHERE b.owner = ?1 AND b.bytes > 0
         ORDER BY u.is_current, u.last, b.seq",
    )?;
    let rows = statement.query_map((owner, current), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let entries: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    let surplus = retention::surplus(total, max_bytes, entries.iter().map(|(_, bytes)| *bytes));
    let mut statement =
        connection.prepare_cached("UPDATE blobs SET body = NULL, bytes = 0 WHERE seq = ?1")?;
    for (seq, _) in &entries[..surplus] {
        statement.execute([seq])?;
    }
    Ok((surplus, entries[..surplus].iter().map(|(_, bytes)| bytes).sum()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_is_read_as_it_was_packed(text in prop_oneof![".{0,300}", "(fn ab){0,4000}", "\\PC{2000}"]) {
            let mut compress = Compress::new(Compression::new(LEVEL), true);
            let mut inflater = Inflater::new();
            for text in ["", text.as_str(), "x"] {
                let body = deflate(&mut compress, text.as_bytes()).unwrap();
                prop_assert_eq!(inflater.text(&body, text.len() as i64), Some(text.to_owned()));
                prop_assert_eq!(inflater.text(&body, text.len() as i64 + 1), None);
                prop_assert_eq!(inflater.text(&body[..body.len() - 1], text.len() as i64), None);
            }
        }
    }

    #[test]
    fn a_damaged_body_has_no_text() {
        let text = "a text of some words, of which one byte changes";
        let mut compress = Compress::new(Compression::new(LEVEL), true);
        let body = deflate(&mut compress, text.as_bytes()).unwrap();
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 0x55;
            assert_ne!(Inflater::new().text(&damaged, text.len() as i64).as_deref(), Some("another text"));
            let read = Inflater::new().text(&damaged, text.len() as i64);
            assert!(read.is_none_or(|read| read == text), "{at}");
        }
        assert_eq!(Inflater::new().text(&body, i64::MAX), None);
        assert_eq!(Inflater::new().text(&body, -1), None);
    }
}
