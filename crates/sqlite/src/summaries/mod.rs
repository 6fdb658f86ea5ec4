//! Summaries of ranges of messages, and the memory that summarises a whole session.
//!
//! A summary is stored only if the living messages of its range are still exactly the messages that it was made of. The
//! summary is removed when one of these messages is forgotten. Summaries of segments aren't indexed, since searches
//! find their messages. The memory that summarises a whole session, of kind `conversation`, is indexed.

pub(super) mod cache;
pub(super) mod housekeeping;
pub(super) mod queue;

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::file::{rows, verify};
use crate::forget::erase;
use crate::read::parts;
use crate::read::segments::{find_session, hash_of_range, required_session};
use crate::write::one::save_one;
use crate::write::session::OpenSession;
use tiro_base::error;
use tiro_base::memory::{self, Kind, Level, MemoryId, Millis, Provenance};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::stale::{Standin, Standing, standin};
use tiro_store::{ConversationRow, Outcome, PreparedMemory, Saved, Summary, SummaryRow};

/// The farthest that a due date may lie in the future, in milliseconds: a year and a day. No caller postpones a memory
/// that far.
const FARTHEST: Millis = 366 * 24 * 60 * 60 * 1000;

const COLUMNS: &str =
    "u.id, s.name, u.segment, u.level, u.first, u.last, u.messages, u.text, u.tokens, u.provider,
    u.model, u.quality, u.version, u.made_at, u.provenance, u.cited, u.source_hash, u.seq";

impl SqliteStore {
    pub(crate) async fn save_summary(
        &self,
        scope: &Scope,
        summary: Summary,
        now: Millis,
    ) -> error::Result<Saved> {
        self.save_version(scope, summary, Millis::MIN, now).await
    }

    pub(crate) async fn save_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> error::Result<Saved> {
        self.write(scope, move |connection, scope| save_summary(connection, scope, &summary, since, now))
            .await
    }

