//! Reads the messages and segments of a session, and versions by which changes of a session are noticed.
//!
//! Whenever any program changes a memory, triggers of the schema give its session and its owner a new version.
//! A cached answer stays current until the version changes.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::SqliteStore;
use crate::columns;
use crate::error::{Error, Result};
use crate::file::verify;
use crate::keys::{key, memory_key};
use crate::read::conditions::Conditions;
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Provenance, Role};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::decide::stale;
use tiro_store::{GrownSession, MessageRow, SegmentRow, SourceState, Version, source_hash};

impl SqliteStore {
    pub(crate) async fn session_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        from_ordinal: i64,
    ) -> error::Result<Vec<MessageRow>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(Vec::new()) };
            messages(connection, session, from_ordinal)
        })
        .await
    }

    pub(crate) async fn texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<(MemoryKey, String)>> {
        let texts = self.checked_texts(scope, keys).await?;
        Ok(texts.into_iter().map(|(key, text, _)| (key, text)).collect())
    }

    pub(crate) async fn checked_texts(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<(MemoryKey, String, bool)>> {
        self.read(scope, move |_, connection, scope| checked_texts(connection, scope, keys)).await
    }

    pub(crate) async fn segments(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Vec<SegmentRow>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(Vec::new()) };
            segments(connection, session)
        })
        .await
    }

    pub(crate) async fn add_segments(
        &self,
        scope: &Scope,
        session: &SessionId,
        segments: Vec<SegmentRow>,
    ) -> error::Result<()> {
        let session = session.clone();
        self.write(scope, move |connection, scope| {
            let Some(session) = find_session(connection, scope, &session)? else { return Ok(()) };
            let (next, from): (i64, i64) = connection
                .prepare_cached(
                    "SELECT coalesce(max(number), -1) + 1, coalesce(max(last), -1) + 1 FROM segments WHERE session = ?1",
                )?
                .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for (number, first, last) in stale::closed(next, from, &segments) {
                connection
                    .prepare_cached(
                        "INSERT INTO segments (session, number, first, last, messages, tokens)
                         SELECT ?1, ?2, ?3, ?4, count(*), coalesce(sum(tokens), 0) FROM memories
                         WHERE session = ?1 AND ordinal BETWEEN ?3 AND ?4 AND tombstoned_at IS NULL",
                    )?
                    .execute((session, number, first, last))?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn source_state(&self, scope: &Scope) -> error::Result<SourceState> {
        self.read(scope, |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!("SELECT 1 FROM memories m WHERE {} LIMIT 1", conditions.sql);
            let is_empty =
                !connection.prepare_cached(&sql)?.exists(rusqlite::params_from_iter(conditions.values))?;
            Ok(SourceState { version: version(connection, scope)?, is_empty })
        })
        .await
    }

    pub(crate) async fn grown_sessions(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<GrownSession>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT seq, name, grown FROM sessions WHERE owner = ?1 AND grown IS NOT NULL ORDER BY grown, seq",
            )?;
            let mut rows = statement.query([scope.tenant.as_str()])?;
            let mut grown = Vec::new();
            while let Some(row) = rows.next()? {
                let Some(session) = SessionId::parse(&row.get::<_, String>(1)?) else { continue };
                if grown.len() >= limit {
                    break;
                }
                if find_session(connection, scope, &session)?.is_some() {
                    grown.push(GrownSession { session, version: key(row, 2)? });
                }
            }
            Ok(grown)
        })
        .await
    }

    pub(crate) async fn worked_off(&self, scope: &Scope, grown: GrownSession) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            let session = parts::session_called(connection, scope, &grown.session)?;
            connection
                .prepare_cached("UPDATE sessions SET grown = NULL WHERE seq = ?1 AND grown = ?2")?
                .execute((session, grown.version.in_store()))?;
            Ok(())
        })
        .await
    }
}

