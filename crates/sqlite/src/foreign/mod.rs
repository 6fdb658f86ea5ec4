//! Reads the memories of a backup, which is an untrusted file.
//!
//! A backup can come from anywhere. So a backup is opened read-only, and only its plain tables are read. Triggers,
//! views, virtual tables and computed columns of a backup never run. The tables are checked for damage before they are
//! read. Memories are read one page at a time, so that even a large file takes little memory. A memory that is not
//! valid, or is longer than the write path admits, is left out and counted.
//!
//! Ids, times and kinds are taken from the file as they are. A provenance that is too trusted for the memory's speaker
//! is lowered.

mod evidence;
pub(super) mod open;
mod owners;
mod rest;
mod restore;
mod stashed;

pub(crate) use restore::WIDEST_GAP;

use std::collections::HashSet;
use std::path::Path;

use rusqlite::ErrorCode::{NotADatabase, OperationInterrupted};
use rusqlite::{Connection, OptionalExtension, Row, params};

use self::open::{connect, plain_table, watch};
use self::owners::{Owners, owners};
use crate::connection::blocking;
use crate::error::{Error, Result};
use crate::file::migrate::Whose;
use crate::file::{damage, migrate};
use tiro_base::error::{self, Kind};
use tiro_base::memory::{
    CommitRecord, Kind as MemoryKind, LONGEST_TEXT, Memory, MemoryId, Millis, Provenance, Role,
};
use tiro_base::scope::Scope;
use tiro_store::{Flavour, ForeignDepth, ForeignMemory, ForeignPage, ForeignPart};

/// A page ends when it has this many memories, or this many bytes. Arbitrary.
const PAGE: (usize, usize) = (500, 8 << 20);

/// The longest short text, such as a title, in bytes. Arbitrary: arguments have at most 500, subjects of commits more.
const LONGEST_NAME: usize = 4096;

/// The most references, files and parents that are read for a memory. Arbitrary: a commit that changes a whole tree has
/// about this many files.
const MOST_BESIDE: usize = 10_000;

/// The latest time a memory can have: the end of the year 9999.
const LATEST: Millis = 253_402_300_799_999;

/// The tables that are read. The flag is true if the table may be missing in files of older versions.
const TABLES: [(&str, bool); 21] = [
    ("memory_sums", true),
    ("memories", false),
    ("sessions", false),
    ("chunks", false),
    ("memory_references", false),
    ("memory_paths", false),
    ("commit_ids", false),
    ("commit_parents", false),
    ("operations", false),
    ("operation_memories", false),
    ("purged", false),
    ("session_aliases", true),
    ("commit_sessions", true),
    ("repeats", true),
    ("segments", true),
    ("summaries", true),
    ("conversations", true),
    ("file_writes", true),
    ("commit_calls", true),
    ("superseded", true),
    ("stashed", true),
];

/// The condition that the texts of a memory `m` and of its session `s` are not too long.
const FITS: &str = "octet_length(m.text) <= ?3 AND coalesce(octet_length(m.indexed), 0) <= ?3
    AND max(coalesce(octet_length(s.name), 0), coalesce(octet_length(m.speaker), 0),
            coalesce(octet_length(m.title), 0), coalesce(octet_length(m.topic), 0),
            coalesce(octet_length(m.source_id), 0), coalesce(octet_length(m.path), 0),
            coalesce(octet_length(m.branch), 0), coalesce(octet_length(m.head_sha), 0)) <= ?4";

/// A backup that is being read.
pub struct SqliteBackup {
    /// `None` after a read has failed.
    reader: Option<BackupReader>,
    /// How many memories the file has.
    pub all: usize,
}

struct BackupReader {
    connection: Connection,
    /// The owners whose memories are read.
    owners: Owners,
    tables: HashSet<&'static str>,
    part: ForeignPart,
    last: i64,
    session: (Option<ForeignDepth>, i64),
}

impl SqliteBackup {
    /// Opens the backup `source` for reading, and checks its tables for damage.
    ///
    /// If the backup has the memories of only one owner, these are read, even if the scope has another owner, because a
    /// backup from another machine names another owner. If the backup has the memories of several owners, only the
    /// memories of the scope's owner are read. The same rule applies to the authors of private memories. Errors with
    /// [`Kind::NotFound`] if there is no such file, and with [`Kind::BadInput`] if it is not a backup or is damaged.
    pub async fn open(scope: &Scope, source: &Path) -> error::Result<SqliteBackup> {
        let (scope, source) = (scope.clone(), source.to_owned());
        blocking(move || {
            let reader = open(&scope, &source)?;
            let all = reader.count()?;
            Ok(SqliteBackup { reader: Some(reader), all })
        })
        .await
    }

