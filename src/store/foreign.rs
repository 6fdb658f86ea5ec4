//! Reading the memories of a file that another Tiro wrote, or that somebody says it did.
//!
//! A backup can come from anywhere, so nothing of it is believed that needn't be. It is opened for reading alone; of what
//! it defines, only plain tables are used: no trigger, view, virtual table or computed column of it runs. Its tables are
//! checked for damage before they are read, and read a page of memories at a time, so that a file of any size takes
//! little room. What is longer than the write path lets in, or is no memory, is left out and counted.
//!
//! What is believed: ids, times, and that a text is of the kind it says; but none is trusted more than who spoke it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode::{CannotOpen, NotADatabase, OperationInterrupted};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::migrate::{self, Whose};
use super::{Flavour, blocking};
use crate::error::{Context, Error, Kind, Result};
use crate::memory::{
    CommitRecord, Kind as MemoryKind, LONGEST_TEXT, Memory, MemoryId, Millis, Provenance, Role,
};
use crate::scope::Scope;

/// Memories of a page at most, and bytes of text from which on a page ends. Arbitrary.
const PAGE: (usize, usize) = (500, 8 << 20);

/// The longest name, title, path or other short text, in bytes. Arbitrary: the write path has 500 for what it is told,
/// subjects of commits are longer.
const LONGEST_NAME: usize = 4096;

/// References, files and parents of a memory that are read. Arbitrary: those of a commit over a whole tree.
const MOST_BESIDE: usize = 10_000;

/// How long one statement may take. Arbitrary: a check reads the whole table.
const PATIENCE: Duration = Duration::from_secs(60);

/// Instructions of SQLite's machine between two looks at the clock.
const LOOK: i32 = 100_000;

/// The latest time a memory can have: the end of the year 9999.
const LATEST: Millis = 253_402_300_799_999;

/// The tables that are read.
const TABLES: [&str; 8] = [
    "memories",
    "sessions",
    "chunks",
    "memory_references",
    "memory_paths",
    "commit_ids",
    "commit_parents",
    CONVERSATIONS,
];

/// The table that older files lack.
const CONVERSATIONS: &str = "conversations";

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

/// Some of the memories of a file, in the order they were stored.
#[derive(Clone, Debug, Default)]
pub struct ForeignPage {
    /// Those that can be stored.
    pub memories: Vec<ForeignMemory>,
    /// How many others were longer than a memory may be.
    pub too_long: usize,
    /// How many others are no memories: of an unknown kind, without an id, at an impossible time.
    pub malformed: usize,
}

/// A file of memories that is being read.
pub struct Foreign {
    /// Gone where reading it failed.
    reader: Option<Reader>,
    /// Living memories in the file, what was made of others not counted.
    pub all: usize,
}

struct Reader {
    connection: Connection,
    /// Whose memories are read, as the file spells it.
    owner: String,
    has_conversations: bool,
    last: i64,
}

impl Foreign {
    /// Opens the store in the file `source` for reading its living memories; what was made of them is left out, to be
    /// made anew.
    ///
    /// It may be a backup of another machine, whose owner has another name; of a file with the memories of several
    /// owners, those of the scope's owner are read. Errors with [`Kind::BadInput`] where it is no store of Tiro's.
    pub async fn open(scope: &Scope, source: &Path) -> Result<Foreign> {
        let (scope, source) = (scope.clone(), source.to_owned());
        blocking(move || {
            let reader = open(&scope, &source)?;
            let all = reader.count()?;
            Ok(Foreign { reader: Some(reader), all })
        })
        .await
    }

    /// Returns the next memories, in the order they were stored; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<ForeignPage>> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let (reader, page) = blocking(move || {
            let page = reader.page()?;
            Ok((reader, page))
        })
        .await?;
        self.reader = Some(reader);
        Ok(page)
    }
}

