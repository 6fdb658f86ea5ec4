//! The text index: inverted rows. For each stem of a chunk's row, a posting says at which places of which columns it
//! stands, so that phrases can be found.
//!
//! The words are those that SQLite's index has (`tiro_text::words::stems`), so both engines find the same. In SQLite, a
//! word in a column of its own says which group a row is of; here it is a number beside the words ([`facet`]).

use std::collections::HashMap;

use crate::error::Result;
use crate::search::entry::{add_place, encode};
use crate::transactions::Transaction;
use tiro_base::memory::{Draft, Group};
use tiro_store::PreparedChunk;
use tiro_text::chunk::index_text::{self, About, IndexText};
use tiro_text::words::stems;

/// The maximum number of paths of a commit that are indexed as context of its text. Arbitrary: a commit that changes a
/// whole tree isn't about any single file.
pub(crate) const PATHS_INDEXED: usize = 64;

/// The longest stem that is indexed, in bytes. Arbitrary: longer ones are base64 or noise, and a row of an index of
/// PostgreSQL must be shorter than 2,700 bytes.
const LONGEST_STEM: usize = 256;

/// The row of a chunk in the text index.
pub(crate) struct IndexRow {
    pub owner: i64,
    pub chunk: i64,
    pub group: Group,
    pub text: IndexText,
}

/// Returns the rows of the chunks of a memory that is not a message of a session.
pub(crate) fn rows_of(owner: i64, draft: &Draft, pieces: &[PreparedChunk], chunks: &[i64]) -> Vec<IndexRow> {
    let files = draft.commit.iter().flat_map(|commit| &commit.files);
    let paths = files.take(PATHS_INDEXED).map(String::as_str).collect::<Vec<_>>().join("\n");
    let row = |(place, (piece, chunk)): (i64, (&PreparedChunk, &i64))| {
        // If another text is indexed in place of the memory's own text, the row of the first chunk contains that text.
        let instead = draft.indexed.as_deref().filter(|_| place == 0);
        let text = instead.unwrap_or(&draft.text[piece.start..piece.end]);
        let paths = if place < index_text::WITH_CONTEXT { paths.as_str() } else { "" };
        let text = About::from(draft).indexed(text, paths);
        IndexRow { owner, chunk: *chunk, group: draft.kind.group(), text }
    };
    (0..).zip(pieces.iter().zip(chunks)).map(row).collect()
}

/// Stores the rows; a row replaces the former row of its chunk.
pub(crate) async fn save(tx: &Transaction, rows: &[IndexRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (owners, chunks): (Vec<i64>, Vec<i64>) = rows.iter().map(|row| (row.owner, row.chunk)).unzip();
    remove(tx, &owners, &chunks).await?;
    let mut postings = Postings::default();
    let words: Vec<i32> =
        rows.iter().map(|row| i32::try_from(postings.add(row)).unwrap_or(i32::MAX)).collect();
    let facets: Vec<i16> = rows.iter().map(|row| facet(row.group)).collect();
    tx.execute(
        "INSERT INTO documents (owner, chunk, words, facet)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int2[])",
        &[&owners, &chunks, &words, &facets],
    )
    .await?;
    let Postings { owner, stem, chunk, entry } = &postings;
    tx.execute(
        "INSERT INTO postings (owner, stem, chunk, entry)
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[])",
        &[owner, stem, chunk, entry],
    )
    .await?;
    Ok(())
}

/// Returns the number of a group in the text index.
pub(crate) fn facet(group: Group) -> i16 {
    group as i16
}

/// Removes the rows of chunks. Their postings leave with them.
pub(crate) async fn remove(tx: &Transaction, owners: &[i64], chunks: &[i64]) -> Result<()> {
    tx.execute(
        "DELETE FROM documents d USING unnest($1::bigint[], $2::bigint[]) AS u (owner, chunk)
         WHERE d.owner = u.owner AND d.chunk = u.chunk",
        &[&owners, &chunks],
    )
    .await?;
    Ok(())
}

/// The postings of several rows, by column.
#[derive(Default)]
struct Postings {
    owner: Vec<i64>,
    stem: Vec<String>,
    chunk: Vec<i64>,
    entry: Vec<Vec<u8>>,
}

impl Postings {
    /// Adds the postings of a row. Returns how many words the row has.
    fn add(&mut self, IndexRow { owner, chunk, group, text }: &IndexRow) -> u32 {
        let mut found: HashMap<String, Vec<u8>> = HashMap::new();
        let mut words = 0;
        let columns = [&text.speaker, &text.header, &text.text, &text.context];
        for (column, text) in (0_u16..).zip(columns) {
            for (number, stem) in stems(text).into_iter().enumerate() {
                words += 1;
                if stem.len() <= LONGEST_STEM {
                    add_place(found.entry(stem).or_default(), column, number);
                }
            }
        }
        for (stem, places) in found {
            self.owner.push(*owner);
            self.stem.push(stem);
            self.chunk.push(*chunk);
            self.entry.push(encode(facet(*group), words, &places));
        }
        words
    }
}
