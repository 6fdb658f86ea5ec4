//! Reads the contents of memories that travel, with one query for each table.

use std::collections::HashMap;

use pgvector::HalfVector;

use super::giving::Giving;
use crate::columns::{self, size, word};
use crate::error::Result;
use tiro_base::memory::{CommitRecord, Kind, Memory, MemoryId, Provenance};
use tiro_base::scope::AuthorId;
use tiro_store::decide::exchange;
use tiro_store::{ExchangedChunk, ExchangedMemory};

/// Values by the number of a memory.
type Beside<T> = HashMap<i64, Vec<T>>;

/// Returns the contents of memories. `memories` already have the ids, authors and sessions under which they travel.
pub(super) async fn read(giving: &Giving<'_>, memories: Vec<Memory>) -> Result<Vec<ExchangedMemory>> {
    if memories.is_empty() {
        return Ok(Vec::new());
    }
    let seqs: Vec<i64> = memories.iter().map(|memory| memory.key.in_store()).collect();
    let references = "SELECT memory, target FROM memory_references WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY target";
    let supersedes = replacements(["newer_owner", "newer"], ["owner", "memory"]);
    let superseded_by = replacements(["owner", "memory"], ["newer_owner", "newer"]);
    let files =
        "SELECT memory, path FROM memory_paths WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY path";
    let shas = "SELECT memory, sha FROM commit_ids WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY sha";
    let parents =
        "SELECT memory, sha FROM commit_parents WHERE owner = ANY ($1) AND memory = ANY ($2) ORDER BY place";
    let (mut references, mut supersedes, mut superseded_by) = (
        giving.texts(references, &seqs).await?,
        giving.texts(&supersedes, &seqs).await?,
        giving.texts(&superseded_by, &seqs).await?,
    );
    let others: Vec<&str> = [&references, &supersedes, &superseded_by]
        .into_iter()
        .flat_map(|beside| beside.values().flatten().map(String::as_str))
        .collect();
    let travelling = giving.travelling(&others).await?;
    let (mut files, mut shas, mut parents) = (
        giving.texts(files, &seqs).await?,
        giving.texts(shas, &seqs).await?,
        giving.texts(parents, &seqs).await?,
    );
    let mut chunks = giving.chunks(&seqs).await?;
    let contents = memories.into_iter().map(|memory| {
        let seq = memory.key.in_store();
        let ids = |beside: &mut Beside<String>| -> Vec<MemoryId> {
            let ids = beside.remove(&seq).unwrap_or_default();
            ids.iter().filter_map(|id| travelling.get(id).cloned()).collect()
        };
        let chunks = chunks.remove(&seq).unwrap_or_default();
        let files = files.remove(&seq).unwrap_or_default();
        let (shas, parents) =
            (shas.remove(&seq).unwrap_or_default(), parents.remove(&seq).unwrap_or_default());
        let sha = memory.source_id.clone().or_else(|| shas.into_iter().next());
        let commit = sha.filter(|_| memory.kind == Kind::Commit).map(|sha| CommitRecord {
            sha,
            parents,
            patch_id: None,
            files: files.clone(),
        });
        ExchangedMemory {
            references: ids(&mut references),
            supersedes: ids(&mut supersedes),
            superseded_by: ids(&mut superseded_by),
            lead: chunks.iter().map(|chunk| chunk.end).max().filter(|_| memory.indexed.is_some()),
            memory,
            files,
            commit,
            chunks,
        }
    });
    Ok(contents.collect())
}

/// Returns the query for the memories that stand in the columns `to` of replacements, for those that stand in the columns
/// `from`. A forgotten memory may never have reached the peer, so what lies behind it belongs to them.
fn replacements([from_owner, from]: [&str; 2], [to_owner, to]: [&str; 2]) -> String {
    format!(
        "WITH RECURSIVE found (start, owner, seq) AS (
             SELECT {from}, {to_owner}, {to} FROM superseded WHERE {from_owner} = ANY ($1) AND {from} = ANY ($2)
             UNION SELECT f.start, s.{to_owner}, s.{to} FROM found f
                 JOIN memories m ON m.owner = f.owner AND m.seq = f.seq AND m.tombstoned_at IS NOT NULL
                 JOIN superseded s ON s.{from_owner} = f.owner AND s.{from} = f.seq WHERE f.owner = ANY ($1))
         SELECT f.start, m.id FROM found f JOIN memories m ON m.owner = f.owner AND m.seq = f.seq ORDER BY m.id"
    )
}

impl Giving<'_> {
    /// Returns the texts that a query selects for memories, by memory.
    async fn texts(&self, sql: &str, seqs: &[i64]) -> Result<Beside<String>> {
        let mut beside: Beside<String> = HashMap::new();
        for row in self.tx.rows(sql, &[&self.owners, &seqs]).await? {
            beside.entry(row.try_get(0)?).or_default().push(row.try_get(1)?);
        }
        Ok(beside)
    }

    /// Returns the chunks of memories with their vectors, by memory.
    async fn chunks(&self, seqs: &[i64]) -> Result<Beside<ExchangedChunk>> {
        let sql = "SELECT c.memory, c.start_byte, c.end_byte, v.space, v.embedding
                   FROM chunks c LEFT JOIN vectors v ON v.owner = c.owner AND v.chunk = c.seq
                   WHERE c.owner = ANY ($1) AND c.memory = ANY ($2) ORDER BY c.memory, c.ordinal";
        let mut chunks: Beside<ExchangedChunk> = HashMap::new();
        for row in self.tx.rows(sql, &[&self.owners, &seqs]).await? {
            let vector: Option<HalfVector> = row.try_get(4)?;
            let vector =
                vector.map(|vector| vector.as_slice().iter().map(|number| number.to_f32()).collect());
            let (start, end) = (size(&row, 1)?, size(&row, 2)?);
            let embedding = row.try_get::<_, Option<String>>(3)?.zip(vector);
            chunks.entry(row.try_get(0)?).or_default().push(ExchangedChunk { start, end, embedding });
        }
        Ok(chunks)
    }

    /// Returns the ids under which memories travel, by the ids that they have here. Memories that are not exchanged, or
    /// that the reader doesn't see, are left out.
    async fn travelling(&self, ids: &[&str]) -> Result<HashMap<String, MemoryId>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        // Later rows replace earlier ones in the map: a private memory comes before a shared one.
        let sql = "SELECT m.id, m.kind, m.provenance, m.author, x.exchange_id
                   FROM memories m JOIN exchange x ON x.owner = m.owner AND x.memory = m.seq
                   WHERE m.owner = ANY ($1) AND m.id = ANY ($2) ORDER BY m.owner <> $3";
        let mut travelling = HashMap::new();
        for row in self.tx.rows(sql, &[&self.owners, &ids, &self.tx.seen.shared]).await? {
            let (kind, provenance) = (word(&row, 1, Kind::parse)?, word(&row, 2, Provenance::parse)?);
            let author = AuthorId::new(row.try_get::<_, String>(3)?);
            let id = columns::id(&row, 0)?;
            match self.wanted.kinds.contains(&kind) && exchange::is_exchanged(kind, provenance) {
                true => {
                    let other = self.id_of(&id, kind, &author, row.try_get(4)?);
                    travelling.insert(row.try_get(0)?, other);
                }
                false => drop(travelling.remove(id.as_str())),
            }
        }
        Ok(travelling)
    }
}