fn open(scope: &Scope, source: &Path) -> Result<Reader> {
    if !source.is_file() {
        return Err(Error::not_found(format!("no backup `{}`", source.display()))
            .hint("`tiro backup FILE` makes one"));
    }
    let unusable = |found: &str| {
        Error::bad_input(format!("`{}` is no backup but {found}", source.display()))
            .hint("give a file that `tiro backup FILE` wrote")
    };
    let opened = connect(source).and_then(|connection| {
        let whose = migrate::whose(&connection)?;
        Ok((connection, whose))
    });
    let (mut connection, whose) = match opened {
        Err(error) if error.sqlite_error_code() == Some(NotADatabase) => return Err(unusable("no database")),
        Err(error) => {
            return Err(error)
                .context(Kind::Store, || format!("cannot read the backup `{}`", source.display()));
        }
        Ok(opened) => opened,
    };
    match whose {
        Whose::Ours => {}
        Whose::Nobodys => {
            return Err(unusable(match source.metadata().map_or(0, |metadata| metadata.len()) {
                0 => "an empty file",
                // SQLite takes what is shorter than its smallest page for nothing at all.
                1..512 => "no database",
                _ => "an empty database",
            }));
        }
        Whose::Anothers => return Err(unusable("a database of another program")),
    }
    migrate::check(&mut connection, source, Flavour::Project)
        .map_err(|error| Error::new(error.kind(), "the backup can't be used").source(error))?;
    watch(&mut connection)?;
    let mut has_conversations = false;
    for table in TABLES {
        match plain_table(&connection, table)? {
            Some(true) => has_conversations |= table == CONVERSATIONS,
            None if table == CONVERSATIONS => continue,
            _ => return Err(unusable("a database whose tables aren't those of Tiro")),
        }
        let state: String = connection
            .query_row(&format!("PRAGMA quick_check('{table}')"), [], |row| row.get(0))
            .map_err(|error| unusable("a damaged file").source(error))?;
        // What it says names what stands in the file.
        if state != "ok" {
            return Err(unusable("a damaged file"));
        }
    }
    let owners: Vec<String> = {
        let mut owners = connection.prepare("SELECT DISTINCT owner FROM memories LIMIT 2")?;
        owners.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    let owner = match &owners[..] {
        [only] => only.clone(),
        _ => scope.owner.as_str().to_owned(),
    };
    Ok(Reader { connection, owner, has_conversations, last: i64::MIN })
}

/// Opens the file for reading alone, with everything off that a file can define and have run.
fn connect(source: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |immutable: bool| -> rusqlite::Result<Connection> {
        let connection = match immutable {
            true => Connection::open_with_flags(uri(source), flags | OpenFlags::SQLITE_OPEN_URI)?,
            false => Connection::open_with_flags(source, flags)?,
        };
        for (setting, is_on) in [
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            connection.set_db_config(setting, is_on)?;
        }
        // A row with its longest text and what stands beside it.
        let longest = 2 * LONGEST_TEXT + (1 << 20);
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, longest as i32),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
            (Limit::SQLITE_LIMIT_COLUMN, 200),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
        ] {
            connection.set_limit(limit, most)?;
        }
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    // What has a log beside it may be in use. What has none may lie where none can be made.
    let mut log = source.as_os_str().to_owned();
    log.push("-wal");
    match Path::new(&log).exists() {
        true => match open(false) {
            Err(error) if error.sqlite_error_code() == Some(CannotOpen) => open(true),
            opened => opened,
        },
        false => open(true),
    }
}

/// Returns the address of a file that doesn't change while it is read.
pub(super) fn uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    #[cfg(windows)]
    uri.push('/');
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b':' => {
                uri.push(char::from(*byte))
            }
            #[cfg(windows)]
            b'\\' => uri.push('/'),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri + "?immutable=1"
}

/// Ends statements that take too long.
fn watch(connection: &mut Connection) -> Result<()> {
    let (mut began, mut last) = (Instant::now(), Instant::now());
    connection.progress_handler(
        LOOK,
        Some(move || {
            // Between two statements nobody looks: what comes after a while is another.
            if last.elapsed() > Duration::from_secs(1) {
                began = Instant::now();
            }
            last = Instant::now();
            began.elapsed() > PATIENCE
        }),
    )?;
    Ok(())
}

/// Whether `name` is a table that holds its rows itself, none of them computed; `None` where there is none.
fn plain_table(connection: &Connection, name: &str) -> Result<Option<bool>> {
    let found: Option<(String, i64)> = connection
        .query_row("SELECT type, rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((kind, root)) = found else { return Ok(None) };
    if kind != "table" || root <= 0 {
        return Ok(Some(false));
    }
    let computed: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0)",
        [name],
        |row| row.get(0),
    )?;
    Ok(Some(!computed))
}

