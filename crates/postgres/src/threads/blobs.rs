//! Stores texts of blocks and copies of files. Each text is compressed and stored once for each part of a store.
//!
//! A text is compressed before the transaction that stores it. If a body is damaged, the text reads as if it had been
//! removed, and the next turn sends the file again.

use std::collections::{BTreeMap, HashMap};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::hash;
use crate::error::{Error, Result};
use crate::transactions::Transaction;
use tiro_base::error::{self, Kind};
use tiro_base::memory::LONGEST_TEXT;
use tiro_base::parallel::on_all_cores;
use tiro_base::thread::{BlockText, ContentHash};
use tiro_store::TurnRecord;
use tiro_store::decide::retention;

/// The level of compression, as in files of SQLite.
const LEVEL: u32 = 4;

/// The number of texts that a thread packs or reads at a time. Arbitrary.
const PART: usize = 32;

/// A compressed text.
pub(super) struct Packed {
    /// The length of the text in bytes.
    pub length: i64,
    /// The compressed bytes.
    pub body: Vec<u8>,
}

/// Runs `work` on a thread on which it may take long.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> error::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        error::Error::new(Kind::Store, "a call of the store ended unexpectedly").source(error)
    })
}

/// Returns the turn, and its compressed texts by hash. Texts that are too long for a message are left out.
///
/// Errors with `Kind::Store` if the hash of a text is not the given hash.
pub(super) async fn pack(turn: TurnRecord) -> error::Result<(TurnRecord, BTreeMap<ContentHash, Packed>)> {
    let (turn, packed) = blocking(move || {
        let packed = pack_now(&turn);
        (turn, packed)
    })
    .await?;
    Ok((turn, packed?))
}

fn pack_now(turn: &TurnRecord) -> Result<BTreeMap<ContentHash, Packed>> {
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
    Ok((hash, Packed { length: text.len() as i64, body: deflate(compress, text.as_bytes())? }))
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

/// Returns the texts of `bodies`, in order; `None` for those without a body or with a damaged one.
pub(super) async fn texts(bodies: Vec<Option<Packed>>) -> error::Result<Vec<Option<String>>> {
    blocking(move || {
        let parts: Vec<_> = bodies.chunks(PART).collect();
        let texts = on_all_cores(&parts, |part| -> Vec<Option<String>> {
            let mut decompress = Decompress::new(true);
            part.iter().map(|packed| inflate(&mut decompress, packed.as_ref()?)).collect()
        });
        texts.into_iter().flatten().collect()
    })
    .await
}

/// Returns the text; `None` if the body is damaged.
fn inflate(decompress: &mut Decompress, Packed { length, body }: &Packed) -> Option<String> {
    let length = usize::try_from(*length).ok().filter(|length| *length <= LONGEST_TEXT)?;
    decompress.reset(true);
    // The decompressor reads the checksum only if there is room after the end of the text.
    let mut text = Vec::with_capacity(length + 16);
    let status = decompress.decompress_vec(body, &mut text, FlushDecompress::Finish).ok()?;
    let is_whole = status == Status::StreamEnd && text.len() == length;
    String::from_utf8(text).ok().filter(|_| is_whole)
}

/// Returns the rows of the texts with these hashes. Makes rows without a body where there are none.
pub(super) async fn rows_of(
    tx: &Transaction,
    owner: i64,
    hashes: &[ContentHash],
) -> Result<HashMap<ContentHash, i64>> {
    let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
    tx.execute(
        "INSERT INTO blobs (owner, hash, length, bytes) SELECT $1::bigint, u, 0, 0 FROM unnest($2::bytea[]) u
         ON CONFLICT DO NOTHING",
        &[&owner, &hashes],
    )
    .await?;
    let rows = tx
        .rows("SELECT hash, seq FROM blobs WHERE owner = $1 AND hash = ANY ($2)", &[&owner, &hashes])
        .await?;
    rows.iter().map(|row| Ok((hash(row, 0)?, row.try_get(1)?))).collect()
}

/// Stores the texts of a turn that are not stored yet.
pub(super) async fn put(tx: &Transaction, owner: i64, packed: &BTreeMap<ContentHash, Packed>) -> Result<()> {
    let hashes: Vec<&[u8]> = packed.keys().map(|hash| hash.0.as_slice()).collect();
    let lengths: Vec<i64> = packed.values().map(|packed| packed.length).collect();
    let bodies: Vec<&[u8]> = packed.values().map(|packed| packed.body.as_slice()).collect();
    tx.execute(
        "INSERT INTO blobs (owner, hash, length, bytes, body)
         SELECT $1::bigint, u.hash, u.length, octet_length(u.body), u.body
         FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) AS u (hash, length, body)
         ON CONFLICT (owner, hash) DO UPDATE
             SET length = excluded.length, bytes = excluded.bytes, body = excluded.body WHERE blobs.body IS NULL",
        &[&owner, &hashes, &lengths, &bodies],
    )
    .await?;
    Ok(())
}

