//! Checksums of the rows that belong to memories and threads, such as paths, summaries and turns.
//!
//! A sum covers one row. If several rows belong to another row, one sum covers all rows of this group, so a row that
//! was moved elsewhere is noticed too. Triggers of the schema remove a sum when a covered row changes
//! (`migrations/0013_row_sums.sql`), and the idle worker computes missing sums. While a sum is missing, damage is not
//! noticed.
//!
//! Caches, counters and leases have no sums, nor does data that can be read again from another place.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use super::sums::{self, Sum};
use crate::SqliteStore;
use crate::error::Result;
use tiro_base::error;
use tiro_base::scope::Scope;

/// A table whose rows have sums.
struct Table {
    /// The number of the table in `row_sums`.
    part: i64,
    name: &'static str,
    /// The column with the number of the row itself, or of the row to which several rows belong.
    key: &'static str,
    /// The other columns that a sum covers. The owner is not covered, because a restore on another machine changes it.
    columns: &'static str,
}

/// Returns the table `name`.
const fn table(part: i64, name: &'static str, key: &'static str, columns: &'static str) -> Table {
    Table { part, name, key, columns }
}

/// The number of the table of summaries.
const SUMMARIES: i64 = 10;

/// The tables with sums. The numbers and the columns must be the same as in the triggers.
const TABLES: &[Table] = &[
    table(1, "sessions", "seq", "name, branch, head_sha, client, worktree, title, noted, last, retired"),
    table(2, "session_aliases", "session", "alias"),
    table(3, "memory_paths", "memory", "path"),
    table(4, "memory_references", "memory", "target"),
    table(5, "commit_ids", "memory", "sha"),
    table(6, "commit_parents", "memory", "place, sha"),
    table(7, "commit_sessions", "memory", "place, session, confidence"),
    table(8, "chunks", "seq", "memory, ordinal, start_byte, end_byte, tokens"),
    table(9, "segments", "session", "number, first, last, messages, tokens"),
    table(
        SUMMARIES,
        "summaries",
        "seq",
        "id, session, segment, level, first, last, messages, version, provider, model, quality, \
         provenance, made_at, source_hash, cited, tokens, text",
    ),
    table(11, "conversations", "session", "memory, last, made_at, due"),
    table(
        12,
        "statements",
        "seq",
        "memory, number, start_byte, end_byte, voice, value, words, time, subject",
    ),
    table(13, "superseded", "memory", "newer"),
    table(
        14,
        "threads",
        "seq",
        "session, assistant, epoch, turns, is_fixed, window, rules, created, updated, context",
    ),
    table(15, "blobs", "seq", "hash, length, bytes"),
    table(16, "thread_blocks", "thread", "place, turn, part, path, tokens, memory, blob"),
    table(
        17,
        "thread_files",
        "thread",
        "path, is_inline, is_removed, size, mtime, ctime, inode, raw, sent, tokens",
    ),
    table(18, "thread_copies", "thread", "blob"),
    table(
        19,
        "thread_turns",
        "thread",
        "number, epoch, call, question, answer, model, time, prompt, appended, whole, input, \
         cached, output, micros, receipt",
    ),
    table(
        20,
        "stashed",
        "memory",
        "stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause",
    ),
    table(21, "file_writes", "memory", "time, path, worktree, branch, lines"),
    table(22, "commit_calls", "memory", "began, ended, sha, worktree"),
    // The other columns of memories have a separate sum (`sums`).
    table(23, "memories", "seq", "session"),
];