/// Returns the version of the scope.
fn version(connection: &Connection, scope: &Scope) -> Result<Version> {
    let owner = scope.tenant.as_str();
    let Sessions::Only(names) = &scope.sessions else {
        let version = connection
            .prepare_cached("SELECT version FROM versions WHERE owner = ?1")?
            .query_row([owner], |row| key(row, 0))
            .optional()?;
        return Ok(version.unwrap_or(Version::from_store(0)));
    };
    // The versions are hashed. Their sum or maximum would not be enough: after a session was removed, the sum or
    // maximum could be the same as at an earlier time.
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 source version");
    let mut sessions = Vec::with_capacity(names.len());
    for name in names {
        sessions.extend(named(connection, scope, name)?);
    }
    sessions.sort_unstable();
    sessions.dedup();
    for (session, version) in sessions {
        hasher.update(&session.to_le_bytes());
        hasher.update(&version.to_le_bytes());
    }
    let bytes = hasher.finalize().as_bytes()[..8].try_into().expect("8 of 32 bytes");
    Ok(Version::from_store(i64::from_le_bytes(bytes) & i64::MAX))
}

/// Returns the living messages of the session from `from_ordinal` on, in order.
pub(super) fn messages(connection: &Connection, session: i64, from_ordinal: i64) -> Result<Vec<MessageRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, id, ordinal, role, speaker, time, tokens, marked, importance, kind, provenance, owner, author
         FROM memories
         WHERE session = ?1 AND ordinal >= ?2 AND tombstoned_at IS NULL ORDER BY ordinal",
    )?;
    let rows = statement.query_map((session, from_ordinal), message_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the texts of the memories in `keys`, in the order of `keys`, and whether each text is damaged.
pub(crate) fn checked_texts(
    connection: &Connection,
    scope: &Scope,
    keys: Vec<MemoryKey>,
) -> Result<Vec<(MemoryKey, String, bool)>> {
    let conditions = Conditions::of_scope(connection, scope)?;
    let sql = format!("SELECT m.text, m.text_hash FROM memories m WHERE m.seq = ? AND {}", conditions.sql);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut texts = Vec::with_capacity(keys.len());
    for key in keys {
        let values = std::iter::once(Value::from(key.in_store())).chain(conditions.values.iter().cloned());
        let text = statement.query_row(rusqlite::params_from_iter(values), |row| {
            Ok((key, verify::text(row, 0)?, verify::differs(row, 0, 1)?))
        });
        texts.extend(text.optional()?);
    }
    Ok(texts)
}

/// Returns the closed segments of the session, in order.
pub(super) fn segments(connection: &Connection, session: i64) -> Result<Vec<SegmentRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, first, last, messages, tokens FROM segments WHERE session = ?1 ORDER BY number",
    )?;
    let rows = statement.query_map([session], segment)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the tokens of the session's living messages.
pub(super) fn tokens(connection: &Connection, session: i64) -> Result<i64> {
    // For closed segments, the sums of tokens are already stored.
    let (closed, from): (i64, i64) = connection
        .prepare_cached(
            "SELECT coalesce(sum(tokens), 0), coalesce(max(last), -1) FROM segments WHERE session = ?1",
        )?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let open: i64 = connection
        .prepare_cached(
            "SELECT coalesce(sum(tokens), 0) FROM memories
             WHERE session = ?1 AND ordinal > ?2 AND tombstoned_at IS NULL",
        )?
        .query_row((session, from), |row| row.get(0))?;
    Ok(closed + open)
}