    pub(crate) async fn foresee_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
    ) -> error::Result<Saved> {
        self.read(scope, move |_, connection, scope| {
            Ok(match place(connection, scope, &summary, since)? {
                Insertion::Known(saved) => saved,
                Insertion::New(session, last) => {
                    Saved::Made(next_id(connection, session, &Summary { last, ..summary })?.1)
                }
            })
        })
        .await
    }

    pub(crate) async fn summaries(
        &self,
        scope: &Scope,
        session: &SessionId,
        level: Option<Level>,
    ) -> error::Result<Vec<SummaryRow>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(Vec::new()) };
            summaries(connection, session, level)
        })
        .await
    }

    pub(crate) async fn summary(&self, scope: &Scope, id: &MemoryId) -> error::Result<Option<SummaryRow>> {
        let id = id.clone();
        self.read(scope, move |_, connection, scope| {
            let sql = format!(
                "SELECT {COLUMNS} FROM summaries u JOIN sessions s ON s.seq = u.session WHERE u.owner = ?1 AND u.id = ?2"
            );
            let found = connection
                .prepare_cached(&sql)?
                .query_row((scope.tenant.as_str(), id.as_str()), |row| summary(connection, row))
                .optional()?;
            Ok(match found {
                Some(found) if find_session(connection, scope, &found.summary.session)?.is_some() => Some(found),
                _ => None,
            })
        })
        .await
    }

    pub(crate) async fn conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Option<ConversationRow>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(None) };
            Ok(connection
                .prepare_cached(
                    "SELECT m.id, c.last, c.made_at FROM conversations c JOIN memories m ON m.seq = c.memory
                     WHERE c.session = ?1",
                )?
                .query_row([session], |row| {
                    Ok(ConversationRow { id: columns::id(row, 0)?, last: row.get(1)?, made_at: row.get(2)? })
                })
                .optional()?)
        })
        .await
    }

    pub(crate) async fn save_conversation(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        last: i64,
        source_hash: [u8; 32],
        now: Millis,
    ) -> error::Result<Saved> {
        self.write(scope, move |connection, scope| {
            let Some(name) = &memory.draft.session else { return Ok(Saved::SourcesChanged) };
            let session = required_session(connection, scope, name)?;
            if hash_of_range(connection, session, 0, last)? != source_hash {
                return Ok(Saved::SourcesChanged);
            }
            let due = match standin(standing(connection, session)?, &memory.id, last) {
                Standin::Stays(id) => return Ok(Saved::AlreadyMade(id)),
                Standin::First => None,
                Standin::Replaces { due } => {
                    connection
                        .prepare_cached("DELETE FROM conversations WHERE session = ?1")?
                        .execute([session])?;
                    due
                }
            };
            let part = parts::of_row(connection, scope, session)?;
            let mut open = OpenSession::open(connection, &part, name)?;
            if save_one(connection, &part, &memory, Some(&mut open), now)? != Outcome::Stored {
                return Ok(Saved::AlreadyMade(memory.id));
            }
            connection
                .prepare_cached(
                    "INSERT INTO conversations (session, memory, last, made_at, due)
                     SELECT ?1, seq, ?4, ?5, ?6 FROM memories WHERE owner = ?2 AND id = ?3",
                )?
                .execute(params![session, part.tenant.as_str(), memory.id.as_str(), last, now, due])?;
            Ok(Saved::Made(memory.id))
        })
        .await
    }

    pub(crate) async fn save_quarter(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        now: Millis,
    ) -> error::Result<Outcome> {
        self.write(scope, move |connection, scope| {
            let scope = &parts::of_draft(connection, scope, &memory.draft)?.part;
            let mut statement = connection.prepare_cached(
                "SELECT seq FROM memories WHERE owner = ?1 AND kind = 'summary' AND provenance = 'derived'
                     AND topic = ?2 AND id <> ?3",
            )?;
            let before: Vec<i64> = statement
                .query_map((scope.tenant.as_str(), &memory.draft.topic, memory.id.as_str()), |row| {
                    row.get(0)
                })?
                .collect::<Result<_, _>>()?;
            for seq in before {
                connection
                    .prepare_cached("DELETE FROM operation_memories WHERE memory = ?1")?
                    .execute([seq])?;
                erase(connection, seq)?;
            }
            save_one(connection, scope, &memory, None, now)
        })
        .await
    }

    pub(crate) async fn quarter_is_retired(&self, scope: &Scope, topic: &str) -> error::Result<bool> {
        let topic = topic.to_owned();
        self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached(
                    "SELECT 1 FROM memories m JOIN memory_references r ON r.memory = m.seq
                     JOIN sessions s ON s.retired = r.target AND s.owner = m.owner
                     WHERE m.owner = ?1 AND m.kind = 'summary' AND m.provenance = 'derived' AND m.topic = ?2",
                )?
                .exists((scope.tenant.as_str(), topic))?)
        })
        .await
    }

    pub(crate) async fn postpone_conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
        due: Millis,
    ) -> error::Result<()> {
        let session = session.clone();
        self.write(scope, move |connection, scope| {
            if let Some(session) = find_session(connection, scope, &session)? {
                connection
                    .prepare_cached("UPDATE conversations SET due = ?2 WHERE session = ?1")?
                    .execute((session, due))?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn due_conversations(
        &self,
        scope: &Scope,
        now: Millis,
        limit: usize,
    ) -> error::Result<Vec<SessionId>> {
        self.read(scope, move |_, connection, scope| {
            // A date that is too far in the future was written with a wrong clock, so the memory counts as due.
            let mut statement = connection.prepare_cached(
                "SELECT s.name FROM conversations c JOIN sessions s ON s.seq = c.session
                 WHERE s.owner = ?1 AND c.due IS NOT NULL AND (c.due <= ?2 OR c.due > ?2 + ?3) ORDER BY c.due, s.seq",
            )?;
            let mut rows = statement.query((scope.tenant.as_str(), now, FARTHEST))?;
            let mut due = Vec::new();
            while let Some(row) = rows.next()?.filter(|_| due.len() < limit) {
                let session = columns::word(row, 0, SessionId::parse)?;
                if find_session(connection, scope, &session)?.is_some() {
                    due.push(session);
                }
            }
            Ok(due)
        })
        .await
    }
}

/// Returns the newest version of each summary of the session at the level, or at all levels if the level is `None`.
pub(crate) fn summaries(
    connection: &Connection,
    session: i64,
    level: Option<Level>,
) -> Result<Vec<SummaryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summaries u JOIN sessions s ON s.seq = u.session
         WHERE u.session = ?1 AND (?2 IS NULL OR u.level = ?2) AND NOT EXISTS (
             SELECT 1 FROM summaries o WHERE o.session = u.session AND o.first = u.first AND o.last = u.last
                 AND o.level = u.level AND o.version > u.version)
         ORDER BY u.first, u.last, u.level"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map((session, level.map(Level::as_str)), |row| summary(connection, row))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the fields of the session's summarising memory that decide whether another memory replaces it.
fn standing(connection: &Connection, session: i64) -> Result<Option<Standing>> {
    let sql = "SELECT m.id, c.last, c.due FROM conversations c JOIN memories m ON m.seq = c.memory WHERE c.session = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let standing = statement.query_row([session], |row| {
        Ok(Standing { id: columns::id(row, 0)?, last: row.get(1)?, due: row.get(2)? })
    });
    Ok(standing.optional()?)
}

fn save_summary(
    connection: &Connection,
    scope: &Scope,
    summary: &Summary,
    since: Millis,
    now: Millis,
) -> Result<Saved> {
    match place(connection, scope, summary, since)? {
        Insertion::Known(saved) => Ok(saved),
        Insertion::New(session, last) => {
            insert_version(connection, scope, session, &Summary { last, ..summary.clone() }, now)
        }
    }
}

/// The decision whether a summary must be inserted.
enum Insertion {
    /// The summary is not inserted, and the field has the result.
    Known(Saved),
    /// The summary is inserted for this session, with this last message.
    New(i64, i64),
}

/// Decides whether the summary must be inserted.
fn place(connection: &Connection, scope: &Scope, summary: &Summary, since: Millis) -> Result<Insertion> {
    let Summary { first, level, .. } = *summary;
    // The session may have been purged after the summary was made.
    let Some(session) = find_session(connection, scope, &summary.session)? else {
        return Ok(Insertion::Known(Saved::SourcesChanged));
    };
    // The range is cut at the end of the session, so that later messages don't fall into it.
    let last: i64 = connection
        .prepare_cached("SELECT min(last, ?2) FROM sessions WHERE seq = ?1")?
        .query_row((session, summary.last), |row| row.get(0))?;
    if hash_of_range(connection, session, first, last)? != summary.source_hash {
        return Ok(Insertion::Known(Saved::SourcesChanged));
    }
    let made: Option<MemoryId> = connection
        .prepare_cached(
            "SELECT id FROM summaries WHERE session = ?1 AND first = ?2 AND last = ?3 AND level = ?4
                 AND provider = ?5 AND model = ?6 AND source_hash = ?7 AND (made_at >= ?8 OR text = ?9)
             ORDER BY version DESC LIMIT 1",
        )?
        .query_row(
            params![
                session,
                first,
                last,
                level.as_str(),
                summary.provider,
                summary.model,
                summary.source_hash,
                since,
                summary.text
            ],
            |row| columns::id(row, 0),
        )
        .optional()?;
    if let Some(id) = made {
        return Ok(Insertion::Known(Saved::AlreadyMade(id)));
    }
    Ok(Insertion::New(session, last))
}

/// Returns the number of the next version for the summary's range and level, and the id of that version.
fn next_id(connection: &Connection, session: i64, summary: &Summary) -> Result<(i64, MemoryId)> {
    let Summary { first, last, level, .. } = *summary;
    let version: i64 = connection
        .prepare_cached(
            "SELECT coalesce(max(version), 0) + 1 FROM summaries
             WHERE session = ?1 AND first = ?2 AND last = ?3 AND level = ?4",
        )?
        .query_row(params_from_iter(params_of(session, first, last, level)), |row| row.get(0))?;
    let sources = blake3::Hash::from(summary.source_hash).to_hex();
    let key = format!("{level} {first} {last} {version} {sources} {} {}", summary.provider, summary.model);
    let name: String = connection
        .prepare_cached("SELECT name FROM sessions WHERE seq = ?1")?
        .query_row([session], |row| row.get(0))?;
    let id = MemoryId::derive(Kind::Summary, SessionId::parse(&name).as_ref(), &key);
    Ok((version, id))
}

/// Inserts the summary as the next version for its range and level. The range must not go beyond the end of the
/// session.
fn insert_version(
    connection: &Connection,
    scope: &Scope,
    session: i64,
    summary: &Summary,
    now: Millis,
) -> Result<Saved> {
    let Summary { first, last, level, .. } = *summary;
    let (version, id) = next_id(connection, session, summary)?;
    let cited: Vec<String> = summary.cited.iter().map(i64::to_string).collect();
    connection
        .prepare_cached(
            "INSERT INTO summaries (owner, id, session, segment, level, first, last, messages, version, provider, model,
                 quality, provenance, made_at, source_hash, cited, tokens, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?
        .execute(params![
            parts::of_row(connection, scope, session)?.tenant.as_str(),
            id.as_str(),
            session,
            summary.segment,
            level.as_str(),
            first,
            last,
            summary.messages,
            version,
            summary.provider,
            summary.model,
            summary.quality,
            summary.provenance.as_str(),
            now,
            summary.source_hash,
            cited.join(" "),
            summary.tokens,
            summary.text,
        ])?;
    Ok(Saved::Made(id))
}

fn params_of(session: i64, first: i64, last: i64, level: Level) -> [rusqlite::types::Value; 4] {
    [session.into(), first.into(), last.into(), level.as_str().to_owned().into()]
}

/// Reads a summary. If the summary's row is damaged, the text is marked.
fn summary(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<SummaryRow> {
    Ok(SummaryRow {
        id: columns::id(row, 0)?,
        version: row.get(12)?,
        made_at: row.get(13)?,
        summary: Summary {
            session: columns::word(row, 1, SessionId::parse)?,
            segment: row.get(2)?,
            level: columns::word(row, 3, Level::parse)?,
            first: row.get(4)?,
            last: row.get(5)?,
            messages: row.get(6)?,
            text: memory::marked(verify::text(row, 7)?, rows::is_summary_damaged(connection, row.get(17)?)?),
            tokens: row.get(8)?,
            provider: row.get(9)?,
            model: row.get(10)?,
            quality: row.get(11)?,
            provenance: columns::word(row, 14, Provenance::parse)?,
            cited: row.get::<_, String>(15)?.split(' ').filter_map(|ordinal| ordinal.parse().ok()).collect(),
            source_hash: row.get(16)?,
        },
    })
}