/// Selects the rows of texts of which the assistant has a copy that no block of the thread `$2` after the place `$3`
/// contains.
const COPIED: &str = "SELECT b.seq FROM thread_files f
        JOIN blobs b ON b.owner = f.owner AND b.hash = coalesce(f.sent, f.raw)
    WHERE f.owner = $1 AND f.thread = $2 AND f.is_inline AND NOT f.is_removed
        AND NOT EXISTS (SELECT FROM thread_blocks k
            WHERE k.owner = f.owner AND k.thread = f.thread AND k.place > $3 AND k.blob = b.seq)";

/// The assistant may have a copy of a file that no block of the thread after the place `before` contains. Records these
/// copies, so that their texts are kept too.
pub(super) async fn keep_copies(tx: &Transaction, (owner, thread): (i64, i64), before: i64) -> Result<()> {
    let keep = format!(
        "INSERT INTO thread_copies (owner, thread, blob) SELECT $1::bigint, $2::bigint, c.seq FROM ({COPIED}) c ON CONFLICT DO NOTHING"
    );
    tx.execute(&keep, &[&owner, &thread, &before]).await?;
    let remove =
        format!("DELETE FROM thread_copies WHERE owner = $1 AND thread = $2 AND blob NOT IN ({COPIED})");
    tx.execute(&remove, &[&owner, &thread, &before]).await?;
    Ok(())
}

/// Removes the texts of a turn that no thread needs.
pub(super) async fn remove_unneeded(
    tx: &Transaction,
    owner: i64,
    packed: &BTreeMap<ContentHash, Packed>,
) -> Result<()> {
    let hashes: Vec<&[u8]> = packed.keys().map(|hash| hash.0.as_slice()).collect();
    tx.execute(
        "DELETE FROM blobs b WHERE b.owner = $1 AND b.hash = ANY ($2)
             AND NOT EXISTS (SELECT FROM thread_blocks k WHERE k.owner = b.owner AND k.blob = b.seq)
             AND NOT EXISTS (SELECT FROM thread_copies c WHERE c.owner = b.owner AND c.blob = b.seq)",
        &[&owner, &hashes],
    )
    .await?;
    Ok(())
}

/// Removes texts until the texts of the part fit into `max_bytes`. Returns the number and the size of the removed
/// texts.
///
/// The texts of the least recently used threads are removed first, and the texts of the thread `current` last.
pub(super) async fn make_room(
    tx: &Transaction,
    (owner, current): (i64, i64),
    max_bytes: i64,
) -> Result<(usize, i64)> {
    let sql = "SELECT coalesce(sum(bytes), 0)::bigint FROM blobs WHERE owner = $1";
    let total: i64 = tx.only(sql, &[&owner]).await?.try_get(0)?;
    if total <= max_bytes {
        return Ok((0, 0));
    }
    let rows = tx
        .rows(
            "WITH needed AS (
                 SELECT blob, thread FROM thread_blocks WHERE owner = $1 AND blob IS NOT NULL
                 UNION ALL SELECT blob, thread FROM thread_copies WHERE owner = $1),
             used AS (
                 SELECT n.blob, bool_or(t.seq = $2) AS is_current, max(t.updated) AS last
                 FROM needed n JOIN threads t ON t.owner = $1 AND t.seq = n.thread GROUP BY n.blob)
             SELECT b.seq, b.bytes FROM blobs b JOIN used u ON u.blob = b.seq WHERE b.owner = $1 AND b.bytes > 0
             ORDER BY u.is_current, u.last, b.seq",
            &[&owner, &current],
        )
        .await?;
    let entries: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let surplus = retention::surplus(total, max_bytes, entries.iter().map(|(_, bytes)| *bytes));
    let removed: Vec<i64> = entries[..surplus].iter().map(|(seq, _)| *seq).collect();
    let sql = "UPDATE blobs SET body = NULL, bytes = 0 WHERE owner = $1 AND seq = ANY ($2)";
    tx.execute(sql, &[&owner, &removed]).await?;
    Ok((surplus, entries[..surplus].iter().map(|(_, bytes)| bytes).sum()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8], length: i64) -> Option<String> {
        inflate(&mut Decompress::new(true), &Packed { length, body: body.to_vec() })
    }

    proptest! {
        #[test]
        fn a_text_is_read_as_it_was_packed(text in prop_oneof![".{0,300}", "(fn ab){0,4000}", "\\PC{2000}"]) {
            let mut compress = Compress::new(Compression::new(LEVEL), true);
            for text in ["", text.as_str(), "x"] {
                let body = deflate(&mut compress, text.as_bytes()).unwrap();
                prop_assert_eq!(read(&body, text.len() as i64), Some(text.to_owned()));
                prop_assert_eq!(read(&body, text.len() as i64 + 1), None);
                prop_assert_eq!(read(&body[..body.len() - 1], text.len() as i64), None);
            }
        }
    }

    #[test]
    fn a_damaged_body_has_no_text() {
        let text = "a text of some words, of which one byte changes";
        let body = deflate(&mut Compress::new(Compression::new(LEVEL), true), text.as_bytes()).unwrap();
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 0x55;
            assert!(read(&damaged, text.len() as i64).is_none_or(|read| read == text), "{at}");
        }
        assert_eq!((read(&body, i64::MAX), read(&body, -1)), (None, None));
    }
}
