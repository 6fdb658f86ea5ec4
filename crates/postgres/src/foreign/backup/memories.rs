//! Reads memories with all their rows, to be copied.

use std::collections::HashMap;

use pgvector::HalfVector;
use tokio_postgres::Row;

use crate::columns::{self, MEMORY, MEMORY_FROM, number, size};
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::{CommitRecord, Draft, Group, Identity, Memory, MemoryId, Millis};
use tiro_base::scope::SessionId;
use tiro_store::tuning::LEAST_CONFIDENCE;
use tiro_store::{
    ForeignCall, ForeignEvidence, ForeignStash, ForeignWrite, PreparedChunk, PreparedMemory, RestoredMemory,
    StashCause,
};

/// A page ends when it has this many memories, or texts of this many bytes. Arbitrary.
const PAGE: (usize, i64) = (500, 8 << 20);

/// A part of the memories, in the order in which they were stored.
#[derive(Default)]
pub(super) struct Page {
    /// The memories.
    pub memories: Vec<RestoredMemory>,
    /// When the last of them was stored.
    pub stored_at: Millis,
    /// The ids of memories that are left out, because their text is damaged.
    pub damaged: Vec<String>,
}

/// Reads the memories that the transaction's reader sees, in the order in which they were stored. The memories that
/// summarise whole sessions are left out, because they are copied with their sessions.
pub(super) struct Pages<'t> {
    tx: &'t Transaction,
    is_derived: bool,
    last: i64,
}

impl<'t> Pages<'t> {
    /// Returns the messages, commits and notes.
    pub fn of_originals(tx: &'t Transaction) -> Pages<'t> {
        Pages { tx, is_derived: false, last: i64::MIN }
    }

    /// Returns the memories that are derived from the originals.
    pub fn of_derived(tx: &'t Transaction) -> Pages<'t> {
        Pages { tx, is_derived: true, last: i64::MIN }
    }

    /// Returns the next page; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Page>> {
        let tx = self.tx;
        // Memories that are being purged are left out.
        let rows = tx
            .rows(
                "SELECT seq FROM (
                     SELECT n.seq, sum(n.bytes) OVER (ORDER BY n.seq) - n.bytes AS before FROM (
                         SELECT f.seq, f.bytes FROM unnest($1::bigint[]) AS p (owner) CROSS JOIN LATERAL (
                             SELECT m.seq, octet_length(m.text) AS bytes FROM memories m
                             WHERE m.owner = p.owner AND m.seq > $2 AND (m.provenance = 'derived') = $3
                                 AND NOT EXISTS (SELECT FROM conversations c
                                     WHERE c.owner = m.owner AND c.memory = m.seq)
                                 AND NOT EXISTS (SELECT FROM operation_memories b
                                     JOIN operations o ON o.owner = b.owner AND o.id = b.operation
                                     WHERE b.memory_owner = m.owner AND b.memory = m.seq AND o.kind = 'purging')
                             ORDER BY m.seq LIMIT $4) f
                         ORDER BY f.seq LIMIT $4) n) s
                 WHERE before < $5 ORDER BY seq",
                &[&tx.seen.parts, &self.last, &self.is_derived, &number(PAGE.0), &PAGE.1],
            )
            .await?;
        let seqs: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let Some(last) = seqs.last() else { return Ok(None) };
        self.last = *last;
        read(tx, &seqs).await.map(Some)
    }
}

/// Returns the memories with these numbers, in order.
pub(super) async fn read(tx: &Transaction, seqs: &[i64]) -> Result<Page> {
    let sql = format!(
        "SELECT {MEMORY}, m.stored_at, m.tombstoned_at,
             (SELECT p.id FROM operation_memories b JOIN operations p ON p.owner = b.owner AND p.id = b.operation
              WHERE b.memory_owner = m.owner AND b.memory = m.seq AND p.kind IN ('forget', 'expire')
                  AND p.undone_at IS NULL AND m.tombstoned_at IS NOT NULL
              ORDER BY p.at DESC, p.id LIMIT 1)
         FROM {MEMORY_FROM} WHERE m.owner = ANY ($1) AND m.seq = ANY ($2) ORDER BY m.seq"
    );
    let rows = tx.rows(&sql, &[&tx.seen.parts, &seqs]).await?;
    let mut beside = Beside::read(tx, seqs).await?;
    let mut page = Page::default();
    for row in &rows {
        let memory = columns::memory(row)?;
        page.stored_at = row.try_get(23)?;
        if memory.is_damaged {
            page.damaged.push(memory.id.as_str().to_owned());
            continue;
        }
        let forgotten = match row.try_get::<_, Option<Millis>>(24)? {
            Some(at) => {
                let operation: Option<String> = row.try_get(25)?;
                Some((operation.unwrap_or_else(|| operation_of(&memory.id)), at))
            }
            None => None,
        };
        page.memories.push(beside.restored(memory, forgotten));
    }
    Ok(page)
}

/// Returns the name of an operation for a memory that another reader forgot.
fn operation_of(id: &MemoryId) -> String {
    format!("f{}", &blake3::hash(id.as_str().as_bytes()).to_hex()[..12])
}

