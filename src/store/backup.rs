//! Copying a store, merging one into another, checking one.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::{Flavour, Store, blocking, lock, migrate};
use crate::error::{Context, Error, Kind, Result};
use crate::memory::{CommitRecord, Memory, MemoryId};
use crate::scope::Scope;

/// A memory read from another store, with what stands beside it.
#[derive(Clone, Debug)]
pub struct ForeignMemory {
    /// The memory.
    pub memory: Memory,
    /// What it refers to.
    pub references: Vec<MemoryId>,
    /// The beginning of the text that is embedded, in bytes, where that isn't all.
    pub lead: Option<usize>,
    /// What a commit is beside its text.
    pub commit: Option<CommitRecord>,
}

/// What a check of the file found; everything empty or equal is sound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// What SQLite's own integrity check complains of.
    pub integrity: Vec<String>,
    /// What the text index's own check complains of.
    pub text_index: Vec<String>,
    /// Chunks that are neither embedded nor waiting.
    pub chunks_without_vector: i64,
    /// Chunks that the text index lacks, or holds without a chunk.
    pub chunks_unindexed: i64,
}

impl Check {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        *self == Check::default()
    }
}

impl Store {
    /// Copies the store to the new file `target` while others go on working; errors where `target` exists.
    pub async fn back_up(&self, target: &Path) -> Result<()> {
        if target.exists() {
            return Err(Error::bad_input(format!("`{}` exists already", target.display()))
                .hint("name a file that doesn't exist; nothing was overwritten"));
        }
        let (store, target) = (self.clone(), target.to_owned());
        blocking(move || {
            let reader = store.inner.reader()?;
            reader
                .backup("main", &target, None::<fn(rusqlite::backup::Progress)>)
                .context(Kind::Store, || format!("cannot write the backup `{}`", target.display()))?;
            lock(&store.inner.readers).push(reader);
            Ok(())
        })
        .await
    }

    /// Reads every living memory from the store in the file `source`, in the order they were stored.
    ///
    /// The file is only read; it may be a backup of another machine, whose owner has another name.
    pub async fn read_foreign(source: &Path) -> Result<Vec<ForeignMemory>> {
        let source = source.to_owned();
        blocking(move || read_foreign(&source)).await
    }

    /// Checks the file, the text index and the vectors against each other. Reads everything: seconds at 100k.
    pub async fn check(&self, scope: &Scope) -> Result<Check> {
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let writer = lock(&store.inner.writer);
            let mut check = Check::default();
            let mut statement = writer.prepare("PRAGMA integrity_check(20)")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            check.integrity = lines.collect::<Result<Vec<_>, _>>()?;
            check.integrity.retain(|line| line != "ok");
            if let Err(error) = writer.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')", []) {
                check.text_index.push(error.to_string());
            }
            let count = |sql: &str| -> Result<i64> { Ok(writer.query_row(sql, [], |row| row.get(0))?) };
            check.chunks_without_vector = count(
                "SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.chunk = c.seq)
                     AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.chunk = c.seq)",
            )?;
            check.chunks_unindexed = count(
                "SELECT (SELECT count(*) FROM chunks WHERE seq NOT IN (SELECT rowid FROM text_index))
                      + (SELECT count(*) FROM text_index WHERE rowid NOT IN (SELECT seq FROM chunks))",
            )?;
            Ok(check)
        })
        .await
    }
}

fn read_foreign(source: &Path) -> Result<Vec<ForeignMemory>> {
    if !source.is_file() {
        return Err(Error::not_found(format!("no backup `{}`", source.display()))
            .hint("`tiro backup FILE` makes one"));
    }
    // A copy in memory: a backup may lie on a read-only medium, where a WAL file can't be opened.
    let mut connection = Connection::open_in_memory()?;
    connection
        .restore("main", source, None::<fn(rusqlite::backup::Progress)>)
        .context(Kind::Store, || format!("cannot read the backup `{}`", source.display()))?;
    migrate::migrate(&mut connection, source, Flavour::Project)
        .map_err(|error| Error::new(error.kind(), "the backup can't be used").source(error))?;
    let mut statement = connection.prepare(
        "SELECT m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title, m.topic,
             m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed
         FROM memories m LEFT JOIN sessions s ON s.seq = m.session
         WHERE m.tombstoned_at IS NULL ORDER BY m.seq",
    )?;
    let rows = statement.query_map([], super::memories::memory)?;
    let mut found = Vec::new();
    for row in rows {
        let memory = row?;
        let strings = |sql: &str| -> Result<Vec<String>> {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([memory.seq], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        let references = strings("SELECT target FROM memory_references WHERE memory = ?1 ORDER BY target")?;
        let references = references.iter().filter_map(|id| MemoryId::parse(id)).collect();
        let sha: Option<String> = connection
            .prepare_cached("SELECT min(sha) FROM commit_ids WHERE memory = ?1")?
            .query_row([memory.seq], |row| row.get(0))
            .optional()?
            .flatten();
        let lead: Option<i64> = connection
            .prepare_cached("SELECT max(end_byte) FROM chunks WHERE memory = ?1")?
            .query_row([memory.seq], |row| row.get(0))?;
        let lead = lead.filter(|_| memory.indexed.is_some()).map(|lead| lead as usize);
        let commit = match sha {
            None => None,
            Some(sha) => Some(CommitRecord {
                sha: memory.source_id.clone().unwrap_or(sha),
                parents: strings("SELECT sha FROM commit_parents WHERE memory = ?1 ORDER BY place")?,
                patch_id: None,
                files: strings("SELECT path FROM memory_paths WHERE memory = ?1 ORDER BY path")?,
            }),
        };
        found.push(ForeignMemory { memory, references, lead, commit });
    }
    Ok(found)
}