    /// Returns the next page of memories of `part`, in the order in which they were stored; `None` after the last page.
    pub async fn next(&mut self, part: ForeignPart) -> error::Result<Option<ForeignPage>> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let (reader, page) = blocking(move || {
            if reader.part != part {
                (reader.part, reader.last) = (part, i64::MIN);
            }
            let page = reader.page()?;
            Ok((reader, page))
        })
        .await?;
        self.reader = Some(reader);
        Ok(page)
    }
}

fn open(scope: &Scope, source: &Path) -> Result<BackupReader> {
    if !source.is_file() {
        return Err(Error::not_found(format!("no backup `{}`", source.display()))
            .hint("`tiro backup FILE` makes one"));
    }
    let unusable = |reason: &str| {
        Error::bad_input(format!("`{}` is not a Tiro backup: {reason}", source.display()))
            .hint("give a file that `tiro backup FILE` or `tiro backup --all FILE` wrote")
    };
    let opened = connect(source).and_then(|connection| Ok((migrate::whose(&connection)?, connection)));
    let (whose, mut connection) = match opened {
        Err(error) if error.sqlite_error_code() == Some(NotADatabase) => {
            return Err(unusable("it is not a database"));
        }
        Err(error) => {
            let message = format!("cannot read the backup `{}`", source.display());
            return Err(Error::new(Kind::Store, message).source(error));
        }
        Ok(opened) => opened,
    };
    match whose {
        Whose::Ours => {}
        Whose::Nobodys => {
            return Err(unusable(match source.metadata().map_or(0, |metadata| metadata.len()) {
                0 => "it is an empty file",
                // SQLite treats a file that is shorter than its smallest page as empty.
                1..512 => "it is not a database",
                _ => "it is an empty database",
            }));
        }
        Whose::Anothers => return Err(unusable("it is a database of another program")),
    }
    if plain_table(&connection, "projects")?.is_some() {
        return Err(unusable("it is an `owner.db`, the store of the memories for all projects").hint(
            "`tiro backup --all FILE` copies it with all projects, and `tiro restore FILE` brings both back",
        ));
    }
    migrate::check(&mut connection, source, Flavour::Project)
        .map_err(|error| Error::new(error.kind(), "the backup can't be restored").source(error))?;
    watch(&mut connection)?;
    let mut tables = HashSet::new();
    for (table, is_younger) in TABLES {
        match plain_table(&connection, table)? {
            Some(true) => drop(tables.insert(table)),
            None if is_younger => continue,
            _ => return Err(unusable("its tables aren't those of Tiro")),
        }
        // The report of the check is not shown, because it may quote the content of the file.
        match damage::lines(&connection, &format!("PRAGMA quick_check('{table}')")) {
            Ok(found) if found.is_empty() => {}
            Ok(_) => return Err(unusable("it is damaged")),
            Err(error) if damage::is_reported(&error) => return Err(unusable("it is damaged").source(error)),
            Err(error) => return Err(error),
        }
    }
    let owners = owners(&connection, scope)?;
    Ok(BackupReader {
        connection,
        owners,
        tables,
        part: ForeignPart::Original,
        last: i64::MIN,
        session: (None, i64::MIN),
    })
}

impl BackupReader {
    fn has(&self, table: &str) -> bool {
        self.tables.contains(table)
    }

