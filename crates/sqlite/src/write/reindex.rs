//! Indexes again, in bounded steps, memories that an earlier version of the program indexed.
//!
//! Rows of the text index can't be read, so a row is made again from its memory. An old row has only the words of the
//! memory, but no exact forms of identifiers, no stems, and no pairs of characters. Rows that would get no such
//! additions are not changed. Forgotten memories are not changed either; if they are restored, they are found only by
//! their words.

use rusqlite::{Connection, OptionalExtension, Row};

use super::chunks::{index, indexed_paths};
use super::turns;
use crate::SqliteStore;
use crate::error::Result;
use tiro_base::error;
use tiro_base::memory::{Group, Kind, MemoryKey, Role};
use tiro_base::scope::Scope;
use tiro_text::chunk::index_text::{self, About, VERSION};

/// The keys in `meta` for the version of the index's rows, and for the number of the last memory that is not checked
/// yet.
const TEXT_VERSION: &str = "text_version";
const TEXT_LEFT: &str = "text_left";

/// The columns that are read of a memory.
const COLUMNS: &str =
    "m.seq, (SELECT count(*) FROM chunks c WHERE c.memory = m.seq), m.session, m.ordinal, m.kind,
    m.role, m.speaker, m.title, m.topic, m.path, m.time, m.text, m.indexed";

/// The number of chunks that one step checks. A step makes other writers wait about fifty milliseconds.
const CHUNKS: i64 = 300;

impl SqliteStore {
    /// Indexes again some of the memories that an earlier version of the program indexed, the newest first. Returns
    /// whether any are left.
    pub async fn reindex_text(&self, scope: &Scope) -> error::Result<bool> {
        if self.read_all(scope, |_, connection, _| is_current(connection)).await? {
            return Ok(false);
        }
        self.write(scope, |connection, _| step(connection)).await
    }
}

fn is_current(connection: &Connection) -> Result<bool> {
    Ok(noted(connection, TEXT_VERSION)?.is_some_and(|version| version >= VERSION))
}

/// Checks the next memories, and returns whether any are left.
fn step(connection: &Connection) -> Result<bool> {
    // Another process may have done the last step.
    if is_current(connection)? {
        return Ok(false);
    }
    let last = noted(connection, TEXT_LEFT)?.unwrap_or(i64::MAX);
    let (mut checked, mut next) = (0, None);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM memories m WHERE m.seq <= ?1 AND m.tombstoned_at IS NULL ORDER BY m.seq DESC"
    ))?;
    let mut rows = statement.query([last])?;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        if checked >= CHUNKS {
            next = Some(seq);
            break;
        }
        checked += row.get::<_, i64>(1)?.max(1);
        match (row.get(2)?, row.get(3)?) {
            (Some(session), Some(ordinal)) => turns::reindex_turn(connection, session, ordinal)?,
            _ => reindex(connection, seq, row, Which::Outdated)?,
        }
    }
    match next {
        Some(next) => put(connection, TEXT_LEFT, next)?,
        None => {
            connection.execute("DELETE FROM meta WHERE key IN (?1, 'text_merged')", [TEXT_LEFT])?;
            put(connection, TEXT_VERSION, VERSION)?;
        }
    }
    Ok(next.is_some())
}

/// Indexes again the chunks of a memory that is not a message. Called when the indexed text of the memory has changed.
pub(crate) fn reindex_memory(connection: &Connection, memory: MemoryKey) -> Result<()> {
    let seq = memory.in_store();
    let sql = format!("SELECT {COLUMNS} FROM memories m WHERE m.seq = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([seq])?;
    match rows.next()? {
        Some(row) => reindex(connection, seq, row, Which::All),
        None => Ok(()),
    }
}

/// Which chunks of a memory are indexed again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Outdated,
}

/// Indexes chunks of a memory that is not a message.
fn reindex(connection: &Connection, seq: i64, row: &Row<'_>, which: Which) -> Result<()> {
    let text = |column| row.get::<_, Option<String>>(column);
    let Some(kind) = Kind::parse(&row.get::<_, String>(4)?) else { return Ok(()) };
    let (speaker, title, topic, path) = (text(6)?, text(7)?, text(8)?, text(9)?);
    let about = About {
        kind,
        role: text(5)?.and_then(|word| Role::parse(&word)),
        speaker: speaker.as_deref(),
        title: title.as_deref(),
        topic: topic.as_deref(),
        path: path.as_deref(),
        time: row.get(10)?,
    };
    let paths = match kind.group() {
        Group::Commit => paths_of(connection, seq)?,
        _ => String::new(),
    };
    let (whole, instead): (String, Option<String>) = (row.get(11)?, text(12)?);
    let sql = "SELECT seq, start_byte, end_byte, ordinal FROM chunks WHERE memory = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut chunks = statement.query([seq])?;
    while let Some(chunk) = chunks.next()? {
        let (chunk, start, end, place): (i64, i64, i64, i64) =
            (chunk.get(0)?, chunk.get(1)?, chunk.get(2)?, chunk.get(3)?);
        let piece = whole.get(start as usize..end as usize).unwrap_or_default();
        let piece = instead.as_deref().filter(|_| place == 0).unwrap_or(piece);
        let context = if place < index_text::WITH_CONTEXT { paths.as_str() } else { "" };
        if which == Which::All || index_text::is_outdated(piece, context) {
            connection.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?.execute([chunk])?;
            index(connection, chunk, kind.group(), &about.indexed(piece, context))?;
        }
    }
    Ok(())
}

