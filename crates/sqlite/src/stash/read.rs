//! Lists the content of the stash.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::SqliteStore;
use crate::columns::{id, word};
use crate::error::Result;
use crate::keys::memory_key;
use crate::read::conditions::Conditions;
use tiro_base::error;
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::{Kind, MemoryKey};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_store::{StashCause, StashContents, StashGroup, StashPage, StashedMemory, StashedPlace};

/// The columns that [`stashed_row`] reads.
const COLUMNS: &str =
    "m.id, m.seq, m.kind, (SELECT name FROM sessions WHERE seq = m.session), m.ordinal, s.topic,
    m.time, s.stashed_at, s.expires_at, s.is_protected, s.is_held_out, s.is_given, s.cause, m.tokens";

/// Selects the groups of the whole stash of an owner, as they are counted. Groups of two parts are never the same,
/// except the groups without a session.
const WHOLE: &str = "SELECT g.topic, g.session, (SELECT name FROM sessions WHERE seq = g.session) AS name,
        sum(g.memories), sum(g.tokens), max(g.last) AS latest
    FROM stash_groups g WHERE g.owner = ? GROUP BY g.topic, g.session ORDER BY latest DESC, g.topic, name";

/// Selects the ids of the memories of one group of the whole stash that were stashed last.
const LATEST: &str = "SELECT m.id FROM stashed s CROSS JOIN memories m ON m.seq = s.memory
    WHERE s.owner = ? AND s.topic IS ? AND s.session IS ? AND m.tombstoned_at IS NULL
    ORDER BY s.stashed_at DESC, s.memory LIMIT ?";

impl SqliteStore {
    pub(crate) async fn stashed(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<StashedMemory>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM memories m JOIN stashed s ON s.memory = m.seq WHERE {} AND m.seq = ?",
                conditions.sql
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut found = Vec::new();
            for key in keys {
                let values = conditions.values.iter().cloned().chain([Value::from(key.in_store())]);
                found.extend(
                    statement
                        .query_map(params_from_iter(values), stashed_row)?
                        .collect::<Result<Vec<_>, _>>()?,
                );
            }
            found.sort_unstable_by_key(|row| row.key);
            found.dedup_by_key(|row| row.key);
            Ok(found)
        })
        .await
    }

    pub(crate) async fn list_stash(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<StashedMemory>> {
        let filter = within_stash(filter.clone());
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?.narrowed(&filter);
            let sql = format!(
                "SELECT {COLUMNS} FROM stashed s JOIN memories m ON m.seq = s.memory WHERE {} AND m.seq > ?
                 ORDER BY m.seq LIMIT ?",
                conditions.sql
            );
            let page = [Value::from(after.map_or(-1, MemoryKey::in_store)), Value::from(limit as i64)];
            let values = conditions.values.into_iter().chain(page);
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), stashed_row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn stash_contents(
        &self,
        scope: &Scope,
        page: StashPage,
    ) -> error::Result<StashContents> {
        self.read(scope, move |_, connection, scope| {
            let StashPage { filter, offset, groups, ids } = page;
            let filter = within_stash(filter);
            let is_whole = scope.sessions == Sessions::All
                && filter == Filter { stash: Some(Stash::Only), ..Filter::default() };
            let conditions = Conditions::of_scope(connection, scope)?.narrowed(&filter);
            let from =
                format!("FROM stashed s JOIN memories m ON m.seq = s.memory WHERE {}", conditions.sql);
            let (counted, values) = match is_whole {
                true => (WHOLE.to_owned(), vec![Value::from(scope.tenant.as_str().to_owned())]),
                false => (
                    format!(
                        "SELECT s.topic, m.session, (SELECT name FROM sessions WHERE seq = m.session), count(*),
                             sum(m.tokens), max(s.stashed_at) {from} GROUP BY s.topic, m.session ORDER BY 6 DESC, 1, 3"
                    ),
                    conditions.values.clone(),
                ),
            };
            let mut contents = StashContents::default();
            let mut statement = connection.prepare_cached(&counted)?;
            let mut rows = statement.query(params_from_iter(&values))?;
            let mut sessions: Vec<Option<i64>> = Vec::new();
            while let Some(row) = rows.next()? {
                let place = contents.groups as usize;
                contents.groups += 1;
                contents.memories += row.get::<_, i64>(3)?;
                contents.tokens += row.get::<_, i64>(4)?;
                if !(offset..offset.saturating_add(groups)).contains(&place) {
                    continue;
                }
                sessions.push(row.get(1)?);
                contents.page.push(StashGroup {
                    topic: row.get(0)?,
                    session: session(row, 2)?,
                    memories: row.get(3)?,
                    tokens: row.get(4)?,
                    last: row.get(5)?,
                    ids: Vec::new(),
                });
            }
            let (latest, values) = match is_whole {
                true => (LATEST.to_owned(), values),
                false => (
                    format!(
                        "SELECT m.id {from} AND s.topic IS ? AND m.session IS ?
                         ORDER BY s.stashed_at DESC, m.seq LIMIT ?"
                    ),
                    values,
                ),
            };
            let mut statement = connection.prepare_cached(&latest)?;
            for (group, session) in contents.page.iter_mut().zip(sessions) {
                let own = [group.topic.clone().into(), session.into(), Value::from(ids as i64)];
                let values = values.iter().cloned().chain(own);
                let rows = statement.query_map(params_from_iter(values), |row| id(row, 0))?;
                group.ids = rows.collect::<Result<_, _>>()?;
            }
            Ok(contents)
        })
        .await
    }
}

/// Returns the stashed memories of the session, ordered by key.
pub(crate) fn stashed_of(connection: &Connection, scope: &Scope, session: i64) -> Result<Vec<StashedPlace>> {
    let mut statement = connection.prepare_cached(
        "SELECT m.seq, m.ordinal, s.is_held_out FROM stashed s CROSS JOIN memories m ON m.seq = s.memory
         WHERE s.owner = ?1 AND m.session = ?2 ORDER BY m.seq",
    )?;
    let rows = statement.query_map((scope.tenant.as_str(), session), |row| {
        Ok(StashedPlace { key: memory_key(row, 0)?, ordinal: row.get(1)?, is_held_out: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the filter, limited to the stash.
fn within_stash(filter: Filter) -> Filter {
    let stash = filter.stash.filter(|stash| stash.is_within()).unwrap_or(Stash::Only);
    Filter { stash: Some(stash), ..filter }
}

fn session(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<SessionId>> {
    let name: Option<String> = row.get(column)?;
    Ok(name.as_deref().and_then(SessionId::parse))
}

fn stashed_row(row: &Row<'_>) -> rusqlite::Result<StashedMemory> {
    Ok(StashedMemory {
        id: id(row, 0)?,
        key: memory_key(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        session: session(row, 3)?,
        ordinal: row.get(4)?,
        topic: row.get(5)?,
        time: row.get(6)?,
        stashed_at: row.get(7)?,
        expires_at: row.get(8)?,
        is_protected: row.get(9)?,
        is_held_out: row.get(10)?,
        is_given: row.get(11)?,
        cause: word(row, 12, StashCause::parse)?,
        tokens: row.get(13)?,
    })
}