    /// Returns the SQL conditions that select the memories to read.
    fn admitted(&self) -> String {
        let conversations = match self.has("conversations") {
            true => "AND m.seq NOT IN (SELECT memory FROM conversations)",
            false => "",
        };
        let part = match self.part {
            ForeignPart::Original => "m.provenance <> 'derived'",
            ForeignPart::Derived => "m.provenance = 'derived'",
        };
        // Memories that are being purged are not restored.
        format!(
            "m.owner = ?1 AND {part} {conversations} AND m.seq NOT IN (
                 SELECT b.memory FROM operation_memories b JOIN operations o ON o.id = b.operation
                 WHERE o.kind = 'purging')"
        )
    }

    fn count(&self) -> Result<usize> {
        let sql = "SELECT count(*) FROM memories m WHERE m.owner = ?1";
        let count: i64 =
            self.connection.query_row(sql, [&self.owners.owner], |row| row.get(0)).map_err(read)?;
        Ok(count as usize)
    }

    fn page(&mut self) -> Result<Option<ForeignPage>> {
        let next = format!(
            "SELECT m.seq, {FITS}
             FROM memories m LEFT JOIN sessions s ON s.seq = m.session
             WHERE m.seq > ?2 AND {} ORDER BY m.seq LIMIT ?5",
            self.admitted()
        );
        let owner = &self.owners.owner;
        let rows: Vec<(i64, bool)> = self
            .connection
            .prepare_cached(&next)
            .map_err(read)?
            .query_map(
                params![owner, self.last, LONGEST_TEXT as i64, LONGEST_NAME as i64, PAGE.0 as i64],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(read)?
            .collect::<rusqlite::Result<_>>()
            .map_err(read)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut page = ForeignPage::default();
        let mut bytes = 0;
        for (seq, fits) in rows {
            self.last = seq;
            if !fits {
                page.too_long += 1;
                continue;
            }
            match self.one(seq)? {
                Some(found) if found.memory.is_damaged => page.damaged += 1,
                Some(found) => {
                    bytes += bytes_of(&found);
                    page.memories.push(found);
                }
                None => page.malformed += 1,
            }
            if bytes >= PAGE.1 {
                break;
            }
        }
        Ok(Some(page))
    }

    /// Returns the memory in the row `seq`; `None` if it is not valid.
    fn one(&self, seq: i64) -> Result<Option<ForeignMemory>> {
        let sum = match self.has("memory_sums") {
            true => "(SELECT sum FROM memory_sums WHERE memory = m.seq)",
            false => "NULL",
        };
        let authors = if self.owners.has_authors { "m.author, m.visibility" } else { "NULL, 1" };
        let sql = format!(
            "SELECT m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title,
                 m.topic, m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed,
                 m.text_hash, m.owner, m.stored_at, m.tombstoned_at, {sum}, {authors}
             FROM memories m LEFT JOIN sessions s ON s.seq = m.session WHERE m.seq = ?1"
        );
        let memory = self.connection.prepare_cached(&sql).map_err(read)?.query_row([seq], believable);
        let Some(mut memory) = memory.map_err(read)? else { return Ok(None) };
        self.owners.settle(&mut memory);
        self.beside(memory).map(Some)
    }

    /// Returns the memory in the row `seq`; `None` if the memory belongs to another owner, is too long, or is not
    /// valid.
    fn at(&self, seq: i64) -> Result<Option<ForeignMemory>> {
        let sql = format!(
            "SELECT 1 FROM memories m LEFT JOIN sessions s ON s.seq = m.session
             WHERE m.owner = ?1 AND m.seq = ?2 AND {FITS}"
        );
        let limits = (LONGEST_TEXT as i64, LONGEST_NAME as i64);
        let fits = self.connection.prepare_cached(&sql).map_err(read)?;
        match { fits }.exists(params![self.owners.owner, seq, limits.0, limits.1]).map_err(read)? {
            true => self.one(seq),
            false => Ok(None),
        }
    }

    /// Returns the texts that `sql` selects for the row `seq`, at most [`MOST_BESIDE`]. Texts that are too long are
    /// left out.
    fn strings(&self, sql: &str, seq: i64) -> Result<Vec<String>> {
        let sql = format!("SELECT {sql} LIMIT {MOST_BESIDE}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([seq], |row| {
            Ok(row.get_ref(0)?.as_str().ok().filter(|text| text.len() <= LONGEST_NAME).map(str::to_owned))
        })?;
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Returns the memory with the rows that belong to it in other tables.
    fn beside(&self, memory: Memory) -> Result<ForeignMemory> {
        let strings = |sql: &str| self.strings(sql, memory.key.in_store());
        let strings_of = |table: &str, sql: &str| if self.has(table) { strings(sql) } else { Ok(Vec::new()) };
        let references = strings("target FROM memory_references WHERE memory = ?1 ORDER BY target")?;
        let references = references.iter().filter_map(|id| MemoryId::parse(id)).collect();
        let files = strings("path FROM memory_paths WHERE memory = ?1 ORDER BY path")?;
        let mut shas = strings("sha FROM commit_ids WHERE memory = ?1 ORDER BY sha")?;
        shas.retain(|sha| rest::is_sha(sha));
        let repeats = strings_of("repeats", "key FROM repeats WHERE memory = ?1 ORDER BY key")?;
        let replaced = |table: &str, sql: &str| -> Result<Vec<MemoryId>> {
            Ok(strings_of(table, sql)?.iter().filter_map(|id| MemoryId::parse(id)).collect())
        };
        let key = memory.key.in_store();
        let supersedes = replaced(
            "superseded",
            "m.id FROM superseded s JOIN memories m ON m.seq = s.memory WHERE s.newer = ?1 ORDER BY m.id",
        )?;
        let superseded_by = replaced(
            "superseded",
            "m.id FROM superseded s JOIN memories m ON m.seq = s.newer WHERE s.memory = ?1 ORDER BY m.id",
        )?;
        let (links, evidence) = (self.links(key)?, self.evidence(key)?);
        let is_indexed =
            self.connection.prepare_cached("SELECT 1 FROM chunks WHERE memory = ?1")?.exists([key])?;
        let forgotten = self
            .connection
            .prepare_cached(
                "SELECT m.tombstoned_at, (SELECT o.id FROM operation_memories b JOIN operations o ON o.id = b.operation
                     WHERE b.memory = m.seq AND o.kind IN ('forget', 'expire') AND o.undone_at IS NULL AND octet_length(o.id) <= 64
                     ORDER BY o.at DESC LIMIT 1)
                 FROM memories m WHERE m.seq = ?1 AND m.tombstoned_at IS NOT NULL",
            )?
            .query_row([key], |row| {
                let operation: Option<String> = row.get(1)?;
                let at: Millis = row.get(0)?;
                Ok((operation.filter(|id| rest::is_operation(id)), at.clamp(0, LATEST)))
            })
            .optional()
            .map_err(read)?;
        let stashed = if self.has("stashed") { self.stashed(key)? } else { None };
        let lead: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(end_byte) FROM chunks WHERE memory = ?1")?
            .query_row([key], |row| row.get(0))
            .unwrap_or_default();
        let lead = lead.filter(|_| memory.indexed.is_some()).and_then(|lead| usize::try_from(lead).ok());
        let commit = match shas.first().cloned() {
            None => None,
            Some(sha) => {
                let parents = strings("sha FROM commit_parents WHERE memory = ?1 ORDER BY place")?;
                Some(CommitRecord {
                    sha: memory.source_id.clone().filter(|sha| rest::is_sha(sha)).unwrap_or(sha),
                    parents: parents.into_iter().filter(|sha| rest::is_sha(sha)).collect(),
                    patch_id: None,
                    files: files.clone(),
                })
            }
        };
        Ok(ForeignMemory {
            memory,
            references,
            supersedes,
            superseded_by,
            stashed,
            lead,
            files,
            commit,
            shas,
            repeats,
            links,
            evidence,
            is_indexed,
            forgotten,
        })
    }
}