impl Reader {
    /// The conditions under which a memory is read.
    fn admitted(&self) -> String {
        let conversations = match self.has_conversations {
            true => "AND m.seq NOT IN (SELECT memory FROM conversations)",
            false => "",
        };
        format!(
            "m.owner = ?1 AND m.tombstoned_at IS NULL {conversations}
             AND NOT (m.provenance = 'derived' AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.memory = m.seq))"
        )
    }

    fn count(&self) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM memories m WHERE {}", self.admitted());
        let count: i64 = self.connection.query_row(&sql, [&self.owner], |row| row.get(0)).map_err(read)?;
        Ok(count as usize)
    }

    fn page(&mut self) -> Result<Option<ForeignPage>> {
        let sql =
            "SELECT m.id, m.seq, m.kind, m.provenance, m.text, s.name, m.ordinal, m.role, m.speaker, m.title, m.topic,
                 m.source_id, m.path, m.branch, m.head_sha, m.time, m.importance, m.marked, m.tokens, m.indexed
             FROM memories m LEFT JOIN sessions s ON s.seq = m.session WHERE m.seq = ?1";
        let next = format!(
            "SELECT m.seq, octet_length(m.text) <= ?3 AND coalesce(octet_length(m.indexed), 0) <= ?3
                 AND max(coalesce(octet_length(s.name), 0), coalesce(octet_length(m.speaker), 0),
                         coalesce(octet_length(m.title), 0), coalesce(octet_length(m.topic), 0),
                         coalesce(octet_length(m.source_id), 0), coalesce(octet_length(m.path), 0),
                         coalesce(octet_length(m.branch), 0), coalesce(octet_length(m.head_sha), 0)) <= ?4
             FROM memories m LEFT JOIN sessions s ON s.seq = m.session
             WHERE m.seq > ?2 AND {} ORDER BY m.seq LIMIT ?5",
            self.admitted()
        );
        let rows: Vec<(i64, bool)> = self
            .connection
            .prepare_cached(&next)
            .map_err(read)?
            .query_map(
                params![self.owner, self.last, LONGEST_TEXT as i64, LONGEST_NAME as i64, PAGE.0 as i64],
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
            let memory = self.connection.prepare_cached(sql).map_err(read)?.query_row([seq], believable);
            match memory.map_err(read).and_then(|memory| memory.map(|memory| self.beside(memory)).transpose())
            {
                Ok(Some(found)) => {
                    bytes += found.memory.text.len() + found.memory.indexed.as_ref().map_or(0, String::len);
                    page.memories.push(found);
                }
                Ok(None) => page.malformed += 1,
                Err(error) => return Err(error),
            }
            if bytes >= PAGE.1 {
                break;
            }
        }
        Ok(Some(page))
    }

    /// Adds what stands beside the memory in other tables.
    fn beside(&self, memory: Memory) -> Result<ForeignMemory> {
        let strings = |sql: &str| -> Result<Vec<String>> {
            let sql = format!("SELECT {sql} LIMIT {MOST_BESIDE}");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let rows = statement.query_map([memory.seq], |row| {
                Ok(row.get_ref(0)?.as_str().ok().filter(|text| text.len() <= LONGEST_NAME).map(str::to_owned))
            })?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let references = strings("target FROM memory_references WHERE memory = ?1 ORDER BY target")?;
        let references = references.iter().filter_map(|id| MemoryId::parse(id)).collect();
        let files = strings("path FROM memory_paths WHERE memory = ?1 ORDER BY path")?;
        let sha = strings("sha FROM commit_ids WHERE memory = ?1 ORDER BY sha")?
            .into_iter()
            .find(|sha| is_sha(sha));
        let lead: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(end_byte) FROM chunks WHERE memory = ?1")?
            .query_row([memory.seq], |row| row.get(0))
            .unwrap_or_default();
        let lead = lead.filter(|_| memory.indexed.is_some()).and_then(|lead| usize::try_from(lead).ok());
        let commit = match sha {
            None => None,
            Some(sha) => {
                let parents = strings("sha FROM commit_parents WHERE memory = ?1 ORDER BY place")?;
                Some(CommitRecord {
                    sha: memory.source_id.clone().filter(|sha| is_sha(sha)).unwrap_or(sha),
                    parents: parents.into_iter().filter(|sha| is_sha(sha)).collect(),
                    patch_id: None,
                    files: files.clone(),
                })
            }
        };
        Ok(ForeignMemory { memory, references, lead, files, commit })
    }
}

/// Reads a memory, and returns it as far as it can be believed; `None` where it is none.
fn believable(row: &Row<'_>) -> rusqlite::Result<Option<Memory>> {
    let Ok(mut memory) = super::memories::memory(row) else { return Ok(None) };
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
    memory.head_sha = memory.head_sha.filter(|sha| is_sha(sha));
    Ok(Some(memory))
}

/// Returns the most trusted provenance that something of the kind, said by `role`, can have.
fn at_best(kind: MemoryKind, role: Option<Role>) -> Provenance {
    match (kind, role) {
        (MemoryKind::Commit, _) => Provenance::GitCommit,
        (MemoryKind::Conversation | MemoryKind::Summary, _) => Provenance::Derived,
        (_, Some(Role::User)) => Provenance::UserSaid,
        (_, Some(Role::System)) => Provenance::Imported,
        (_, Some(Role::Tool)) => Provenance::ToolOutput,
        // Facts are stored by agents.
        (_, Some(Role::Assistant) | None) => Provenance::ModelSaid,
    }
}

fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Says that a file couldn't be read to its end.
fn read(error: impl Into<rusqlite::Error>) -> Error {
    let error: rusqlite::Error = error.into();
    if error.sqlite_error_code() == Some(OperationInterrupted) {
        return Error::new(Kind::Store, "the backup takes too long to read").hint("it may be damaged");
    }
    Error::new(Kind::Store, "the backup can't be read to its end")
        .source(error)
        .hint("what was read of it is stored; it may be damaged")
}