/// Returns the paths of a commit that are indexed, one on each line.
fn paths_of(connection: &Connection, seq: i64) -> Result<String> {
    let mut statement = connection.prepare_cached("SELECT path FROM memory_paths WHERE memory = ?1")?;
    let paths: Vec<String> = statement.query_map([seq], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(indexed_paths(paths.iter()))
}

fn put(connection: &Connection, key: &str, value: i64) -> Result<()> {
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, value))?;
    Ok(())
}

fn noted(connection: &Connection, key: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_text::words::{self, Language};

    /// Returns a store of `count` messages and one commit, indexed as the first version did.
    fn outdated(count: i64) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for sql in [
            include_str!("../../migrations/0001_memories.sql"),
            include_str!("../../migrations/0002_sessions.sql"),
        ] {
            connection.execute_batch(sql).unwrap();
        }
        connection.execute("INSERT INTO sessions (seq, owner, name) VALUES (1, 'ines', 's')", []).unwrap();
        for seq in 1..=count + 1 {
            let text = match seq {
                2 => "Die Sicherungen sind verschlüsselt und liegen bei Anna".to_owned(),
                3 => "plain words".to_owned(),
                seq => format!("see NO_COLOR of number {seq}"),
            };
            let (kind, session, ordinal) = match seq > count {
                true => ("commit", None, None),
                false => ("message", Some(1), Some(seq)),
            };
            connection
                .execute(
                    "INSERT INTO memories (seq, owner, id, kind, provenance, session, ordinal, time, stored_at, tokens,
                         text_hash, text)
                     VALUES (?1, 'ines', ?1, ?2, 'user_said', ?3, ?4, 0, 0, 1, x'00', ?5)",
                    (seq, kind, session, ordinal, &text),
                )
                .unwrap();
            connection
                .execute("INSERT INTO chunks VALUES (?1, ?1, 0, 0, ?2, 1)", (seq, text.len() as i64))
                .unwrap();
            connection.execute("INSERT INTO text_index (rowid, text) VALUES (?1, ?2)", (seq, text)).unwrap();
        }
        connection.execute("INSERT INTO memory_paths VALUES (?1, 'src/cli.rs')", [count + 1]).unwrap();
        connection
    }

    fn found(connection: &Connection, word: &str) -> Vec<i64> {
        let sql = "SELECT rowid FROM text_index WHERE text_index MATCH ?1 ORDER BY rowid";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([format!("\"{word}\"")], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn rows_of_an_earlier_version_get_exact_forms_and_stems_in_bounded_steps() {
        let connection = outdated(CHUNKS + 20);
        let (exact, stem) = (words::exact("NO_COLOR"), Language::German.stem("sicherung").unwrap());
        assert_eq!((found(&connection, &exact).len(), found(&connection, &stem).len()), (0, 0));
        assert!(step(&connection).unwrap(), "one step is not enough");
        assert_eq!(found(&connection, &exact).len() as i64, CHUNKS, "the newest are first");
        assert!(!is_current(&connection).unwrap());
        assert!(!step(&connection).unwrap() && is_current(&connection).unwrap());
        assert_eq!(found(&connection, &exact).len() as i64, CHUNKS + 20 + 1 - 2);
        // The neighbours of the German message have its stem in their context.
        assert_eq!(found(&connection, &stem), [1, 2, 3, 4]);
        assert_eq!(found(&connection, "cli rs"), [CHUNKS + 21], "the paths of a commit stay");
        assert!(!step(&connection).unwrap());
    }

    #[test]
    fn a_forgotten_memory_keeps_its_row_and_a_finished_index_is_merged_again() {
        let connection = outdated(5);
        connection.execute("UPDATE memories SET tombstoned_at = 1 WHERE seq = 4", []).unwrap();
        put(&connection, "text_merged", 99).unwrap();
        while step(&connection).unwrap() {}
        assert_eq!(found(&connection, &words::exact("NO_COLOR")), [1, 5, 6]);
        assert!(found(&connection, "number 4").contains(&4), "it is found by its words");
        assert_eq!(noted(&connection, "text_merged").unwrap(), None);
    }
}