/// Returns the row of the session with the name or alias `session`. Returns `None` if there is no such session, or if
/// the scope doesn't admit it.
pub(crate) fn find_session(
    connection: &Connection,
    scope: &Scope,
    session: &SessionId,
) -> Result<Option<i64>> {
    let Some((seq, _)) = named(connection, scope, session)? else { return Ok(None) };
    let Sessions::Only(names) = &scope.sessions else { return Ok(Some(seq)) };
    for name in names {
        if named(connection, scope, name)?.is_some_and(|(admitted, _)| admitted == seq) {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Returns the row and the version of the session with the name or alias `name`, which may be a private session of the
/// reader or a shared session.
pub(crate) fn named(connection: &Connection, scope: &Scope, name: &SessionId) -> Result<Option<(i64, i64)>> {
    Ok(connection
        .prepare_cached(
            "SELECT seq, version FROM (
                 SELECT seq, version, iif(owner = ?1, 1, 0) AS place FROM sessions
                 WHERE owner IN (?1, ?3) AND name = ?2
                 UNION ALL
                 SELECT s.seq, s.version, iif(a.owner = ?1, 3, 2)
                 FROM session_aliases a JOIN sessions s ON s.seq = a.session
                 WHERE a.owner IN (?1, ?3) AND a.alias = ?2)
             ORDER BY place LIMIT 1",
        )?
        .query_row((scope.tenant.as_str(), name.as_str(), parts::private(scope)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?)
}

/// Like [`find_session`], but errors with `Kind::NotFound` if the scope has no such session.
pub(crate) fn required_session(connection: &Connection, scope: &Scope, session: &SessionId) -> Result<i64> {
    find_session(connection, scope, session)?.ok_or_else(|| {
        Error::not_found(format!("no session `{session}`"))
            .hint("`list_sessions` lists this project's sessions")
    })
}

/// Returns the [`source_hash`] of the living messages of the session from the ordinal `first` to `last`.
pub(crate) fn hash_of_range(
    connection: &Connection,
    session: i64,
    first: i64,
    last: i64,
) -> Result<[u8; 32]> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM memories WHERE session = ?1 AND ordinal BETWEEN ?2 AND ?3 AND tombstoned_at IS NULL
         ORDER BY ordinal",
    )?;
    let ids = statement.query_map((session, first, last), |row| columns::id(row, 0))?;
    let ids: Vec<MemoryId> = ids.collect::<Result<_, _>>()?;
    Ok(source_hash(&ids))
}

/// Gives new versions to the sessions of the chunks and to their parts, because searches by meaning can now find the
/// chunks.
pub(crate) fn bump(connection: &Connection, chunks: &[i64]) -> Result<()> {
    let mut owners = BTreeSet::new();
    for chunk in chunks {
        let owner: Option<String> = connection
            .prepare_cached(
                "SELECT m.owner FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = ?1",
            )?
            .query_row([chunk], |row| row.get(0))
            .optional()?;
        owners.extend(owner);
    }
    for owner in owners {
        connection
            .prepare_cached(
                "INSERT INTO versions (owner, version) VALUES (?1, 1) ON CONFLICT DO UPDATE SET version = version + 1",
            )?
            .execute([owner])?;
    }
    for chunk in chunks {
        connection
            .prepare_cached(
                "UPDATE sessions SET version = (SELECT version FROM versions v WHERE v.owner = sessions.owner)
                 WHERE seq = (SELECT m.session FROM chunks c JOIN memories m ON m.seq = c.memory WHERE c.seq = ?1)",
            )?
            .execute([chunk])?;
    }
    Ok(())
}

/// Reads a segment from its columns, in the order of [`SegmentRow`].
pub(crate) fn segment(row: &Row<'_>) -> rusqlite::Result<SegmentRow> {
    Ok(SegmentRow {
        number: row.get(0)?,
        first: row.get(1)?,
        last: row.get(2)?,
        messages: row.get(3)?,
        tokens: row.get(4)?,
    })
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        key: memory_key(row, 0)?,
        id: columns::id(row, 1)?,
        ordinal: row.get(2)?,
        author: parts::author(row, (11, 12))?,
        role: row.get_ref(3)?.as_str_or_null()?.and_then(Role::parse),
        speaker: row.get(4)?,
        time: row.get(5)?,
        tokens: row.get(6)?,
        marked: row.get(7)?,
        importance: row.get(8)?,
        kind: columns::word(row, 9, Kind::parse)?,
        provenance: columns::word(row, 10, Provenance::parse)?,
        is_damaged: false,
    })
}