impl SqliteStore {
    /// Computes up to `limit` missing sums of memories, vectors and other rows. Returns how many were computed.
    pub async fn sum_up(&self, scope: &Scope, limit: usize) -> error::Result<usize> {
        let missing = move |connection: &Connection, sql: &str| -> Result<Vec<i64>> {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([limit as i64], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        let (memories, vectors, others) = self
            .read_all(scope, move |_, connection, _| {
                let memories =
                    "SELECT seq FROM memories WHERE seq NOT IN (SELECT memory FROM memory_sums) LIMIT ?1";
                let vectors =
                    "SELECT chunk FROM vectors WHERE chunk NOT IN (SELECT chunk FROM vector_sums) LIMIT ?1";
                let others = without_sum(connection, limit)?;
                Ok((missing(connection, memories)?, missing(connection, vectors)?, others))
            })
            .await?;
        let count = memories.len() + vectors.len() + others.len();
        if count > 0 {
            self.write(scope, move |connection, _| {
                memories.iter().try_for_each(|memory| sums::of_memory(connection, *memory))?;
                vectors.iter().try_for_each(|chunk| sums::of_vector(connection, *chunk))?;
                others.iter().try_for_each(|group| of_key(connection, *group))
            })
            .await?;
        }
        Ok(count)
    }
}

/// Finds up to `limit` rows or groups of rows that have no sum. Returns the number of the table and the key of each.
fn without_sum(connection: &Connection, limit: usize) -> Result<Vec<(i64, i64)>> {
    let mut missing = Vec::new();
    for Table { part, name, key, .. } in TABLES {
        let sql = format!(
            "SELECT DISTINCT t.{key} FROM {name} t
             WHERE NOT EXISTS (SELECT 1 FROM row_sums s WHERE s.part = {part} AND s.key = t.{key}) LIMIT ?1"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let left = limit.saturating_sub(missing.len());
        let rows = statement.query_map([left as i64], |row| Ok((*part, row.get(0)?)))?;
        missing.extend(rows.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(missing)
}

/// Stores the sum of the row or rows with the key `key` of the table `part`. Does nothing if there are no such rows.
fn of_key(connection: &Connection, (part, key): (i64, i64)) -> Result<()> {
    if let Some(sum) = computed(connection, part, key)? {
        connection
            .prepare_cached("INSERT OR REPLACE INTO row_sums (part, key, sum) VALUES (?1, ?2, ?3)")?
            .execute((part, key, sum))?;
    }
    Ok(())
}

/// Returns whether the summary in the row `key` differs from its sum. Returns false for a summary without a sum.
pub(crate) fn is_summary_damaged(connection: &Connection, key: i64) -> rusqlite::Result<bool> {
    let stored: Option<Vec<u8>> = connection
        .prepare_cached("SELECT sum FROM row_sums WHERE part = ?1 AND key = ?2")?
        .query_row((SUMMARIES, key), |row| row.get(0))
        .optional()?;
    let Some(stored) = stored else { return Ok(false) };
    Ok(computed(connection, SUMMARIES, key)?.is_none_or(|sum| stored != sum))
}

/// Computes the present sum of the row or rows with the key `key` of the table `part`. Returns `None` if there are no
/// such rows.
fn computed(connection: &Connection, part: i64, key: i64) -> rusqlite::Result<Option<Sum>> {
    let Some(table) = TABLES.iter().find(|table| table.part == part) else { return Ok(None) };
    let Table { name, key: column, columns, .. } = table;
    let sql = format!("SELECT {column}, {columns} FROM {name} WHERE {column} = ?1 ORDER BY {columns}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([key])?;
    let mut group = None;
    while let Some(row) = rows.next()? {
        add(&mut group, row)?;
    }
    Ok(group.as_ref().map(finished))
}

/// Queries that count rows whose owner differs from the owner of their session or memory.
const STRAY: &[&str] = &[
    "SELECT count(DISTINCT s.seq) FROM sessions s JOIN memories m ON m.session = s.seq WHERE m.owner <> s.owner",
    "SELECT count(*) FROM session_aliases r JOIN sessions s ON s.seq = r.session WHERE s.owner <> r.owner",
    "SELECT count(*) FROM summaries r JOIN sessions s ON s.seq = r.session WHERE s.owner <> r.owner",
    "SELECT count(*) FROM statements r JOIN memories m ON m.seq = r.memory WHERE m.owner <> r.owner",
    "SELECT count(*) FROM commit_ids r JOIN memories m ON m.seq = r.memory WHERE m.owner <> r.owner",
    "SELECT count(*) FROM stashed r JOIN memories m ON m.seq = r.memory WHERE m.owner <> r.owner",
    "SELECT count(DISTINCT b.seq) FROM blobs b
     JOIN (SELECT blob, thread FROM thread_blocks UNION SELECT blob, thread FROM thread_copies) u ON u.blob = b.seq
     JOIN threads t ON t.seq = u.thread JOIN sessions s ON s.seq = t.session WHERE s.owner <> b.owner",
];

/// Returns the number of damaged rows. These are counted too: sums that differ from their rows, sums without rows, and
/// rows whose owner differs from the owner of their session or memory.
pub(super) fn damaged(connection: &Connection) -> Result<usize> {
    let mut damaged = 0;
    for sql in STRAY {
        damaged += usize::try_from(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?).unwrap_or(0);
    }
    for Table { part, name, key, columns } in TABLES {
        let mut statement = connection.prepare("SELECT key, sum FROM row_sums WHERE part = ?1")?;
        let known = statement.query_map([part], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut known: HashMap<i64, Vec<u8>> = known.collect::<Result<_, _>>()?;
        if known.is_empty() {
            continue;
        }
        let mut compare = |key: i64, group: &blake3::Hasher| {
            let sum = known.remove(&key);
            damaged += usize::from(sum.is_some_and(|sum| sum != finished(group)));
        };
        let sql = format!("SELECT {key}, {columns} FROM {name} ORDER BY {key}, {columns}");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut group: Option<(i64, blake3::Hasher)> = None;
        while let Some(row) = rows.next()? {
            // A key that is not a number is damaged.
            let key = row.get_ref(0)?.as_i64().unwrap_or(i64::MIN);
            if let Some((last, done)) = group.take_if(|(last, _)| *last != key) {
                compare(last, &done);
            }
            let mut hasher = group.take().map(|(_, hasher)| hasher);
            add(&mut hasher, row)?;
            group = hasher.map(|hasher| (key, hasher));
        }
        if let Some((last, done)) = group {
            compare(last, &done);
        }
        damaged += known.len();
    }
    Ok(damaged)
}

/// Adds a row, whose first column is the key, to the sum of its group.
fn add(group: &mut Option<blake3::Hasher>, row: &Row<'_>) -> rusqlite::Result<()> {
    let sum = sums::sum(row, 1..row.as_ref().column_count())?;
    group.get_or_insert_with(blake3::Hasher::new).update(&sum);
    Ok(())
}

fn finished(group: &blake3::Hasher) -> Sum {
    let mut sum = Sum::default();
    sum.copy_from_slice(&group.finalize().as_bytes()[..16]);
    sum
}