/// Reads a memory. If the memory's kind and speaker can't have so trusted a provenance (`at_best`), the provenance is
/// lowered to the most trusted one that they can have. Returns `None` if the memory is not valid.
fn believable(row: &Row<'_>) -> rusqlite::Result<Option<Memory>> {
    let Ok(mut memory) = crate::read::memories::memory(row) else { return Ok(None) };
    let has_session = row.get_ref(5)?.as_str().is_ok();
    let is_impossible = memory.text.trim().is_empty()
        || !(0..=LATEST).contains(&memory.time)
        || (memory.kind == MemoryKind::Message && memory.session.is_none())
        || (has_session && memory.session.is_none());
    if is_impossible {
        return Ok(None);
    }
    memory.provenance = Provenance::lowest([memory.provenance, at_best(memory.kind, memory.role)]);
    memory.importance = memory.importance.filter(|importance| (0.0..=1.0).contains(importance));
    memory.head_sha = memory.head_sha.filter(|sha| rest::is_sha(sha));
    Ok(Some(memory))
}

/// Returns the most trusted provenance that a memory of this kind can have if `role` said it.
fn at_best(kind: MemoryKind, role: Option<Role>) -> Provenance {
    match (kind, role) {
        (MemoryKind::Commit, _) => Provenance::GitCommit,
        (MemoryKind::Conversation | MemoryKind::Summary, _) => Provenance::Derived,
        (_, Some(Role::User)) => Provenance::UserSaid,
        (_, Some(Role::System)) => Provenance::Imported,
        (_, Some(Role::Tool)) => Provenance::ToolOutput,
        // A memory without a role, such as a fact, was stored by an agent.
        (_, Some(Role::Assistant) | None) => Provenance::ModelSaid,
    }
}

/// Returns an error that says that the backup could not be read to its end. Its source is `error`.
fn read(error: impl Into<rusqlite::Error>) -> Error {
    let error: rusqlite::Error = error.into();
    if error.sqlite_error_code() == Some(OperationInterrupted) {
        return Error::new(Kind::Store, "the backup takes too long to read").hint("it may be damaged");
    }
    Error::new(Kind::Store, "the backup can't be read completely")
        .source(error)
        .hint("the memories that were read are stored; the file may be damaged")
}

/// Returns the approximate size of the memory in bytes, including its rows in other tables.
fn bytes_of(found: &ForeignMemory) -> usize {
    let texts = [&found.files, &found.shas, &found.repeats].into_iter().flatten();
    let parents = found.commit.iter().flat_map(|commit| commit.files.iter().chain(&commit.parents));
    let texts = texts.chain(parents).map(|text| text.len() + size_of::<String>());
    let ids = found.references.len() + found.supersedes.len() + found.superseded_by.len();
    let names = ids * size_of::<MemoryId>() + found.links.len() * LONGEST_NAME;
    let text = found.memory.text.len() + found.memory.indexed.as_ref().map_or(0, String::len);
    text + texts.sum::<usize>() + names + evidence::bytes(&found.evidence)
}
