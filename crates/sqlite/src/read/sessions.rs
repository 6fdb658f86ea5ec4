//! The sessions of a project.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params, params_from_iter};

use crate::SqliteStore;
use crate::error::Result;
use crate::keys::memory_key;
use crate::read::conditions::Conditions;
use crate::read::memories::{COLUMNS, memory};
use crate::read::segments::find_session;
use tiro_base::error;
use tiro_base::memory::{Memory, MemoryKey, marked};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::{About, SessionRow};

/// The title of the session `s`. The title is the one that the client gave. The title of the memory that summarises the
/// session is used if there is none, or if the topic of this memory is the client's title. Only messages have ordinals, so
/// the messages of the session are not read.
pub(super) const TITLE: &str = "coalesce((
    SELECT c.title FROM memories c
    WHERE c.session = s.seq AND c.ordinal IS NULL AND c.owner = s.owner AND c.kind = 'conversation'
        AND c.title IS NOT NULL AND c.tombstoned_at IS NULL AND coalesce(nullif(trim(s.title), ''), c.topic, '') = coalesce(c.topic, '')
    LIMIT 1), nullif(trim(s.title), ''))";

/// The key of the memory that summarises the session `s`, if this memory has a title.
const TITLED: &str = "(
    SELECT c.seq FROM memories c
    WHERE c.session = s.seq AND c.ordinal IS NULL AND c.owner = s.owner AND c.kind = 'conversation'
        AND c.title IS NOT NULL AND c.tombstoned_at IS NULL LIMIT 1)";

/// The key of the user's first message in the session `s`.
const FIRST: &str = "(
    SELECT u.seq FROM memories u
    WHERE u.session = s.seq AND u.owner = s.owner AND u.kind = 'message' AND u.role = 'user'
        AND u.tombstoned_at IS NULL ORDER BY u.ordinal LIMIT 1)";

/// The number of characters of the user's first message that are used in place of a title. Arbitrary.
const OPENING_CHARACTERS: usize = 500;

/// The beginning of the user's first message in the session `s`, for a session without a title.
const OPENING: &str = "(
    SELECT substr(u.text, 1, 500) FROM memories u
    WHERE u.session = s.seq AND u.owner = s.owner AND u.kind = 'message' AND u.role = 'user'
        AND u.tombstoned_at IS NULL ORDER BY u.ordinal LIMIT 1)";

