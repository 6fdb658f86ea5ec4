//! Reads the messages of a session, texts, and versions by which changes of a session are noticed.
//!
//! Whenever any program changes a memory, triggers of the schema give its session and its part of the store a new
//! version. A cached answer stays current until the version changes.

use std::collections::HashMap;

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{self, memory_key, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::{SessionRef, is_named, session_called, sessions};
use crate::read::conditions::{Which, of_scope};
use crate::read::find::{find_session, named};
use crate::transactions::{Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::{Kind, MemoryKey, Provenance, Role};
use tiro_base::scope::{AuthorId, Scope, SessionId, Sessions};
use tiro_store::{GrownSession, MessageRow, SourceState, Version};

impl PostgresStore {
    pub(crate) async fn session_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        from_ordinal: i64,
    ) -> error::Result<Vec<MessageRow>> {
        read!(self, scope, tx => {
            match find_session(&tx, scope, session).await? {
                Some(session) => messages(&tx, session, from_ordinal).await,
                None => Ok(Vec::new()),
            }
        })
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
        read!(self, scope, tx => { checked_texts(&tx, scope, &keys).await })
    }

    pub(crate) async fn source_state(&self, scope: &Scope) -> error::Result<SourceState> {
        read!(self, scope, tx => {
            let mut sql = Sql::new("SELECT FROM memories m WHERE ");
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            sql.push(" LIMIT 1");
            let is_empty = tx.query(&sql).await?.is_empty();
            Ok(SourceState { version: version(&tx, scope).await?, is_empty })
        })
    }

    pub(crate) async fn grown_sessions(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> error::Result<Vec<GrownSession>> {
        read!(self, scope, tx => {
            let admitted = sessions(&tx, scope).await?;
            let admitted: Option<Vec<i64>> =
                admitted.map(|sessions| sessions.iter().map(|session| session.seq).collect());
            let sql = format!(
                "SELECT s.name, s.grown FROM sessions s
                 WHERE s.owner = ANY ($1) AND s.grown IS NOT NULL AND {}
                     AND ($3::bigint[] IS NULL OR s.seq = ANY ($3))
                 ORDER BY s.grown, s.seq LIMIT $4",
                is_named("$2")
            );
            let rows =
                tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &admitted, &number(limit)]).await?;
            let grown = |row: &Row| {
                let version = Version::from_store(row.try_get(1)?);
                Ok(GrownSession { session: columns::word(row, 0, SessionId::parse)?, version })
            };
            rows.iter().map(grown).collect()
        })
    }

    pub(crate) async fn worked_off(&self, scope: &Scope, grown: GrownSession) -> error::Result<()> {
        write!(self, scope, tx => {
            if let Some(session) = session_called(&tx, &grown.session).await? {
                let sql = "UPDATE sessions SET grown = NULL WHERE owner = $1 AND seq = $2 AND grown = $3";
                tx.execute(sql, &[&session.owner, &session.seq, &grown.version.in_store()]).await?;
            }
            Ok(())
        })
    }
}

/// Returns the version of the scope.
async fn version(tx: &Transaction, scope: &Scope) -> Result<Version> {
    let Sessions::Only(names) = &scope.sessions else {
        // The version of each part only rises, so a sum never occurs again.
        let sql = "SELECT coalesce(sum(version), 0)::bigint FROM versions WHERE owner = ANY ($1)";
        return Ok(Version::from_store(tx.only(sql, &[&tx.seen.parts]).await?.try_get(0)?));
    };
    // The versions are hashed. Their sum or maximum would not be enough: after a session was removed, the sum or
    // maximum could be the same as at an earlier time.
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 source version");
    let found = named(tx, names).await?;
    let mut sessions: Vec<(i64, i64)> =
        found.into_iter().flatten().map(|(session, version)| (session.seq, version)).collect();
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
pub(crate) async fn messages(
    tx: &Transaction,
    session: SessionRef,
    from_ordinal: i64,
) -> Result<Vec<MessageRow>> {
    let sql = "SELECT seq, id, ordinal, role, speaker, time, tokens, marked, importance, kind, provenance, author
               FROM memories
               WHERE owner = $1 AND session = $2 AND ordinal >= $3 AND tombstoned_at IS NULL ORDER BY ordinal";
    let rows = tx.rows(sql, &[&session.owner, &session.seq, &from_ordinal]).await?;
    rows.iter().map(message_row).collect()
}

/// Returns the texts of the memories in `keys`, in the order of `keys`, and whether each text is damaged. Memories that
/// are not living or not in the scope are left out.
pub(crate) async fn checked_texts(
    tx: &Transaction,
    scope: &Scope,
    keys: &[MemoryKey],
) -> Result<Vec<(MemoryKey, String, bool)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("SELECT m.seq, m.text, m.text_hash FROM memories m WHERE ");
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let seqs = sql.bind(keys.iter().map(|key| key.in_store()).collect::<Vec<i64>>());
    sql.push(&format!(" AND m.seq = ANY ({seqs})"));
    let mut found: HashMap<MemoryKey, (String, bool)> = HashMap::with_capacity(keys.len());
    for row in tx.query(&sql).await? {
        let text: String = row.try_get(1)?;
        let is_damaged = blake3::hash(text.as_bytes()).as_bytes().as_slice() != row.try_get::<_, &[u8]>(2)?;
        found.insert(memory_key(&row, 0)?, (text, is_damaged));
    }
    let text = |key: &MemoryKey| found.get(key).map(|(text, is_damaged)| (*key, text.clone(), *is_damaged));
    Ok(keys.iter().filter_map(text).collect())
}

/// Returns the tokens of the session's living messages.
pub(crate) async fn tokens(tx: &Transaction, session: SessionRef) -> Result<i64> {
    // For closed segments, the sums of tokens are already stored.
    let sql = "WITH closed AS (SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(max(last), -1) AS last
                   FROM segments WHERE owner = $1 AND session = $2)
               SELECT (closed.tokens + (SELECT coalesce(sum(m.tokens), 0) FROM memories m
                   WHERE m.owner = $1 AND m.session = $2 AND m.ordinal > closed.last
                       AND m.tombstoned_at IS NULL))::bigint FROM closed";
    Ok(tx.only(sql, &[&session.owner, &session.seq]).await?.try_get(0)?)
}

fn message_row(row: &Row) -> Result<MessageRow> {
    Ok(MessageRow {
        key: memory_key(row, 0)?,
        id: columns::id(row, 1)?,
        ordinal: row.try_get(2)?,
        role: row.try_get::<_, Option<&str>>(3)?.and_then(Role::parse),
        speaker: row.try_get(4)?,
        time: row.try_get(5)?,
        tokens: row.try_get(6)?,
        marked: row.try_get(7)?,
        importance: row.try_get(8)?,
        kind: columns::word(row, 9, Kind::parse)?,
        provenance: columns::word(row, 10, Provenance::parse)?,
        author: AuthorId::new(row.try_get::<_, String>(11)?),
        is_damaged: false,
    })
}