/// The rows of other tables that belong to memories, by the numbers of the memories.
#[derive(Default)]
struct Beside {
    references: HashMap<i64, Vec<MemoryId>>,
    supersedes: HashMap<i64, Vec<MemoryId>>,
    superseded_by: HashMap<i64, Vec<MemoryId>>,
    files: HashMap<i64, Vec<String>>,
    shas: HashMap<i64, Vec<String>>,
    parents: HashMap<i64, Vec<String>>,
    repeats: HashMap<i64, Vec<String>>,
    links: HashMap<i64, Vec<(SessionId, f64)>>,
    writes: HashMap<i64, Vec<ForeignWrite>>,
    calls: HashMap<i64, Vec<ForeignCall>>,
    stashed: HashMap<i64, ForeignStash>,
    chunks: HashMap<i64, Vec<PreparedChunk>>,
}

/// Reads the rows of a query whose first column is the number of a memory, and whose parameters are the parts and the
/// numbers of the memories.
async fn by_memory<T>(
    tx: &Transaction,
    seqs: &[i64],
    sql: &str,
    read: impl Fn(&Row) -> Result<T>,
) -> Result<HashMap<i64, Vec<T>>> {
    let mut found: HashMap<i64, Vec<T>> = HashMap::new();
    for row in tx.rows(sql, &[&tx.seen.parts, &seqs]).await? {
        found.entry(row.try_get(0)?).or_default().push(read(&row)?);
    }
    Ok(found)
}

fn id(row: &Row) -> Result<MemoryId> {
    columns::id(row, 1)
}

fn text(row: &Row) -> Result<String> {
    Ok(row.try_get(1)?)
}

impl Beside {
    async fn read(tx: &Transaction, seqs: &[i64]) -> Result<Beside> {
        /// The condition that a row belongs to one of the memories.
        const THEIR: &str = "t.owner = ANY ($1) AND t.memory = ANY ($2)";
        let of = |columns: &str, table: &str, order: &str| {
            format!("SELECT t.memory, {columns} FROM {table} t WHERE {THEIR} ORDER BY t.memory, {order}")
        };
        let older =
            "SELECT t.newer, m.id FROM superseded t JOIN memories m ON m.owner = t.owner AND m.seq = t.memory
            WHERE t.newer_owner = ANY ($1) AND t.newer = ANY ($2) ORDER BY t.newer, m.id COLLATE \"C\"";
        let newer = format!(
            "SELECT t.memory, m.id FROM superseded t JOIN memories m ON m.owner = t.newer_owner AND m.seq = t.newer
             WHERE {THEIR} ORDER BY t.memory, m.id COLLATE \"C\""
        );
        let references = of("t.target", "memory_references", "t.target COLLATE \"C\"");
        let stash_columns =
            "t.stashed_at, t.expires_at, t.is_protected, t.is_held_out, t.is_given, t.topic, t.cause";
        let stashed = by_memory(tx, seqs, &of(stash_columns, "stashed", "t.stashed_at"), stash).await?;
        Ok(Beside {
            references: by_memory(tx, seqs, &references, id).await?,
            supersedes: by_memory(tx, seqs, older, id).await?,
            superseded_by: by_memory(tx, seqs, &newer, id).await?,
            files: by_memory(tx, seqs, &of("t.path", "memory_paths", "t.path COLLATE \"C\""), text).await?,
            shas: by_memory(tx, seqs, &of("t.sha", "commit_ids", "t.sha COLLATE \"C\""), text).await?,
            parents: by_memory(tx, seqs, &of("t.sha", "commit_parents", "t.place"), text).await?,
            repeats: by_memory(tx, seqs, &of("t.key", "repeats", "t.key COLLATE \"C\""), text).await?,
            links: links(tx, seqs).await?,
            writes: writes(tx, seqs).await?,
            calls: calls(tx, seqs).await?,
            stashed: stashed.into_iter().filter_map(|(seq, mut rows)| Some((seq, rows.pop()?))).collect(),
            chunks: chunks(tx, seqs).await?,
        })
    }

    /// Returns the memory with its rows, which are taken.
    fn restored(&mut self, memory: Memory, forgotten: Option<(String, Millis)>) -> RestoredMemory {
        let seq = memory.key.in_store();
        let (ordinal, is_marked, tokens) = (memory.ordinal, memory.marked, memory.tokens);
        let shas = self.shas.remove(&seq).unwrap_or_default();
        let files = self.files.remove(&seq).unwrap_or_default();
        let parents = self.parents.remove(&seq).unwrap_or_default();
        let sha = shas.first().map(|first| memory.source_id.clone().unwrap_or_else(|| first.clone()));
        let commit = sha.map(|sha| CommitRecord { sha, parents, patch_id: None, files: files.clone() });
        let id = memory.id.clone();
        let draft = Draft {
            references: self.references.remove(&seq).unwrap_or_default(),
            supersedes: self.supersedes.remove(&seq).unwrap_or_default(),
            files,
            commit,
            ..draft(memory)
        };
        let chunks = self.chunks.remove(&seq).unwrap_or_default();
        RestoredMemory {
            memory: PreparedMemory { id, draft, tokens, chunks },
            ordinal,
            forgotten,
            is_marked,
            shas,
            repeats: self.repeats.remove(&seq).unwrap_or_default(),
            links: self.links.remove(&seq).unwrap_or_default(),
            evidence: ForeignEvidence {
                writes: self.writes.remove(&seq).unwrap_or_default(),
                calls: self.calls.remove(&seq).unwrap_or_default(),
            },
            superseded_by: self.superseded_by.remove(&seq).unwrap_or_default(),
            stashed: self.stashed.remove(&seq),
        }
    }
}