impl SqliteStore {
    pub(crate) async fn sessions(
        &self,
        scope: &Scope,
        offset: usize,
        limit: usize,
    ) -> error::Result<Vec<SessionRow>> {
        self.read(scope, move |_, connection, scope| {
            // The order is that of the index `sessions_by_last`, so only the rows of the page are read.
            let mut statement = connection.prepare_cached(
                "SELECT s.name, s.memories, s.tokens, s.first_time, s.last_time, s.branch, s.head_sha
                 FROM sessions s WHERE s.owner = ?1 AND s.memories > 0
                 ORDER BY coalesce(s.client, '') LIKE '% headless', s.last_time DESC, s.name LIMIT ?2 OFFSET ?3",
            )?;
            // If the scope has all sessions, SQL selects the page, because a project may have thousands of sessions.
            // Otherwise the page is selected below.
            let (sql_limit, sql_offset) = match &scope.sessions {
                Sessions::All => (limit as i64, offset as i64),
                Sessions::Only(_) => (-1, 0),
            };
            let rows = statement.query_map(params![scope.tenant.as_str(), sql_limit, sql_offset], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    SessionRow {
                        id: SessionId::parse("unnamed").expect("a name without control characters"),
                        memories: row.get(1)?,
                        tokens: row.get(2)?,
                        first: row.get(3)?,
                        last: row.get(4)?,
                        branch: row.get(5)?,
                        head_sha: row.get(6)?,
                    },
                ))
            })?;
            let rows: Vec<(String, SessionRow)> = rows.collect::<Result<_, _>>()?;
            let named = rows
                .into_iter()
                .filter_map(|(name, row)| Some(SessionRow { id: SessionId::parse(&name)?, ..row }));
            Ok(match &scope.sessions {
                Sessions::All => named.collect(),
                Sessions::Only(ids) => {
                    named.filter(|row| ids.contains(&row.id)).skip(offset).take(limit).collect()
                }
            })
        })
        .await
    }

    pub(crate) async fn session_stands(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<(Option<String>, Option<String>)> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(seq) = find_session(connection, scope, &session)? else { return Ok((None, None)) };
            Ok(connection
                .prepare_cached("SELECT branch, head_sha FROM sessions WHERE seq = ?1")?
                .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })
        .await
    }

    pub(crate) async fn about_sessions(
        &self,
        scope: &Scope,
        sessions: Vec<SessionId>,
    ) -> error::Result<Vec<About>> {
        self.read(scope, move |_, connection, scope| {
            let mut statement = connection.prepare_cached(
                "SELECT nullif(trim(s.title), ''), s.client FROM sessions s WHERE s.seq = ?1",
            )?;
            let sql = format!(
                "SELECT {COLUMNS} FROM sessions s JOIN memories m ON m.seq = coalesce({TITLED}, {FIRST})
                 WHERE s.seq = ?1 AND (?2 IS NULL OR m.topic = ?2)"
            );
            let mut says_so = connection.prepare_cached(&sql)?;
            let mut found = Vec::with_capacity(sessions.len());
            for session in &sessions {
                let mut about = About::default();
                if let Some(seq) = find_session(connection, scope, session)? {
                    (about.given, about.client) =
                        statement.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    about.title.clone_from(&about.given);
                    let shown = says_so.query_row(params![seq, about.given], memory).optional()?;
                    if let Some(Memory { title, text, is_damaged, .. }) = shown {
                        let title = title.unwrap_or_else(|| text.chars().take(OPENING_CHARACTERS).collect());
                        about.title = Some(marked(title, is_damaged));
                    }
                }
                found.push(about);
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn sessions_called(
        &self,
        scope: &Scope,
        text: &str,
        limit: usize,
    ) -> error::Result<Vec<SessionId>> {
        let text = text.to_owned();
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let which = [
                "s.name = ?",
                "s.seq IN (SELECT a.session FROM session_aliases a WHERE a.owner = s.owner AND a.alias = ?)",
                "substr(s.name, 1, length(?)) = ?",
                &format!("instr(lower(coalesce({TITLE}, {OPENING})), lower(?)) > 0"),
            ];
            for which in which {
                // Names are compared once for each session, not for each of its memories.
                let sql = format!(
                    "SELECT s.name FROM sessions s WHERE {which}
                     AND EXISTS (SELECT 1 FROM memories m WHERE m.session = s.seq AND m.owner = s.owner AND {})
                     ORDER BY s.last_time DESC, s.name LIMIT ?",
                    conditions.sql
                );
                let own = std::iter::repeat_n(Value::from(text.clone()), which.matches('?').count());
                let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
                let values = own.chain(conditions.values.iter().cloned()).chain([limit]);
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(0))?;
                let names: Vec<String> = rows.collect::<Result<_, _>>()?;
                if !names.is_empty() {
                    return Ok(names.iter().filter_map(|name| SessionId::parse(name)).collect());
                }
            }
            Ok(Vec::new())
        })
        .await
    }

    pub(crate) async fn commits_of(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Vec<MemoryKey>> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(seq) = find_session(connection, scope, &session)? else { return Ok(Vec::new()) };
            let mut statement = connection.prepare_cached(
                "SELECT m.seq FROM commit_sessions l CROSS JOIN memories m ON m.seq = l.memory
                 WHERE l.session = ?1 AND m.owner = ?2 AND m.tombstoned_at IS NULL
                 ORDER BY m.time DESC, m.seq DESC",
            )?;
            let rows = statement.query_map((seq, scope.tenant.as_str()), |row| memory_key(row, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
