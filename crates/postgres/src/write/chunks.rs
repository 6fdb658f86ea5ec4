//! The chunks of memories, with their vectors.

use std::collections::HashMap;

use pgvector::HalfVector;

use crate::PostgresStore;
use crate::columns::{self, MEMORY, MEMORY_FROM, memory_key, number, size};
use crate::error::Result;
use crate::search::index;
use crate::search::label::label_sql;
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Draft, Memory, MemoryKey};
use tiro_base::scope::Scope;
use tiro_store::{ChunkKey, ChunkRange, PreparedChunk};

impl PostgresStore {
    pub(crate) async fn derived_without_chunk(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        read!(self, scope, tx => {
            let sql = format!(
                "SELECT {MEMORY} FROM {MEMORY_FROM}
                 WHERE m.owner = ANY ($1) AND m.kind IN ('fact', 'decision') AND m.provenance = 'derived'
                     AND m.tombstoned_at IS NULL
                     AND NOT EXISTS (SELECT FROM chunks c WHERE c.owner = m.owner AND c.memory = m.seq)
                 ORDER BY m.seq LIMIT $2"
            );
            let rows = tx.rows(&sql, &[&tx.seen.parts, &number(limit)]).await?;
            rows.iter().map(columns::memory).collect()
        })
    }

    pub(crate) async fn chunks_of(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<(MemoryKey, ChunkRange)>> {
        read!(self, scope, tx => {
            let sql = "SELECT memory, seq, start_byte, end_byte, tokens FROM chunks
                       WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY memory, ordinal";
            let seqs: Vec<i64> = keys.iter().map(|key| key.in_store()).collect();
            let mut found: HashMap<MemoryKey, Vec<(MemoryKey, ChunkRange)>> = HashMap::new();
            for row in tx.rows(sql, &[&tx.seen.parts, &seqs]).await? {
                let (memory, key) = (memory_key(&row, 0)?, ChunkKey::from_store(row.try_get(1)?));
                let (start, end, tokens) = (size(&row, 2)?, size(&row, 3)?, row.try_get(4)?);
                found.entry(memory).or_default().push((memory, ChunkRange { key, start, end, tokens }));
            }
            Ok(keys.iter().filter_map(|key| found.get(key)).flatten().copied().collect())
        })
    }

    pub(crate) async fn add_chunks(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>,
    ) -> error::Result<()> {
        write!(self, scope, tx => { add(&tx, &found).await })
    }
}

/// Stores and indexes the chunks of those memories that have none. After a memory was read, it may have been forgotten,
/// or another process may have stored its chunks.
async fn add(tx: &Transaction, found: &[(MemoryKey, Draft, Vec<PreparedChunk>)]) -> Result<()> {
    let seqs: Vec<i64> = found.iter().map(|(memory, ..)| memory.in_store()).collect();
    let sql = format!(
        "SELECT m.seq, m.owner, {} FROM memories m
         WHERE m.owner = ANY ($1) AND m.seq = ANY ($2) AND m.tombstoned_at IS NULL
             AND NOT EXISTS (SELECT FROM chunks c WHERE c.owner = m.owner AND c.memory = m.seq)",
        label_sql()
    );
    let mut bare: HashMap<MemoryKey, (i64, i16)> = HashMap::new();
    for row in tx.rows(&sql, &[&tx.seen.parts, &seqs]).await? {
        bare.insert(memory_key(&row, 0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let (mut rows, mut indexed) = (ChunkRows::default(), Vec::new());
    for (memory, draft, chunks) in found {
        // A memory that is named twice gets its chunks once.
        let Some((owner, label)) = bare.remove(memory) else { continue };
        let keys = tx
            .rows("SELECT nextval('keys') FROM generate_series(1, $1::bigint)", &[&number(chunks.len())])
            .await?;
        let keys: Vec<i64> = keys.iter().map(|row| row.get(0)).collect();
        rows.push((owner, memory.in_store()), label, chunks, &keys);
        indexed.extend(index::rows_of(owner, draft, chunks, &keys));
    }
    rows.insert(tx).await?;
    index::save(tx, &indexed).await
}

/// The rows of new chunks, by column.
#[derive(Default)]
pub(crate) struct ChunkRows {
    owner: Vec<i64>,
    seq: Vec<i64>,
    memory: Vec<i64>,
    ordinal: Vec<i64>,
    start: Vec<i64>,
    end: Vec<i64>,
    tokens: Vec<i64>,
    /// The chunks that wait for an embedding.
    pending: (Vec<i64>, Vec<i64>),
    vectors: VectorRows,
}

/// The rows of vectors, by column.
#[derive(Default)]
struct VectorRows {
    owner: Vec<i64>,
    chunk: Vec<i64>,
    space: Vec<String>,
    embedding: Vec<HalfVector>,
    label: Vec<i16>,
}

impl ChunkRows {
    /// Adds the chunks of a memory with the label, which get the numbers `keys`.
    pub(crate) fn push(
        &mut self,
        (owner, memory): (i64, i64),
        label: i16,
        chunks: &[PreparedChunk],
        keys: &[i64],
    ) {
        for ((ordinal, chunk), key) in (0..).zip(chunks).zip(keys) {
            self.owner.push(owner);
            self.seq.push(*key);
            self.memory.push(memory);
            self.ordinal.push(ordinal);
            self.start.push(chunk.start as i64);
            self.end.push(chunk.end as i64);
            self.tokens.push(chunk.tokens);
            match &chunk.embedding {
                Some((space, embedding)) => {
                    self.vectors.owner.push(owner);
                    self.vectors.chunk.push(*key);
                    self.vectors.space.push(space.clone());
                    self.vectors.embedding.push(HalfVector::from_f32_slice(embedding));
                    self.vectors.label.push(label);
                }
                None => {
                    self.pending.0.push(owner);
                    self.pending.1.push(*key);
                }
            }
        }
    }

    /// Inserts the rows.
    pub(crate) async fn insert(&self, tx: &Transaction) -> Result<()> {
        if self.seq.is_empty() {
            return Ok(());
        }
        tx.execute(
            "INSERT INTO chunks (owner, seq, memory, ordinal, start_byte, end_byte, tokens)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                 $7::bigint[])",
            &[&self.owner, &self.seq, &self.memory, &self.ordinal, &self.start, &self.end, &self.tokens],
        )
        .await?;
        let (owners, chunks) = &self.pending;
        if !chunks.is_empty() {
            let sql = "INSERT INTO pending (owner, chunk) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
            tx.execute(sql, &[owners, chunks]).await?;
        }
        let VectorRows { owner, chunk, space, embedding, label } = &self.vectors;
        if !chunk.is_empty() {
            tx.execute(
                "INSERT INTO vectors (owner, chunk, space, embedding, label)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::halfvec[], $5::int2[])",
                &[owner, chunk, space, embedding, label],
            )
            .await?;
        }
        Ok(())
    }
}