/// Returns the draft by which the memory is stored again.
fn draft(memory: Memory) -> Draft {
    // A message that was given to the stash has no place among the messages of its session.
    let identity = match memory.kind.group() == Group::Message && memory.ordinal.is_none() {
        true => Identity::Segment,
        false => Identity::Known(memory.id),
    };
    Draft {
        indexed: memory.indexed,
        author: Some(memory.author),
        visibility: Some(memory.visibility),
        session: memory.session,
        role: memory.role,
        speaker: memory.speaker,
        title: memory.title,
        topic: memory.topic,
        source_id: memory.source_id,
        path: memory.path,
        branch: memory.branch,
        head_sha: memory.head_sha,
        importance: memory.importance,
        identity,
        ..Draft::new(memory.kind, memory.provenance, memory.text, memory.time)
    }
}

async fn links(tx: &Transaction, seqs: &[i64]) -> Result<HashMap<i64, Vec<(SessionId, f64)>>> {
    let sql = "SELECT t.memory, s.name, t.confidence FROM commit_sessions t
        JOIN sessions s ON s.owner = t.session_owner AND s.seq = t.session
        WHERE t.owner = ANY ($1) AND t.memory = ANY ($2) AND t.session_owner = ANY ($1) ORDER BY t.memory, t.place";
    let link = |row: &Row| Ok((columns::word(row, 1, SessionId::parse)?, row.try_get(2)?));
    let mut found = by_memory(tx, seqs, sql, link).await?;
    found.values_mut().for_each(|links| links.retain(|(_, sure)| *sure >= LEAST_CONFIDENCE));
    Ok(found)
}

async fn writes(tx: &Transaction, seqs: &[i64]) -> Result<HashMap<i64, Vec<ForeignWrite>>> {
    let sql = "SELECT t.memory, t.time, t.path, t.worktree, t.branch, t.lines FROM file_writes t
        WHERE t.owner = ANY ($1) AND t.memory = ANY ($2) ORDER BY t.memory, t.time, t.path COLLATE \"C\"";
    let write = |row: &Row| {
        Ok(ForeignWrite {
            time: row.try_get(1)?,
            path: row.try_get(2)?,
            worktree: row.try_get(3)?,
            branch: row.try_get(4)?,
            lines: row.try_get(5)?,
        })
    };
    by_memory(tx, seqs, sql, write).await
}

async fn calls(tx: &Transaction, seqs: &[i64]) -> Result<HashMap<i64, Vec<ForeignCall>>> {
    let sql = "SELECT t.memory, t.began, t.ended, t.sha, t.worktree FROM commit_calls t
        WHERE t.owner = ANY ($1) AND t.memory = ANY ($2) ORDER BY t.memory, t.began, t.sha COLLATE \"C\"";
    let call = |row: &Row| {
        let time = (row.try_get(1)?, row.try_get(2)?);
        Ok(ForeignCall { time, sha: row.try_get(3)?, worktree: row.try_get(4)? })
    };
    by_memory(tx, seqs, sql, call).await
}

fn stash(row: &Row) -> Result<ForeignStash> {
    Ok(ForeignStash {
        stashed_at: row.try_get(1)?,
        expires_at: row.try_get(2)?,
        is_protected: row.try_get(3)?,
        is_held_out: row.try_get(4)?,
        is_given: row.try_get(5)?,
        topic: row.try_get(6)?,
        cause: columns::word(row, 7, StashCause::parse)?,
    })
}

/// Returns the chunks of the memories, in the order of the texts, each with its vector.
async fn chunks(tx: &Transaction, seqs: &[i64]) -> Result<HashMap<i64, Vec<PreparedChunk>>> {
    let sql = "SELECT t.memory, t.start_byte, t.end_byte, t.tokens, v.space, v.embedding FROM chunks t
        LEFT JOIN vectors v ON v.owner = t.owner AND v.chunk = t.seq
        WHERE t.owner = ANY ($1) AND t.memory = ANY ($2) ORDER BY t.memory, t.ordinal";
    let chunk = |row: &Row| {
        let embedding = match row.try_get::<_, Option<String>>(4)? {
            Some(space) => {
                let vector: HalfVector = row.try_get(5)?;
                Some((space, vector.as_slice().iter().map(|number| number.to_f32()).collect()))
            }
            None => None,
        };
        Ok(PreparedChunk { start: size(row, 1)?, end: size(row, 2)?, tokens: row.try_get(3)?, embedding })
    };
    by_memory(tx, seqs, sql, chunk).await
}
