//! Copying a store, merging one into another, checking one.

use std::path::Path;

use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, NotADatabase, ReadOnly};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::migrate::Whose;
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
    /// The files it touches.
    pub files: Vec<String>,
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
    /// Copies what belongs to the scope's owner to the new file `target` while others go on working.
    ///
    /// Errors where `target` exists, and where the store is damaged: a copy that can't be restored is none.
    pub async fn back_up(&self, scope: &Scope, target: &Path) -> Result<()> {
        self.admit(scope)?;
        if target.exists() {
            return Err(Error::bad_input(format!("`{}` exists already", target.display()))
                .hint("name a file that doesn't exist; nothing was overwritten"));
        }
        let (store, scope, target) = (self.clone(), scope.clone(), target.to_owned());
        blocking(move || {
            let reader = store.inner.reader()?;
            let copied = reader
                .backup("main", &target, None::<fn(rusqlite::backup::Progress)>)
                .map_err(Error::from)
                .and_then(|()| keep_only(&target, &scope));
            lock(&store.inner.readers).push(reader);
            copied.map_err(|error| {
                let _ = std::fs::remove_file(&target);
                let hint = "name a folder that can be written; `tiro doctor` checks the store";
                Error::new(Kind::Store, format!("cannot write the backup `{}`", target.display()))
                    .source(error)
                    .hint(hint)
            })
        })
        .await
    }

    /// Reads every living memory from the store in the file `source`, in the order they were stored; what was made of
    /// them is left out, to be made anew.
    ///
    /// The file is only read. It may be a backup of another machine, whose owner has another name; of a file with the
    /// memories of several owners, those of the scope's owner are read.
    pub async fn read_foreign(scope: &Scope, source: &Path) -> Result<Vec<ForeignMemory>> {
        let (scope, source) = (scope.clone(), source.to_owned());
        blocking(move || read_foreign(&scope, &source)).await
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
            let indexed = writer.execute("INSERT INTO text_index (text_index) VALUES ('integrity-check')", []);
            if let Err(error) = indexed {
                // Nobody knows how sound a store is that can't be looked at.
                if matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | ReadOnly)) {
                    return Err(error.into());
                }
                check.text_index.push(Error::from(error).to_string());
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

/// Leaves nothing in the copied store that isn't the owner's, and checks it.
fn keep_only(copy: &Path, scope: &Scope) -> Result<()> {
    let connection = super::connect(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let state: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if state != "ok" {
        return Err(Error::new(Kind::Store, format!("the store is damaged: {state}")));
    }
    let owner = scope.owner.as_str();
    // Answers made before are made again.
    connection.execute("DELETE FROM context_cache", [])?;
    let is_shared: bool =
        connection.query_row("SELECT EXISTS (SELECT 1 FROM memories WHERE owner <> ?1)", [owner], |row| {
            row.get(0)
        })?;
    if is_shared {
        for sql in [
            "DELETE FROM text_index WHERE rowid IN
                 (SELECT c.seq FROM chunks c JOIN memories m ON m.seq = c.memory WHERE m.owner <> ?1)",
            "DELETE FROM operation_memories WHERE operation IN (SELECT id FROM operations WHERE owner <> ?1)",
            "DELETE FROM operations WHERE owner <> ?1",
            "DELETE FROM memories WHERE owner <> ?1",
            "DELETE FROM sessions WHERE owner <> ?1",
            "DELETE FROM purged WHERE owner <> ?1",
            "DELETE FROM imports WHERE owner <> ?1",
            "DELETE FROM measurements WHERE owner <> ?1",
            "DELETE FROM counters WHERE owner <> ?1",
            "DELETE FROM versions WHERE owner <> ?1",
        ] {
            connection.execute(sql, [owner])?;
        }
        connection.execute("INSERT INTO text_index (text_index) VALUES ('optimize')", [])?;
    }
    // One file, without a log beside it.
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    connection.execute_batch("VACUUM")?;
    Ok(())
}

fn read_foreign(scope: &Scope, source: &Path) -> Result<Vec<ForeignMemory>> {
    if !source.is_file() {
        return Err(Error::not_found(format!("no backup `{}`", source.display()))
            .hint("`tiro backup FILE` makes one"));
    }
    // A copy in memory: a backup may lie on a read-only medium, where a WAL file can't be opened.
    let mut connection = Connection::open_in_memory()?;
    let restored = connection.restore("main", source, None::<fn(rusqlite::backup::Progress)>);
    let found = match restored {
        Err(error) if error.sqlite_error_code() == Some(NotADatabase) => Some("no database"),
        Err(error) => {
            return Err(error)
                .context(Kind::Store, || format!("cannot read the backup `{}`", source.display()));
        }
        Ok(()) => match migrate::whose(&connection)? {
            Whose::Ours => None,
            Whose::Nobodys => Some(match source.metadata().map_or(0, |metadata| metadata.len()) {
                0 => "an empty file",
                // SQLite takes what is shorter than its smallest page for nothing at all.
                1..512 => "no database",
                _ => "an empty database",
            }),
            Whose::Anothers => Some("a database of another program"),
        },
    };
    if let Some(found) = found {
        let message = format!("`{}` is no backup but {found}", source.display());
        return Err(Error::bad_input(message).hint("give a file that `tiro backup FILE` wrote"));
    }
    migrate::migrate_copy(&mut connection, source, Flavour::Project)
        .map_err(|error| Error::new(error.kind(), "the backup can't be used").source(error))?;
    let mut statement = connection.prepare(
        "SELECT m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title, m.topic,
             m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed
         FROM memories m LEFT JOIN sessions s ON s.seq = m.session
         WHERE m.tombstoned_at IS NULL AND (m.owner = ?1 OR (SELECT count(DISTINCT owner) FROM memories) = 1)
             AND m.seq NOT IN (SELECT memory FROM conversations)
             AND NOT (m.provenance = 'derived' AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.memory = m.seq))
         ORDER BY m.seq",
    )?;
    let rows = statement.query_map([scope.owner.as_str()], super::memories::memory)?;
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
        let files = strings("SELECT path FROM memory_paths WHERE memory = ?1 ORDER BY path")?;
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
                files: files.clone(),
            }),
        };
        found.push(ForeignMemory { memory, references, lead, files, commit });
    }
    Ok(found)
}
